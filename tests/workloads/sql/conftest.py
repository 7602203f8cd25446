"""What tests of SQL files on servers share."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.workload import Setting
from tests.workloads.sql.directories import directory


@pytest.fixture
def setting(standalone, client, said):
    """The lone server."""
    return Setting(standalone, client, standalone.nodes[0].release, "quick", said.append)


@pytest.fixture(scope="module")
def mysql_setting(bring, mysql, client):
    """A lone server of MySQL."""
    cluster = bring("standalone", 1, mysql)
    yield Setting(cluster, client, cluster.nodes[0].release, "quick", lambda line: None)
    cluster.close()


@pytest.fixture(params=["mariadb", "mysql"])
def each_setting(request, setting):
    """The lone server of each vendor."""
    return request.getfixturevalue("mysql_setting") if request.param == "mysql" else setting


@pytest.fixture
def files(tmp_path, standalone):
    """``files({"sell.sql": ...}, threads=2)``: a workload of the usual directory with these files."""
    made = []

    def files(changed, name="shop", **fields):
        workload = SQLFiles(directory(tmp_path / name, changed), **{"threads": 2, "seconds": 0.2, **fields})
        made.append(workload)
        return workload

    yield files
    for workload in made:
        standalone.nodes[0].query(f"DROP DATABASE IF EXISTS {workload.database}")
