"""``LuaScript`` on a cluster: its tables must replicate."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.workload import Setting


def test_tables_that_a_cluster_does_not_replicate_are_refused(galera2, client, script):
    """They would stay on one node."""
    text = """
    function prepare() sysbench.sql.driver():connect():query("CREATE TABLE m (id INT PRIMARY KEY) ENGINE=Aria") end
    function event() end
    """
    load, own = script(text), Setting(galera2, client, galera2.nodes[0].release, "quick", lambda line: None)
    try:
        with pytest.raises(ConfigError, match="table m has engine Aria, and galera replicates InnoDB tables only"):
            load.prepare(own)
    finally:
        load.clean(own)
    assert galera2.nodes[0].query("SHOW DATABASES LIKE 'sbtest'") == []
