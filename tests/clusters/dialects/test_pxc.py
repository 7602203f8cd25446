"""The dialect of Percona XtraDB Cluster, which was never run: in what it differs from MySQL's."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.dialects.pxc import PXC


@pytest.mark.parametrize("version", ["8.0.29", "8.0.42", "8.4.6"])
def test_it_is_that_of_mysql_but_for_a_few_fields(version):
    """Statements that depend on the version are those of MySQL's version."""
    words, mysql = (dialect(product, version) for product in ("pxc", "mysql"))

    assert dataclasses.replace(mysql, **{name: getattr(words, name) for name in PXC}) == words
    assert words != mysql
    assert mysql.galera is None


def test_accounts_and_roles_of_pxc_stay():
    """A full state transfer needs them; each transfer makes the account that it logs in with, and drops it again."""
    for name in ("mysql.pxc.internal.session", "mysql.pxc.sst.role", "mysql.session"):
        assert f"'{name}'" in dialect("pxc", "8.4.6").drop_others
    assert "mysql.pxc.sst.user" not in dialect("pxc", "8.4.6").drop_others


def test_group_replication_is_not_loaded_beside_galera():
    """Strict mode refuses the plugin; the others are those of MySQL."""
    assert set(dialect("mysql").plugins) - set(dialect("pxc").plugins) == {"group_replication.so"}


def test_names_and_transfers_are_those_of_pxc_8():
    """wsrep_slave_threads is the former name, and a transfer has no account in the my.cnf."""
    words, mariadb = dialect("pxc").galera, dialect("mariadb").galera

    assert words.appliers == ("wsrep_applier_threads", "wsrep_slave_threads")
    assert mariadb.appliers == ("wsrep_slave_threads",)
    assert (words.transfer, words.has_account) == ("xtrabackup-v2", False)
    assert (mariadb.transfer, mariadb.has_account) == ("mariabackup", True)
    assert "wsrep_on" not in {**words.every, **words.preset}
