"""What a commit is worth: the label of a result, and which labels may not be compared without saying so."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.evidence.durability import Durability, LabelledVariant, compare
from tests.support import golden
from tests.support.clusters import variant_of
from tests.support.facts import missing

MARIADB = Release("mariadb:10.11", "mariadb", "10.11.19", Path("/opt/mariadb/bin"))
MYSQL = Release("mysql:9.7", "mysql", "9.7.4", Path("/opt/mysql/bin"))
ONE_SERVER = Durability("flush=1", "binlog off", "one server")
CERTIFIED = Durability("flush=1", "binlog off", "certified on all nodes", "wsrep_sync_wait=0")


def labelled(name, label, form="standalone", release=MARIADB, **options):
    """A variant of this topology and release whose test has set these options."""
    return LabelledVariant(name, variant_of(ClusterSpec(form, nodes=3), release, tuple(options.items()), ()), label)


def refused(one, other):
    """The words with which two variants are refused."""
    with pytest.raises(ConfigError) as caught:
        compare([one, other])
    return str(caught.value)


@pytest.mark.parametrize(
    ("form", "nodes", "variables", "label"),
    [
        (
            "galera",
            3,
            {"innodb_flush_log_at_trx_commit": "2", "log_bin": "OFF", "wsrep_sync_wait": "0"},
            "flush=2, binlog off, certified on all nodes, wsrep_sync_wait=0",
        ),
        (
            "galera",
            1,
            {"innodb_flush_log_at_trx_commit": "2", "log_bin": "OFF", "wsrep_sync_wait": "0"},
            "flush=2, binlog off, one server",
        ),
        (
            "standalone",
            1,
            {"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "0"},
            "flush=1, sync_binlog=0, one server",
        ),
        ("standalone", 1, {}, "flush=?, binlog off, one server"),
    ],
)
def test_the_label_says_who_has_what(form, nodes, variables, label):
    """On disk, in the binlog, on other nodes, and what a read elsewhere may miss; one node has no elsewhere."""
    assert str(Durability.of(topology(form), variables, nodes)) == label


def test_equal_labels_are_compared():
    """Whatever else differs."""
    compare([labelled("a", ONE_SERVER), labelled("b", ONE_SERVER, "galera", MYSQL)])


def test_what_the_test_set_itself_is_compared():
    """The option stands in one of the variants: that is what the test asks."""
    lazy = dataclasses.replace(CERTIFIED, flush="flush=2")
    compare(
        [
            labelled("galera3", CERTIFIED, "galera"),
            labelled("flush_2", lazy, "galera", innodb_flush_log_at_trx_commit="2"),
        ]
    )
    compare(
        [
            labelled("sync", dataclasses.replace(ONE_SERVER, binlog="sync_binlog=1"), log_bin="", sync_binlog="1"),
            labelled("without", ONE_SERVER),
        ]
    )


def test_what_the_test_set_on_both_alike_explains_nothing():
    """Both say sync_binlog=1, and one of the vendors has no binlog."""
    said = refused(
        labelled("m", ONE_SERVER, sync_binlog="1"),
        labelled("o", dataclasses.replace(ONE_SERVER, binlog="sync_binlog=1"), release=MYSQL, sync_binlog="1"),
    )

    assert "binlog (from the defaults of mariadb and mysql) differs" in said


def test_a_nodes_number_is_the_tests_own():
    """The same topology of more nodes promises more; nothing but the spec says how many."""
    alone = dataclasses.replace(CERTIFIED, acknowledged="one server", consistency="")

    compare([labelled("one", alone, "galera"), labelled("three", CERTIFIED, "galera")])


def test_topologies_that_promise_differently_are_refused():
    """The message names both labels, the part, where it comes from, and the way out."""
    message = refused(labelled("alone", ONE_SERVER), labelled("galera3", CERTIFIED, "galera"))

    golden.compare("durability", {"topologies": message})
    facts = ("acknowledged (from the topologies standalone and galera)", "across_durability=True", "one server")
    assert missing(message, *facts) == []


def test_an_option_makes_no_other_topology():
    """Setting a wait point does not explain that the other variant waits for nobody."""
    received = dataclasses.replace(ONE_SERVER, acknowledged="received by 1 replica (AFTER_SYNC)")
    said = refused(
        labelled("async", dataclasses.replace(ONE_SERVER, acknowledged="one server, replicas later"), "async"),
        labelled("semi", received, "semisync", rpl_semi_sync_master_wait_point="AFTER_SYNC"),
    )

    assert "acknowledged (from the topologies async and semisync) differs" in said


def test_the_same_topology_with_another_wait_point_is_the_tests_own():
    """When a commit waits is part of what its return is worth."""
    one, other = (
        labelled(
            point,
            dataclasses.replace(ONE_SERVER, acknowledged=f"received by 1 replica ({point})"),
            "semisync",
            rpl_semi_sync_master_wait_point=point,
        )
        for point in ("AFTER_SYNC", "AFTER_COMMIT")
    )

    compare([one, other])


WAITING = {"rpl_semi_sync_master_wait_point": "AFTER_SYNC"}, {"rpl_semi_sync_source_wait_point": "AFTER_SYNC"}


@pytest.mark.parametrize(
    ("mariadb", "mysql"),
    [
        WAITING,
        ({"rpl_semi_sync_master_timeout": "5000"}, {"rpl_semi_sync_source_timeout": "5000"}),
        ({}, {"rpl_semi_sync_source_timeout": "5000"}),
        ({"rpl_semi_sync_master_timeout": "5000"}, {}),
    ],
)
def test_semi_sync_set_alike_or_only_its_time_out_explains_nothing(mariadb, mysql):
    """The vendors have names of their own for the same option, and a time-out is no part of the promise."""
    one, two = (
        dataclasses.replace(ONE_SERVER, acknowledged=f"received by {replicas} (AFTER_SYNC)")
        for replicas in ("1 replica", "2 replicas")
    )
    said = refused(
        labelled("m", one, "semisync", **mariadb),
        labelled("o", two, "semisync", MYSQL, **mysql),
    )

    assert "acknowledged (from the defaults of mariadb and mysql) differs" in said


POINT, NUMBER = "rpl_semi_sync_source_wait_point", "rpl_semi_sync_source_wait_for_replica_count"


def received(name, release, by, **options):
    """A variant of semi-synchronous replication whose commits so many have received at such a point."""
    return labelled(
        name, dataclasses.replace(ONE_SERVER, acknowledged=f"received by {by}"), "semisync", release, **options
    )


@pytest.mark.parametrize(
    ("by", "mysql"),
    [
        ("1 replica (AFTER_COMMIT)", {POINT: "AFTER_COMMIT"}),
        ("2 replicas (AFTER_SYNC)", {NUMBER: "2"}),
        ("2 replicas (AFTER_COMMIT)", {POINT: "AFTER_COMMIT", NUMBER: "2"}),
    ],
)
def test_semi_sync_set_differently_is_the_tests_own_on_either_vendor(by, mysql):
    """Another wait point, or more replicas to wait for, than the other side was told, or both."""
    compare(
        [
            received("m", MARIADB, "1 replica (AFTER_SYNC)", **WAITING[0]),
            received("o", MYSQL, by, **mysql),
        ]
    )


@pytest.mark.parametrize(
    ("by", "mysql"),
    [
        ("1 replica (AFTER_COMMIT)", {NUMBER: "1"}),
        ("1 replica (AFTER_COMMIT)", {NUMBER: "2"}),
        ("2 replicas (AFTER_SYNC)", {POINT: "AFTER_SYNC"}),
        ("2 replicas (AFTER_COMMIT)", {POINT: "AFTER_COMMIT"}),
        ("2 replicas (AFTER_COMMIT)", {NUMBER: "2"}),
    ],
)
def test_when_a_commit_waits_and_for_whom_explain_nothing_of_each_other(by, mysql):
    """A number that was set, at its default even, is not why the other vendor waits at another point."""
    said = refused(received("m", MARIADB, "1 replica (AFTER_SYNC)"), received("o", MYSQL, by, **mysql))

    assert "acknowledged (from the defaults of mariadb and mysql) differs" in said


def test_the_case_of_a_value_is_no_difference():
    """A server takes either; the same value in another case has not been set differently."""
    one = received("m", MARIADB, "1 replica (after_sync)", rpl_semi_sync_master_wait_point="after_sync")
    other = received("o", MYSQL, "1 replica (AFTER_SYNC)", rpl_semi_sync_source_wait_point="AFTER_SYNC")
    compare([one, other])

    old = dataclasses.replace(MYSQL, name="mysql:8.0", version="8.0.46")
    applied = dataclasses.replace(ONE_SERVER, acknowledged="applied by all members")
    said = refused(
        labelled("new", ONE_SERVER, "group_replication", MYSQL, group_replication_consistency="after"),
        labelled("old", applied, "group_replication", old, group_replication_consistency="AFTER"),
    )
    assert "acknowledged (from the releases mysql:9.7 and mysql:8.0) differs" in said


def test_the_consistency_of_a_group_is_the_tests_own():
    """Whoever asks for commits that all members have applied gets another acknowledgement as well."""
    received = Durability(
        "flush=1", "sync_binlog=1", "received by a majority", "group_replication_consistency=EVENTUAL"
    )
    applied = Durability("flush=1", "sync_binlog=1", "applied by all members", "group_replication_consistency=AFTER")
    old = dataclasses.replace(MYSQL, name="mysql:8.0", version="8.0.46")

    compare(
        [
            labelled("default", received, "group_replication", old),
            labelled("after", applied, "group_replication", MYSQL, group_replication_consistency="AFTER"),
        ]
    )


def test_a_difference_of_vendors_can_be_made_equal():
    """Where options decide, the message names options and parity as remedies."""
    said = refused(
        labelled("m", ONE_SERVER),
        labelled("o", dataclasses.replace(ONE_SERVER, binlog="sync_binlog=1"), release=MYSQL),
    )

    assert "[m: flush=1, binlog off, one server; o: flush=1, sync_binlog=1, one server]" in said
    assert said.endswith("options that make them equal, or --db-parity normalised, remove the difference")


def test_a_difference_of_releases_is_named():
    """The same vendor may have changed its mind."""
    old = dataclasses.replace(MARIADB, name="mariadb:10.5", version="10.5.23")

    assert "flush (from the releases mariadb:10.5 and mariadb:10.11) differs" in refused(
        labelled("old", dataclasses.replace(ONE_SERVER, flush="flush=2"), release=old), labelled("new", ONE_SERVER)
    )


def test_of_several_the_two_that_differ_are_named():
    """All variants of one measurement are compared with each other."""
    with pytest.raises(ConfigError, match=r"^a and c differ in durability,"):
        compare([labelled("a", ONE_SERVER), labelled("b", ONE_SERVER), labelled("c", CERTIFIED, "galera")])
