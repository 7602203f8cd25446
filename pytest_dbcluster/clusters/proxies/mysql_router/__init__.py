"""MySQL Router: bootstrapped against an InnoDB Cluster where MySQL Shell is there, else with static routes."""

from pytest_dbcluster.clusters.proxies.mysql_router.proxy import MySQLRouter

PROXY = MySQLRouter

__all__ = ["PROXY"]
