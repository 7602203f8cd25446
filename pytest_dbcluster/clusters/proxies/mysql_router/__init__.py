"""MySQL Router: bootstrapped from an InnoDB Cluster if MySQL Shell is available, otherwise with static routes."""

from pytest_dbcluster.clusters.proxies.mysql_router.proxy import MySQLRouter

PROXY = MySQLRouter

__all__ = ["PROXY"]
