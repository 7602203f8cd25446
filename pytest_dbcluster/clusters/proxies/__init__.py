"""Proxies: each module or folder here is one, and its name is what users type.

A folder names its class ``PROXY``. What several proxies need lies beside this folder, in ``proxy``. An outside package
adds one by an entry point in the group ``pytest_dbcluster.proxies``.
"""

__all__ = []
