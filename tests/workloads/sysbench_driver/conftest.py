"""What tests of terminals share: a host for the load, and clusters with its table."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads import sysbench_driver
from tests.workloads.sysbench_driver.calls import SCHEMA, call, setting_of


@pytest.fixture
def filled(client):
    """``filled(cluster)``: a setting with a table of a thousand rows; dropped at the end."""
    made = []

    def filled(cluster):
        setting = setting_of(cluster, client)
        made.append(setting.cluster.nodes[0])
        made[-1].query(f"CREATE DATABASE {SCHEMA}")
        sysbench_driver.command(
            call(setting, "oltp_read_write", script="oltp_read_write.lua"), setting, "prepare", seconds=60
        )
        assert cluster.settle(60)
        return setting

    yield filled
    for node in (one for one in made if one.running):
        node.query(f"DROP DATABASE {SCHEMA}")
