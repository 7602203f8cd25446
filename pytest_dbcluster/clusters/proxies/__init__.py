"""Proxies: each module or folder here is one proxy; users type its name.

A folder names its class ``PROXY``. The base class is ``clusters.proxy.Proxy``. Another package adds a proxy by an entry
point in the group ``pytest_dbcluster.proxies``.
"""

__all__ = []
