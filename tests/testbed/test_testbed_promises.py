"""What the real testbed says of the commits that it compares, and which comparisons it refuses or leaves open."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import probes
from tests.support.facts import missing
from tests.support.fakes import Failing
from tests.support.testbeds import MYSQL, ONE, OTHER, TWO, WRITE, evidence, source


def test_the_message_says_what_was_durable_and_what_differed(shared):
    """As the servers have it, not as it was asked for."""
    made = source(shared, WRITE, ONE, OTHER)

    durability, differences, *_ = evidence(made, 1, 0).notes
    labels = "other flush=1, binlog off, one server; standalone1 flush=1, binlog off, one server"
    assert durability == f"durability: {labels}"
    assert missing(differences, "variables that differ", "(standalone1 -> other): lock_wait_timeout: 86400 -> 40") == []


def test_the_message_has_the_remarks_about_the_hosts(shared, monkeypatch):
    """Such as that a volume has burst credits; the provisioner knows them."""
    made = source(shared, WRITE, ONE, OTHER)
    monkeypatch.setattr(type(shared.provisioner), "remarks", ("burst credits: t3.medium is a burstable type",))

    assert evidence(made, 1, 0).notes[-1] == "burst credits: t3.medium is a burstable type"


def test_topologies_that_promise_differently_are_refused_before_anything_starts(pool):
    """One server, or all of them: the test has to say that it knows."""
    with pytest.raises(ConfigError) as caught:
        source(pool, WRITE, ONE, TWO)

    assert "[standalone1: one server; galera2: certified on all nodes]" in str(caught.value)
    assert "measure(..., across_durability=True)" in str(caught.value)
    assert pool.clusters == []


def test_async_against_galera_is_refused(pool):
    """Replicas get a commit later, nodes have certified it before it returns."""
    replicas = ClusterSpec("async_replication", nodes=2, release=ReleaseName("mariadb", "10.11"), name="async")

    with pytest.raises(ConfigError, match=r"\[async: one server, replicas later; galera2: certified on all nodes\]"):
        source(pool, WRITE, replicas, TWO)
    assert pool.clusters == []


def test_a_test_that_says_so_compares_across_durability(shared):
    """Then both are measured, and the labels stand in the message."""
    made = source(shared, WRITE, ONE, TWO, across_durability=True, instances=1)
    done = made.round(1, block=0, position=0)

    assert done.void == ""
    assert done.drained_throughput < done.throughput
    assert evidence(made, 1, 0).notes[0] == (
        "durability: galera2 flush=1, binlog off, certified on all nodes, wsrep_sync_wait=0; "
        "standalone1 flush=1, binlog off, one server"
    )


def test_vendors_whose_defaults_differ_are_refused_before_a_round(shared):
    """MySQL flushes its binlog at each commit, MariaDB has none: seen as the servers run, before the load's tables."""
    made = source(shared, Failing("prepare", AssertionError("prepared")), ONE, MYSQL, instances=1)

    with pytest.raises(ConfigError, match=r"binlog \(from the defaults of mariadb and mysql\) differs"):
        made.round(0, block=0, position=0)
    assert not any(cluster.dirty for cluster in shared.clusters)


def test_parity_makes_vendors_comparable_with_one_client(pool):
    """Normalised servers promise the same; the first variant's client runs the load on both, and is named."""
    made = source(pool, WRITE, ONE.with_parity("normalised"), MYSQL.with_parity("normalised"), instances=1)
    done = [made.round(number, block=0, position=number) for number in (0, 1)]
    made.check()
    label, _, client = evidence(made, 1, 0).notes

    assert [one.outcome.operations for one in done] == [20, 20]
    assert label.count("flush=1, sync_binlog=1, one server") == 2
    assert client.startswith("client of all variants: mariadb:10.11 10.11.")


def test_clusters_that_take_turns_are_compared_as_they_start(shared, monkeypatch):
    """The second one is refused before it has run a round, and the first one does not run beside it."""
    made = source(shared, WRITE, ONE, MYSQL)
    monkeypatch.setitem(made.__dict__, "one_at_a_time", True)

    assert made.round(0, block=0, position=0).outcome.operations == 3 * 20
    with pytest.raises(ConfigError, match=r"binlog \(from the defaults of mariadb and mysql\) differs"):
        made.round(1, block=0, position=1)


def test_the_flush_that_a_test_sets_is_compared(shared):
    """Its own option explains the difference, so nothing has to be permitted."""
    made = source(shared, WRITE, ONE, ONE.with_options(innodb_flush_log_at_trx_commit=2).named("flush_2"))
    made.round(1, block=0, position=0)

    assert evidence(made, 1, 0).notes[0] == (
        "durability: flush_2 flush=2, binlog off, one server; standalone1 flush=1, binlog off, one server"
    )


def test_flushing_is_not_judged_where_it_costs_nothing(pool, monkeypatch):
    """On a disk whose fsync is no fsync the claim stays open, and says why; other options are judged."""
    made = source(pool, WRITE, ONE, ONE.with_options(innodb_flush_log_at_trx_commit=2), ONE.with_options(back_log=90))
    monkeypatch.setattr(probes, "fsync_seconds", lambda directory: 3e-6)

    assert made.blind_spot(1, 0).startswith("an fsync takes 3 us in ")
    assert "this disk cannot show the cost of flushes" in made.blind_spot(1, 0)
    assert made.blind_spot(2, 0) == ""
    monkeypatch.setattr(probes, "fsync_seconds", lambda directory: 1e-3)
    assert made.blind_spot(1, 0) == ""


def test_a_notice_is_that_of_the_hosts(pool, monkeypatch):
    """A measurement asks the provisioner, which knows its hosts; this machine stays."""
    made = source(pool, WRITE, ONE)
    assert made.notice() == ""
    monkeypatch.setattr(pool.provisioner, "notice", lambda: "AWS takes server1 back")

    assert made.notice() == "AWS takes server1 back"
    assert pool.clusters == []


def test_scaling_is_not_judged_where_nodes_share_cores(pool):
    """Nothing has to be started to know it; the hosts of another provisioner may be separate."""
    one = dataclasses.replace(TWO, nodes=1)
    made = source(pool, WRITE, TWO, one)

    assert "(galera2 has 2 nodes, galera1 1 node)" in made.blind_spot(0, 1, by_size=True)
    assert pool.clusters == []
