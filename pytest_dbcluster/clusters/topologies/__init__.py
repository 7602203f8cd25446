"""Topologies: each module or folder here is one, and its name is what users type.

A module names its class ``TOPOLOGY``. What several topologies need lies beside this folder, in ``topology``. An outside
package adds one by an entry point in the group ``pytest_dbcluster.topologies``.
"""

__all__ = []
