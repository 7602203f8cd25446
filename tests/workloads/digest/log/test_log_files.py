"""Entries of slow logs and general logs of both vendors."""

from __future__ import annotations

import gzip
import os

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.digest.log import log_files
from pytest_dbcluster.workloads.digest.log.log_files import GENERAL, SLOW, open_log
from tests.workloads.digest.logs import BEGIN, COLUMNS, HEAD, entry, slow, write

OLD_GENERAL = (
    HEAD + COLUMNS + "231114 22:13:20\t     8 Connect\tapp@localhost on shop using Socket\n\t\t     8 Query\tSELECT 1\n"
    "\t\t     9 Init DB\tother\n231114  2:13:21\t     8 Execute\tSELECT\n  2\n"
    "\t\t     8 Prepare\tSELECT ?\n\t\t     8 Quit\t\n"
)
NEW_GENERAL = (
    HEAD + COLUMNS + "2023-11-14T22:13:20.000001Z\t    8 Connect\tapp@localhost on shop using TCP/IP\n"
    "2023-11-14T22:13:20.000001Z\t    8 Query\tSELECT 1\n2023-11-14T22:13:20.000002Z\t    9 Init DB\tother\n"
    "2023-11-14T22:13:21.000003Z\t    8 Execute\tSELECT\n  2\n2023-11-14T22:13:21.000003Z\t    8 Quit\t\n"
)


def entries(path, text):
    """The entries of a log with this text."""
    with open_log(write(path / "log", text)) as log:
        return list(log.entries())


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_an_entry_of_a_slow_log_has_its_figures(tmp_path, vendor):
    """Thread, time, seconds, and rows; those that MySQL does not write are unknown."""
    (one,) = entries(
        tmp_path, slow([("SELECT 1", {"thread": 7, "seconds": 0.5, "sent": 3, "examined": 9})], vendor=vendor)
    )

    assert (one.thread, one.command, one.text, one.time) == (7, "Query", "SELECT 1", BEGIN)
    assert one.figures == (0.5, 3, 9, 0 if vendor == "mariadb" else -1)


def test_a_statement_keeps_its_lines(tmp_path):
    """Lines that look like a comment of the log, or like a time, stay too."""
    text = "SELECT 1, -- one\n# two\n  'a;\n# Time: never' "
    first, second = entries(tmp_path, slow([text, "SELECT 2"]))

    assert first.text == text
    assert second.text == "SELECT 2"


def test_a_connection_without_a_database_has_none(tmp_path):
    """MariaDB writes nothing between the words, and the next one is no database."""
    text = slow(["SELECT 1 FROM shop.docs"]).replace("Schema: shop  QC_hit", "Schema:   QC_hit")
    (one,) = entries(tmp_path, text)

    assert not one.schema


def test_use_holds_until_the_next_one(tmp_path):
    """MySQL writes it only where the database changes."""
    text = slow([("SELECT 1", {"use": "shop"}), "SELECT 2", ("SELECT 3", {"use": "`other`"})], vendor="mysql")

    assert [one.schema for one in entries(tmp_path, text)] == ["shop", "shop", "other"]


def test_a_command_of_a_client_is_no_statement(tmp_path):
    """Its name is the command of the entry."""
    (one,) = entries(tmp_path, slow(["# administrator command: Quit"]))

    assert (one.command, one.text) == ("Quit", "")


def test_a_restart_of_the_server_is_no_part_of_a_statement(tmp_path):
    """Its lines stand between two entries."""
    text = slow(["SELECT 1"]) + HEAD + COLUMNS + entry("SELECT 2")

    assert [one.text for one in entries(tmp_path, text)] == ["SELECT 1", "SELECT 2"]


def test_an_entry_of_an_unknown_form_is_counted(tmp_path):
    """And the others are read."""
    text = slow(["SELECT 1"]) + "# User@Host: x\nnothing\n" + entry("SELECT 2")
    with open_log(write(tmp_path / "log", text)) as log:
        found = [one.text for one in log.entries()]

    assert found == ["SELECT 1", "SELECT 2"]
    assert log.unread == 1


@pytest.mark.parametrize("text", [OLD_GENERAL, NEW_GENERAL], ids=["mariadb", "mysql"])
def test_a_general_log_has_statements_without_figures(tmp_path, text):
    """An executed prepared statement is a statement; preparing it is not."""
    with open_log(write(tmp_path / "log", text)) as log:
        found = [one for one in log.entries() if one.command != "Prepare"]

    assert log.kind == GENERAL
    assert [(one.thread, one.command, one.text) for one in found[1:]] == [
        (8, "Query", "SELECT 1"), (9, "Init DB", "other"), (8, "Query", "SELECT\n  2"), (8, "Quit", "")
    ]  # fmt: skip
    assert (found[0].schema, found[2].schema) == ("shop", "other")
    assert found[1].time == BEGIN
    assert {one.figures for one in found} == {log_files.UNKNOWN}


def test_a_gzip_file_is_read_as_it_is(tmp_path):
    """Whatever its name is."""
    path = tmp_path / "slow.log.gz"
    path.write_bytes(gzip.compress(slow(["SELECT 1"]).encode()))

    with open_log(path) as log:
        assert [one.text for one in log.entries()] == ["SELECT 1"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_is_read_once(tmp_path, packed):
    """So a log needs no place on a disk; its size is what was read."""
    os.mkfifo(tmp_path / "pipe")
    text = slow([f"SELECT {number}" for number in range(20_000)])
    data = gzip.compress(text.encode()) if packed else text.encode()
    with wait.threads(1) as writing:
        written = writing.submit((tmp_path / "pipe").write_bytes, data)
        with open_log(tmp_path / "pipe") as log:
            found = [one.text for one in log.entries()]
        written.result()

    assert found == [f"SELECT {number}" for number in range(20_000)]
    assert log.bytes == len(text) > log_files.CHUNK


def test_a_cut_gzip_file_is_an_error(tmp_path):
    """It says to copy the log again."""
    path = tmp_path / "slow.log.gz"
    path.write_bytes(gzip.compress(slow([f"SELECT {number}" for number in range(500)]).encode())[:-500])

    with pytest.raises(ConfigError, match="damaged gzip file"), open_log(path) as log:
        list(log.entries())


@pytest.mark.parametrize("size", [7, 50, 333])
def test_entries_over_the_borders_of_chunks_are_whole(size):
    """For every size of a chunk; lines too."""
    text = slow([f"SELECT '{'x' * number}'" for number in range(30)])

    def chunks():
        return (text[at : at + size] for at in range(0, len(text), size))

    assert list(log_files.blocks(chunks())) == list(log_files.blocks([text]))
    assert len(list(log_files.blocks(chunks()))) == 30
    assert "".join(log_files.lines(chunks())) == text


def test_a_statement_that_is_too_long_is_cut(tmp_path, monkeypatch):
    """The next entry is whole, and memory stays small."""
    monkeypatch.setattr(log_files, "CHUNK", 1000)
    monkeypatch.setattr(log_files, "LONGEST", 1000)
    long = f"SELECT '{'x' * 50_000}'"
    general = HEAD + COLUMNS + f"\t\t     8 Query\t{long}\n\t\t     8 Query\tSELECT 2\n"
    for text in (slow([long, "SELECT 2"]), general):
        first, second = entries(tmp_path, text)

        assert 900 < len(first.text) < 3100
        assert second.text == "SELECT 2"


def test_bytes_that_are_no_utf8_are_no_error(tmp_path):
    """Clients send any character set."""
    path = tmp_path / "log"
    path.write_bytes(slow(["SELECT 'X'"]).encode().replace(b"X", b"\xff\xfe"))

    with open_log(path) as log:
        (one,) = log.entries()
    assert one.text == "SELECT '\udcff\udcfe'"


def test_a_slow_log_is_known_by_its_first_entries(tmp_path):
    """Without the lines of a start of the server too."""
    with open_log(write(tmp_path / "log", entry("SELECT 1"))) as log:
        assert log.kind == SLOW


@pytest.mark.parametrize("text", ["", "\n\n", HEAD + COLUMNS], ids=["empty", "blank", "only a head"])
def test_an_empty_log_says_how_to_get_one(tmp_path, text):
    """With the options of the server."""
    with pytest.raises(ConfigError, match="has no statement: set slow_query_log = ON and long_query_time = 0"):
        entries(tmp_path, text)


def test_a_file_that_is_no_log_is_refused(tmp_path):
    """The message names what a log has."""
    with pytest.raises(ConfigError, match="is neither a slow log nor a general log"):
        entries(tmp_path, "CREATE TABLE t (id INT);\n")


def test_a_missing_file_is_refused(tmp_path):
    """With the system's reason; a directory too."""
    with pytest.raises(ConfigError, match=r"cannot read the log .*: No such file"), open_log(tmp_path / "nothing"):
        pass
    with pytest.raises(ConfigError, match="is a directory: name the file"), open_log(tmp_path):
        pass
