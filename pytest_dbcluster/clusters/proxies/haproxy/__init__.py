"""HAProxy, and the health server that it asks about each node."""

from pytest_dbcluster.clusters.proxies.haproxy.proxy import HAProxy

PROXY = HAProxy

__all__ = ["PROXY"]
