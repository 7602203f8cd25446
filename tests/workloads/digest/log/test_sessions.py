"""Sessions: which statements of a log are one transaction."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.digest.log import sessions as module
from pytest_dbcluster.workloads.digest.log.log_files import UNKNOWN, Figures, LogEntry
from pytest_dbcluster.workloads.digest.log.sessions import Sessions


def read(*statements):
    """The sessions of statements: a text, a pair of thread and text, or an entry."""
    sessions = Sessions()
    sessions.read(
        each
        if isinstance(each, LogEntry)
        else LogEntry(
            *((1, "Query", each) if isinstance(each, str) else (each[0], "Query", each[1])),
            "shop",
            Figures(0.5, 1, 2, 3),
            9,
        )
        for each in statements
    )
    return sessions


def found(*statements):
    """Ending, statements and count of each class."""
    sessions = read(*statements)
    texts = sessions.shapes.texts()
    return [
        (one.ending, " | ".join(texts[shape] for unit in one.runs for shape in unit), one.count)
        for one in sessions.classes.found.values()
    ]


@pytest.mark.parametrize("begin", ["BEGIN", "START TRANSACTION", "begin work", "START TRANSACTION READ ONLY"])
def test_statements_from_begin_to_commit_are_one_transaction(begin):
    """A statement without BEGIN is one by itself."""
    assert found(begin, "SELECT 1", "UPDATE t SET a = 2", "COMMIT", "SELECT 3") == [
        ("COMMIT", "SELECT ? | UPDATE t SET a = ?", 1),
        ("", "SELECT ?", 1),
    ]


def test_connections_do_not_mix():
    """Each has its own transaction."""
    assert found((1, "BEGIN"), (2, "BEGIN"), (1, "SELECT 1"), (2, "DELETE FROM t"), (2, "ROLLBACK"), (1, "COMMIT")) == [
        ("ROLLBACK", "DELETE FROM t", 1),
        ("COMMIT", "SELECT ?", 1),
    ]


@pytest.mark.parametrize("off", ["SET autocommit=0", "SET AUTOCOMMIT = 0", "SET @@session.autocommit = OFF"])
def test_without_autocommit_a_transaction_begins_with_its_first_statement(off):
    """And COMMIT begins the next one."""
    assert found(off, "SELECT 1", "COMMIT", "SELECT 2", "COMMIT", "SET autocommit = 1", "SELECT 3") == [
        ("COMMIT", "SELECT ?", 2),
        ("", "SELECT ?", 1),
    ]


def test_begin_and_autocommit_end_an_open_transaction():
    """The server commits it."""
    assert found("BEGIN", "SELECT 1", "BEGIN", "SELECT a", "SET autocommit=1", "COMMIT") == [
        ("COMMIT", "SELECT ?", 1),
        ("COMMIT", "SELECT a", 1),
    ]


def test_names_of_savepoints_do_not_count():
    """Frameworks make a new one each time."""
    one = ("BEGIN", "SAVEPOINT `s1_x1`", "SELECT 1", "RELEASE SAVEPOINT `s1_x1`", "COMMIT")
    two = ("BEGIN", "SAVEPOINT `s1_x2`", "SELECT 1", "RELEASE SAVEPOINT `s1_x2`", "COMMIT")

    assert found(*one, *two) == [("COMMIT", "SAVEPOINT s1 | SELECT ? | RELEASE SAVEPOINT s1", 2)]


def test_use_changes_the_database_where_the_log_does_not_name_it():
    """A general log has it only in USE. A slow log names that of each statement."""
    general = [
        LogEntry(1, "Query", text, None, UNKNOWN, 9) for text in ("USE `other`", "SELECT 1", "use third", "SELECT 1")
    ]
    slow = [LogEntry(2, "Query", text, "shop", UNKNOWN, 9) for text in ("USE other", "SELECT 1")]

    assert {one.schema for one in read(*general).classes.found.values()} == {"other", "third"}
    assert {one.schema for one in read(*slow).classes.found.values()} == {"shop"}


def test_what_sets_up_a_session_is_counted_apart():
    """It is no transaction of the workload."""
    sessions = read(
        "SET NAMES utf8mb4", "SELECT @@version", "SHOW VARIABLES", "SELECT CONNECTION_ID()", "SELECT 1", "COMMIT"
    )

    assert sessions.totals.setup == 5
    assert [one.count for one in sessions.classes.found.values()] == [1]


def test_a_transaction_without_an_end_is_no_class():
    """The connection or the log ends before it."""
    sessions = read("BEGIN", "SELECT 1", LogEntry(1, "Quit", "", None, UNKNOWN, 0), (2, "BEGIN"))

    assert sessions.classes.found == {}
    assert sessions.totals.unfinished == 3
    assert sessions.totals.unfinished_seconds == 1.5


def test_the_time_of_a_class_has_begin_and_commit():
    """All seconds of the log are in a class, or in a part that is named."""
    sessions = read("BEGIN", "SELECT 1", "COMMIT")
    (one,) = sessions.classes.found.values()

    assert (one.seconds, one.sent, one.examined, one.affected) == (1.5, 1, 2, 3)
    assert sessions.totals.seconds == 1.5


def test_a_long_transaction_is_counted_and_not_kept(monkeypatch):
    """So memory does not grow with it."""
    monkeypatch.setattr(module, "MOST_STATEMENTS", 3)
    sessions = read("BEGIN", *["SELECT 1"] * 10, "COMMIT")

    assert sessions.classes.found == {}
    assert (sessions.totals.too_long, sessions.totals.too_long_seconds) == (1, 6.0)


def test_connections_without_an_end_take_no_memory(monkeypatch):
    """The oldest one is dropped."""
    monkeypatch.setattr(module, "MOST_SESSIONS", 5)
    sessions = Sessions()
    for thread in range(50):
        sessions.add(LogEntry(thread, "Query", "SELECT 1", "", UNKNOWN, 0))

    assert len(sessions._sessions) == 5
    assert sessions.totals.connections == 50
