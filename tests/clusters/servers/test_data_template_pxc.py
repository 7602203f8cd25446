"""The template of Percona XtraDB Cluster, made by a stand-in: MySQL, which ignores the options of Galera."""

from __future__ import annotations

import pytest

from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from tests.support import pxc_stand_in
from tests.support.clusters import bring_up


@pytest.fixture
def server(mysql, tmp_path, monkeypatch):
    """A server that started from the template."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    release = find.find(f"pxc:8.4={pxc_stand_in.lay_out(tmp_path / 'root', mysql)}")
    local = LocalProvisioner()
    cluster = bring_up(ClusterSpec("standalone"), release, local, options={})
    yield cluster.nodes[0]
    cluster.close()
    local.close()


@pytest.mark.thorough
def test_accounts_of_ours_and_of_pxc_are_in_the_template(server):
    """A first start without Galera makes ours, with which the second start is asked; root is dropped, PXC's stay."""
    users = {user for (user,) in server.query("SELECT user FROM mysql.user")}

    assert users == {
        "dbcluster",
        "dbcluster_load",
        "mysql.infoschema",
        "mysql.pxc.internal.session",
        "mysql.pxc.sst.role",
        "mysql.session",
        "mysql.sys",
    }
