"""dbcluster compare: what it compares, and one clear sentence for wrong arguments."""

from __future__ import annotations

import argparse

import pytest

from pytest_dbcluster.cli import compare
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.command import dbcluster


def given(**changes):
    """The arguments of a command line."""
    usual = {"cnf": [], "release": [], "topology": "standalone", "nodes": None}
    return argparse.Namespace(**{**usual, **changes})


def test_two_releases_are_compared_with_the_first_as_baseline():
    """Each variant is named after its release."""
    older, newer = compare.specs_of(given(release=["mariadb:10.11", "mariadb:11.8"], topology="galera"))

    assert (str(older), str(newer)) == ("mariadb_10.11", "mariadb_11.8")
    assert (older.nodes, str(newer.release)) == (3, "mariadb:11.8")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["current.cnf", "candidate.cnf"], ("current", "candidate")),
        (["old/my.cnf", "new/my.cnf"], ("old_my", "new_my")),
        (["my.cnf", "my.cnf"], ("my_1", "my_2")),
    ],
)
def test_variants_are_named_after_their_files(tmp_path, files, names):
    """The directory is part of the name where both files have the same name."""
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n")

    specs = compare.specs_of(given(cnf=[str(tmp_path / name) for name in files]))

    assert tuple(map(str, specs)) == names


def test_two_files_on_two_releases_are_paired_in_order(tmp_path):
    """An upgrade with a new my.cnf is one comparison."""
    for name in ("old", "new"):
        (tmp_path / f"{name}.cnf").write_text("[mysqld]\nmax_connections = 200\n")
    files = [str(tmp_path / "old.cnf"), str(tmp_path / "new.cnf")]

    old, new = compare.specs_of(given(cnf=files, release=["mariadb:10.11", "mariadb:11.8"]))

    assert (str(old), str(old.release)) == ("old", "mariadb:10.11")
    assert (str(new), str(new.release)) == ("new", "mariadb:11.8")


@pytest.mark.parametrize("changes", [{}, {"cnf": ["a.cnf"]}, {"release": ["mariadb:10.11"]}, {"cnf": ["a"] * 3}])
def test_one_variant_or_three_are_refused(changes):
    """The error shows how two files, or two releases, are given."""
    with pytest.raises(ConfigError, match=r"takes two my\.cnf files \(--cnf current\.cnf --cnf candidate\.cnf\)"):
        compare.specs_of(given(**changes))


@pytest.mark.parametrize(
    ("text", "threads", "expected"),
    [
        ("tpcc", None, TPCC()),
        ("tpcc", 8, TPCC(threads=8)),
        ("sysbench:oltp_read_only", 4, SysBench("oltp_read_only", threads=4)),
        ("mysqlslap:mixed", 20, MySQLSlap("mixed", concurrency=20)),
    ],
)
def test_a_workload_is_written_with_its_mode(text, threads, expected):
    """``--threads`` is the number of connections, whatever the workload calls it."""
    assert compare.workload_of(text, threads) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tpcd", "unknown workload 'tpcd'; known: tpcc, sysbench, mysqlslap; did you mean tpcc?"),
        ("sysbench", "unknown script of sysbench ''; known: oltp_delete"),
        ("sysbench:oltp_readwrite", "did you mean oltp_read_write?"),
        ("mysqlslap:writes", "did you mean write?"),
        ("tpcc:mix", "tpcc has no modes"),
    ],
)
def test_a_wrong_workload_is_answered_with_the_known_ones(text, sentence):
    """A closed vocabulary lists itself."""
    with pytest.raises(ConfigError) as error:
        compare.workload_of(text, None)

    assert sentence in str(error.value)


def test_wrong_arguments_end_with_2():
    """1 and 2 mean what they mean in every command."""
    done = dbcluster("compare")

    assert (done.returncode, done.stdout) == (2, "")
    assert "takes two my.cnf files" in done.stderr


def test_variables_with_two_values_are_listed_and_others_counted():
    """Another release has dozens of variables of its own; each variable with two values says what differs."""
    variables = {
        "sync_binlog": ("0", "1"),
        "optimizer_disk_read_cost": ("", "10.24"),
        "date_format": ("%Y-%m-%d", ""),
        "version_comment": ("Debian 12", "Debian 13"),
        "plugin_dir": ("/a", "/b"),
        "optimizer_switch": ("index_merge=on", "index_merge=off," * 20),
    }

    lines = compare.differences(variables, ("flushed", "flushed"), ("old", "new"))

    assert lines[1:3] == ["differs in effect:", "variable          old             new"]
    assert [line.split()[0] for line in lines[3:5]] == ["optimizer_switch", "sync_binlog"]
    assert len(lines[3].split()[2]) == 60
    assert lines[5:] == [
        "only old has a value for 1 variable: date_format",
        "only new has a value for 1 variable: optimizer_disk_read_cost",
    ]


def test_what_a_commit_guarantees_is_said_where_it_differs():
    """A candidate that is faster because it flushes less says so."""
    variables = {"innodb_flush_log_at_trx_commit": ("1", "2")}

    lines = compare.differences(variables, ("flushed at commit", "flushed each second"), ("current", "candidate"))

    assert lines[-1] == "a commit guarantees: current flushed at commit; candidate flushed each second"


def test_equal_servers_differ_in_nothing():
    """Two files with the same effect are called that."""
    assert compare.differences({}, ("x", "x"), ("a", "b")) == ["", "differs in effect: no server variable"]


def two_files(directory, first, second):
    """The arguments that compare two my.cnf files with these lines."""
    for name, lines in (("current", first), ("candidate", second)):
        (directory / f"{name}.cnf").write_text(f"[mysqld]\n{lines}\n")
    return [f"--cnf={directory / name}.cnf" for name in ("current", "candidate")]


def test_two_files_are_compared_on_real_servers(tmp_path):
    """One command reads both files, measures, names what differs, and ends with a sentence and its exit code."""
    files = two_files(tmp_path, "innodb_flush_log_at_trx_commit = 1\nport = 3306", "innodb_flush_log_at_trx_commit = 2")

    done = dbcluster("compare", *files, "--workload=mysqlslap:write", "--seconds=25", seconds=180)

    lines = done.stdout.splitlines()
    ends = {0: "candidate is no worse than current: ", 3: "candidate is worse than current: ", 4: "could not tell "}
    assert done.returncode in ends, done.stderr
    assert lines[-1].startswith(ends[done.returncode])
    assert any("concerns the host" in line or "concern the host" in line for line in lines)  # its port
    assert any(line.startswith("mysqlslap write c50 ") for line in lines)
    differing = [line.split() for line in lines if line.startswith("innodb_flush_log_at_trx_commit")]
    assert differing == [["innodb_flush_log_at_trx_commit", "1", "2"]]


def test_two_files_with_the_same_options_are_not_measured(tmp_path):
    """Another spelling, or another host's port, is no difference."""
    files = two_files(
        tmp_path, "innodb-flush-log-at-trx-commit=2\nport=1", "innodb_flush_log_at_trx_commit = 2\nport=2"
    )

    done = dbcluster("compare", *files)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (
        "current and candidate give the servers the same options: candidate is no worse than current"
    )


@pytest.mark.parametrize("seconds", ["0", "-5", "nan", "inf", "9"])
def test_a_time_that_decides_nothing_is_refused(seconds):
    """Before anything starts."""
    done = dbcluster("compare", "--release=mariadb:10.11", "--release=mariadb:11.8", f"--seconds={seconds}")

    assert done.returncode == 2
    assert "a comparison takes 10 s or more" in done.stderr


def test_a_missing_file_is_named(tmp_path):
    """Before anything starts."""
    done = dbcluster("compare", "--cnf=/nowhere/a.cnf", "--cnf=/nowhere/b.cnf")

    assert done.returncode == 2
    assert "/nowhere/a.cnf" in done.stderr


def test_what_is_wrong_in_either_file_is_said_at_once(tmp_path):
    """Both files are checked before a server starts: the options and lines of both that the release cannot take."""
    files = two_files(tmp_path, "innodb_large_prefix=1", "innodb_flash=1")

    done = dbcluster("compare", *files)

    assert done.returncode == 2
    assert "current.cnf:2: innodb_large_prefix=1: " in done.stderr
    assert "candidate.cnf:2: innodb_flash=1: " in done.stderr
    assert "cold-start reference" not in done.stderr
