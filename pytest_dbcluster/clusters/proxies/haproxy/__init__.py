"""HAProxy: it spreads reads over the healthy nodes, and sends writes to one node.

``proxy`` has the proxy, ``health_server`` the program that HAProxy checks each node with.
"""

from pytest_dbcluster.clusters.proxies.haproxy.proxy import HAProxy

PROXY = HAProxy

__all__ = ["PROXY"]
