"""``Alter``: what is refused, and schema changes on two real nodes."""

from __future__ import annotations

import threading
import time

import pytest

from pytest_dbcluster.clusters.events.event import Stage
from pytest_dbcluster.clusters.events.maintenance import altered_table
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import Alter
from pytest_dbcluster.spec import ClusterSpec

GALERA, ONE = ClusterSpec("galera", nodes=2), ClusterSpec("standalone")
INDEX = "ALTER TABLE altered_here ADD INDEX by_n (n)"
COLUMN = "ALTER TABLE alter_tests.altered_here ADD COLUMN more INT"


@pytest.fixture
def altering(galera2):
    """Two nodes with a table."""
    node = galera2.nodes[0]
    node.query("CREATE DATABASE alter_tests")
    node.query("CREATE TABLE alter_tests.altered_here (id INT PRIMARY KEY AUTO_INCREMENT, n INT)")
    node.query("INSERT INTO alter_tests.altered_here (n) SELECT seq FROM alter_tests.seq_1_to_100")
    assert galera2.settle(30)
    yield galera2
    node.query("DROP DATABASE alter_tests")
    galera2.new_errors()  # those of changes that fail are no fault of later tests


def definitions(cluster):
    """The table on each node."""
    return [altered_table.state(node, "alter_tests", "altered_here").definition for node in cluster.nodes]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Alter(INDEX), f"alter: {INDEX}"),
        (Alter("ALTER TABLE t\n  ADD COLUMN n INT", method="RSU"), "alter by RSU: ALTER TABLE t ADD COLUMN n INT"),
    ],
)
def test_its_text_is_one_line(event, text):
    """It has the method."""
    assert str(event) == text


@pytest.mark.parametrize(
    ("event", "spec", "fact"),
    [
        (Alter("DROP TABLE t"), ONE, "it accepts a statement ALTER TABLE name ..."),
        (Alter(INDEX, method="toi"), GALERA, 'it accepts "TOI", "RSU", "INSTANT", "COPY", "pt-osc" or nothing'),
        (Alter(INDEX, method="TOI"), ONE, "is a method of Galera; standalone1 is standalone"),
        (Alter(INDEX, method="RSU"), ClusterSpec("galera"), "changes node after node"),
        (Alter(f"{INDEX}, ALGORITHM=COPY", method="INSTANT"), ONE, "has an ALGORITHM, too"),
        (Alter(f"{INDEX}, ALGORITHM=COPY", method="pt-osc"), ONE, "has an ALGORITHM, too"),
        (Alter(INDEX, method="RSU", lock_wait=0.5), GALERA, "whole seconds, from 1"),
        (Alter("ALTER TABLE t DROP COLUMN n"), ONE, 'Alter(..., undo="ALTER TABLE ...")'),
        (Alter(INDEX, undo="ALTER TABLE other DROP INDEX by_n"), ONE, "does not change the table of the statement"),
    ],
)
def test_a_wrong_change_is_refused(event, spec, fact):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        event.check(spec, topology(spec.topology))
    assert fact in str(caught.value)


@pytest.mark.parametrize(
    ("event", "facts"),
    [
        (Alter("ALTER TABLE altered_here ADD INDEX i (no_such)"), ["1072", "no_such"]),
        (Alter(INDEX, method="INSTANT"), ["ALGORITHM=INSTANT is not supported"]),
        (
            Alter(INDEX, undo="ALTER TABLE altered_here ADD COLUMN more INT"),
            ["does not bring the table back", "`more`"],
        ),
        (Alter("ALTER TABLE not_there ADD INDEX i (n)"), ["there is no such table; the tables are "]),
    ],
)
def test_a_change_that_fails_is_refused_before_the_load_starts(altering, event, facts):
    """It is tried on an empty copy of the table, which is dropped. No node logs an error."""
    before, seen = definitions(altering), [node.log_size() for node in altering.nodes]
    with pytest.raises(ConfigError) as caught:
        event.prepare(altering)

    assert [fact for fact in facts if fact not in str(caught.value)] == []
    assert definitions(altering) == before
    assert altering.nodes[0].query("SHOW DATABASES LIKE 'dbcluster_rehearsal'") == []
    assert [
        node.name for node, size in zip(altering.nodes, seen, strict=True) if "[ERROR]" in node.log_text(size)
    ] == []


@pytest.mark.parametrize(
    ("event", "marks"),
    [
        (Alter(INDEX), ["altered", "altered on all nodes"]),
        (Alter(COLUMN, method="TOI"), ["altered", "altered on all nodes"]),
        (Alter(COLUMN, method="INSTANT"), ["altered", "altered on all nodes"]),
        (Alter(COLUMN, method="COPY"), ["altered", "altered on all nodes"]),
        (Alter(INDEX, method="RSU"), ["node2 altered", "node1 altered", "altered on all nodes"]),
        (Alter("ALTER TABLE altered_here FORCE", undo="ALTER TABLE altered_here FORCE"), None),
    ],
)
def test_a_change_is_on_all_nodes_and_is_undone(altering, event, marks):
    """Each method has its proof, and the next repetition finds the table of the first one."""
    before = definitions(altering)
    event.prepare(altering)
    happened = event.act(altering)
    changed = definitions(altering)

    assert (happened.void, happened.node) == ("", "")
    assert list(happened.marks) == (marks or ["altered", "altered on all nodes"])
    assert sorted(happened.marks.values()) == list(happened.marks.values())
    assert (changed == before) == (marks is None)
    assert event.restore(altering, happened) is None
    assert definitions(altering) == before


def test_pt_online_schema_change_renames_a_changed_copy(altering, mariadb):
    """On all nodes, with all rows. It leaves no trigger, and a plain statement undoes the change."""
    before, node = definitions(altering), altering.nodes[0]
    event = Alter(INDEX, method="pt-osc").equip(Stage([mariadb], {}), [])
    event.prepare(altering)
    happened = event.act(altering)

    assert (happened.void, list(happened.marks)) == ("", ["altered", "altered on all nodes"])
    assert all("by_n" in definition for definition in definitions(altering))
    assert node.query("SELECT COUNT(*) FROM alter_tests.altered_here") == [(100,)]
    assert node.query("SHOW TRIGGERS FROM alter_tests") == []
    assert event.restore(altering, happened) is None
    assert definitions(altering) == before


def test_what_pt_online_schema_change_cannot_do_is_refused(altering, mariadb, mysql):
    """Another server by its name, and a table without a key before the load starts."""
    altering.nodes[0].query("CREATE TABLE alter_tests.keyless (n INT)")
    assert altering.settle(30)
    event = Alter("ALTER TABLE keyless ADD INDEX by_n (n)", method="pt-osc")
    with pytest.raises(ConfigError, match=r'^Alter\(method="pt-osc"\): we run it on MariaDB only, not on mysql:9\.7$'):
        event.equip(Stage([mariadb, mysql], {}), [])
    with pytest.raises(ConfigError, match="PRIMARY KEY"):
        event.equip(Stage([mariadb], {}), []).prepare(altering)


def test_a_change_that_was_made_before_proves_nothing(altering):
    """The repetition is void, and the error is the reason."""
    event = Alter(INDEX)
    event.prepare(altering)
    altering.nodes[0].query("ALTER TABLE alter_tests.altered_here ADD INDEX by_n (n)")
    assert altering.settle(30)
    happened = event.act(altering)

    assert "Duplicate key name 'by_n'" in happened.void
    assert event.restore(altering, happened) is None
    assert all("by_n" in definition for definition in definitions(altering))


def test_rsu_begins_again_after_a_lock_wait(altering):
    """A transaction that keeps the table's metadata lock delays the change of its node."""
    event = Alter(INDEX, method="RSU")
    with altering.nodes[1].separate() as reader:
        reader.run(["BEGIN", "SELECT COUNT(*) FROM alter_tests.altered_here"])
        began = time.monotonic()
        release = threading.Timer(1.5, reader.query, ["COMMIT"])
        release.start()
        happened = event.act(altering)
        release.join()

    assert happened.void == ""
    assert time.monotonic() - began >= 1.5
    event.restore(altering, happened)
