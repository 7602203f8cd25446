"""HAProxy (``proxy``), and the health server that HAProxy checks each node with (``health_server``)."""

from pytest_dbcluster.clusters.proxies.haproxy.proxy import HAProxy

PROXY = HAProxy

__all__ = ["PROXY"]
