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
