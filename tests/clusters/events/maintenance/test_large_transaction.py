"""``LargeTransaction``: its rows arrive on all nodes, and go again."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.events.maintenance import large_transaction
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError, NotReady
from pytest_dbcluster.events import LargeTransaction
from pytest_dbcluster.spec import ClusterSpec

SCHEMAS = "SHOW DATABASES LIKE 'dbcluster_large'"


@pytest.mark.parametrize("rows", [0, -1, "3", 2.0, True, 10_000_001])
def test_a_wrong_number_of_rows_is_refused(rows):
    """Before anything starts."""
    with pytest.raises(ConfigError, match="whole numbers from 1 to 10000000"):
        LargeTransaction(rows).check(ClusterSpec("standalone"), topology("standalone"))


@pytest.mark.parametrize("rows", [1, 10, 1234])
def test_all_rows_are_in_one_transaction(galera2, rows):
    """Every node has them, and Galera counts one write set for them. Afterwards the table is gone."""
    event = LargeTransaction(rows)
    event.prepare(galera2)
    first = galera2.nodes[0]
    before = int(first.status("wsrep_replicated")["wsrep_replicated"])
    happened = event.act(galera2)
    after = int(first.status("wsrep_replicated")["wsrep_replicated"])

    assert str(event) == f"transaction of {rows} rows"
    assert (happened.void, happened.node) == ("", "")
    assert list(happened.marks) == ["committed", "on all nodes"]
    assert after - before == 1
    assert event.restore(galera2, happened) is None
    assert galera2.settle(30)
    assert [node.query(SCHEMAS) for node in galera2.nodes] == [[], []]


def test_a_transaction_that_stays_on_one_node_is_an_outcome(galera2, monkeypatch):
    """It is an error, which no other repetition takes the place of. The rows may be there later."""
    monkeypatch.setattr(large_transaction, "EVERYWHERE_SECONDS", 0.2)
    event = LargeTransaction(5)
    event.prepare(galera2)
    monkeypatch.setattr(LargeTransaction, "_problems", lambda *_: ["node2 has 0 of 5 rows"])
    try:
        with pytest.raises(NotReady, match="node2 has 0 of 5 rows"):
            event.act(galera2)
    finally:
        galera2.nodes[0].query("DROP DATABASE dbcluster_large")
        assert galera2.settle(60)


def test_a_transaction_that_fails_proves_nothing(galera2):
    """The reason is the error of the server."""
    event = LargeTransaction(5)
    happened = event.act(galera2)

    assert "doesn't exist" in happened.void
    event.restore(galera2, happened)
