"""dbcluster compare: what it compares, and one clear sentence for wrong arguments."""

from __future__ import annotations

import argparse
import dataclasses
import types

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.cli.compare import command as compare
from pytest_dbcluster.cli.compare.comparison import ComparisonResults
from pytest_dbcluster.cli.main import main
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents.run_document import read_run
from pytest_dbcluster.reporting.recording import Asked
from pytest_dbcluster.reporting.resume import earlier
from pytest_dbcluster.reporting.tables.no_worse import ComparedWorkload
from pytest_dbcluster.system import machine_lock
from tests.support.command import SHORT_COMPARISON, alone, dbcluster, measuring_in
from tests.support.facts import missing
from tests.support.records import record, undecided
from tests.workloads.sql.directories import directory


def given(**changes):
    """The arguments of a command line."""
    usual = {"option": [], "cnf": [], "release": [], "topology": "standalone", "nodes": None}
    return argparse.Namespace(**{**usual, **changes})


def test_an_option_of_the_command_is_one_of_both_variants():
    """It overrides that of both files, so that a size fits this machine."""
    both = compare.specs_of(given(release=["mariadb:10.11", "mariadb:11.8"], option=["innodb_buffer_pool_size=1G"]))

    assert [dict(spec.options) for spec in both] == [{"innodb_buffer_pool_size": "1G"}] * 2


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


def test_a_link_gives_its_own_name(tmp_path, monkeypatch):
    """The checkout of a pull request is called ``head`` in this way; a path with .. counts as what it means."""
    for place in ("base", "project/sub"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "my.cnf").write_text("[mysqld]\nmax_connections = 200\n")
    (tmp_path / "head").symlink_to(tmp_path / "project" / "sub")
    monkeypatch.chdir(tmp_path / "project")

    specs = compare.specs_of(given(cnf=[str(tmp_path / name / "my.cnf") for name in ("base", "head")]))
    beside = compare.specs_of(given(cnf=["../base/my.cnf", "sub/../sub/my.cnf"]))

    assert tuple(map(str, specs)) == ("base_my", "head_my")
    assert tuple(map(str, beside)) == ("base_my", "sub_my")


def test_two_files_on_two_releases_are_paired_in_order(tmp_path):
    """An upgrade with a new my.cnf is one comparison."""
    for name in ("old", "new"):
        (tmp_path / f"{name}.cnf").write_text("[mysqld]\nmax_connections = 200\n")
    files = [str(tmp_path / "old.cnf"), str(tmp_path / "new.cnf")]

    old, new = compare.specs_of(given(cnf=files, release=["mariadb:10.11", "mariadb:11.8"]))

    assert (str(old), str(old.release)) == ("old", "mariadb:10.11")
    assert (str(new), str(new.release)) == ("new", "mariadb:11.8")


@pytest.mark.parametrize("changes", [{}, {"cnf": ["a.cnf"]}, {"release": ["mariadb:10.11"]}, {"cnf": ["a"] * 18}])
def test_one_variant_is_refused_and_so_are_too_many(changes):
    """The error shows how two files, or two releases, are given."""
    with pytest.raises(ConfigError, match=r"needs two my\.cnf files \(--cnf current\.cnf --cnf candidate\.cnf\)"):
        compare.specs_of(given(**changes))


def test_wrong_arguments_end_with_2(called):
    """1 and 2 mean what they mean in every command."""
    done = called("compare")

    assert (done.returncode, done.stdout) == (2, "")
    assert "needs two my.cnf files" in done.stderr


def evidence(old, new, variables):
    """What two servers guarantee, and the variables in which they differ."""
    return Evidence(durability={"new": new, "old": old}, differences={("new", "old"): variables})


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

    lines = compare.differences(evidence("flushed", "flushed", variables), ("old", "new"))

    assert lines[1:3] == ["differs in effect:", "variable          old             new"]
    assert [line.split()[0] for line in lines[3:5]] == ["optimizer_switch", "sync_binlog"]
    assert len(lines[3].split()[2]) == 60
    of_old, of_new = lines[5:]
    assert missing(of_old, "only old", "1 variable: date_format") == []
    assert missing(of_new, "only new", "1 variable: optimizer_disk_read_cost") == []


def test_what_a_commit_guarantees_is_said_where_it_differs():
    """A candidate that is faster because it flushes less says so."""
    variables = {"innodb_flush_log_at_trx_commit": ("1", "2")}

    lines = compare.differences(evidence("flushed at commit", "flushed each second", variables), ("old", "new"))

    assert missing(lines[-1], "a commit guarantees", "old flushed at commit", "new flushed each second") == []


def test_equal_servers_differ_in_nothing():
    """Two files with the same effect are called that."""
    empty, line = compare.differences(evidence("x", "x", {}), ("old", "new"))

    assert empty == ""
    assert missing(line, "differs in effect", "no server variable") == []


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ({}, {"sync_binlog": "0"}, "sync_binlog is 0"),
        ({"max_connections": "151"}, {}, "max_connections is 151"),
        ({}, {"innodb_buffer_pool_size": "100M"}, "innodb_buffer_pool_size is 134217728"),
        ({}, {"binlog_format": "ROW"}, "binlog_format is ROW"),
        ({"sync_binlog": "0"}, {"sync_binlog": "OFF"}, ""),
        ({}, {"innodb_io_capacity": "400"}, ""),
        ({}, {"port": "3306"}, ""),
        ({}, {"skip_name_resolve": ""}, ""),
    ],
    ids=["default", "of the baseline", "changed by the server", "by the topology", "both", "differs", "port", "word"],
)
def test_an_option_without_an_effect_is_named(old, new, shown):
    """With the value of both servers. An option that differs has a row, and a word without a variable has no value."""
    usual = {
        "sync_binlog": "0",
        "max_connections": "151",
        "innodb_buffer_pool_size": "134217728",
        "binlog_format": "MIXED",
        "innodb_io_capacity": "200",
        "port": "3306",
    }
    sides, variables = (old, new), [{**usual, **each} for each in (old, new)]

    measured = evidence("x", "x", {"innodb_io_capacity": ("200", "400")})
    lines = compare.equal_options(measured, sides, variables)
    assert lines == ([f"no difference: {shown} in both"] if shown else [])
    assert compare.equal_options(Evidence(), sides, variables) == []


def two_files(directory, first, second):
    """The arguments that compare two my.cnf files with these lines."""
    for name, lines in (("current", first), ("candidate", second)):
        (directory / f"{name}.cnf").write_text(f"[mysqld]\n{lines}\n")
    return [f"--cnf={directory / name}.cnf" for name in ("current", "candidate")]


def results_in(directory, before=None):
    """The results of a comparison of two workloads."""
    asked = Asked("dbcluster compare", "quick", "dbcluster compare --cnf a b")
    return ComparisonResults(directory, asked, 2, (), before, lambda line: None)


def test_an_answer_is_written_when_it_is_there(tmp_path):
    """A comparison that is killed has lost none, and the next one removes them with its own first answer."""
    tpcc, sysbench = (record(kinds.no_slower_than(0.05), test=f"dbcluster compare::{name}") for name in ("a", "b"))
    results_in(tmp_path).add(tpcc)
    after = results_in(tmp_path)
    kept = [claim.test for claim in schema.read_claims(tmp_path)]
    after.add(sysbench)

    assert kept == ["dbcluster compare::a"]
    assert [claim.test for claim in schema.read_claims(tmp_path)] == ["dbcluster compare::b"]


def test_a_comparison_that_is_continued_keeps_its_answers(tmp_path):
    """With ``--resume`` the answers of the comparison before stay, and its run is named."""
    whole = record(kinds.no_slower_than(0.05))
    first, second = (
        dataclasses.replace(whole, test=f"dbcluster compare::{name}", claim_id=f"{name} | claim") for name in ("a", "b")
    )
    results_in(tmp_path).add(first)
    begun = read_run(tmp_path).run_id
    after = results_in(tmp_path, earlier.read(tmp_path))
    after.add(second)
    after.finish([ComparedWorkload("b", None)])

    assert [claim.test for claim in schema.read_claims(tmp_path)] == ["dbcluster compare::a", "dbcluster compare::b"]
    assert [one.run_id for one in read_run(tmp_path).continues] == [begun]


def test_a_missing_answer_is_followed_by_the_command_that_measures_it():
    """A comparison with all answers has no such line."""
    whole = ComparedWorkload("a", types.SimpleNamespace(interrupted=False))
    (line,) = compare.missing_answers(
        [whole, ComparedWorkload("b", types.SimpleNamespace(interrupted=False), reason="no time")],
        "dbcluster compare x",
    )

    assert "p95 of b" in line
    assert line.endswith("dbcluster compare x --resume")
    assert compare.missing_answers([whole], "dbcluster compare x") == []


def test_a_comparison_has_the_page_of_a_run(tmp_path):
    """Its claims, its command, and a workload without an answer."""
    claim = record(kinds.no_slower_than(0.05), test="dbcluster compare::tpcc")
    answered = [ComparedWorkload("tpcc", None, reason="no time"), ComparedWorkload("sysbench", None, reason="too slow")]
    results = results_in(tmp_path)
    results.add(claim)
    lines = results.finish(answered)
    run = read_run(tmp_path)

    assert lines == [f"report: {tmp_path}/index.html"]
    assert "no_slower_than" in (tmp_path / "index.html").read_text()
    assert schema.read_claims(tmp_path)[0].run_id == run.run_id
    assert run.command == "dbcluster compare --cnf a b"
    assert [(test.test, test.outcome, test.reason) for test in run.tests] == [
        ("dbcluster compare::tpcc", "inconclusive", "no time"),
        ("dbcluster compare::sysbench", "inconclusive", "too slow"),
    ]


def test_a_comparison_that_could_not_tell_names_the_page_with_what_to_do(tmp_path):
    """As a run of pytest does."""
    results = results_in(tmp_path)
    results.add(undecided(test="dbcluster compare::tpcc"))

    assert [line for line in results.finish([]) if line.startswith("what to do (budget-used): ")]


def test_results_that_cannot_be_written_are_refused_before_a_server_starts(called, tmp_path):
    """The error names the option of this command."""
    (tmp_path / "taken").write_text("")
    files = two_files(tmp_path, "max_connections = 100", "max_connections = 200")

    done = called("compare", *files, f"--results={tmp_path}/taken")

    assert done.returncode == 2
    assert f"cannot write results into {tmp_path}/taken: {tmp_path}/taken is a file, not a directory" in done.stderr
    assert "choose another one with --results DIR" in done.stderr


def test_two_files_with_the_same_options_are_not_measured(called, tmp_path):
    """Another spelling, or another host's port, is no difference; it says so, and is no worse for a gate."""
    files = two_files(
        tmp_path,
        "innodb-flush-log-at-trx-commit=2\ninnodb_buffer_pool_size=256M\nport=1",
        "innodb_flush_log_at_trx_commit = 2\ninnodb_buffer_pool_size=268435456\nport=2",
    )

    done = called("compare", *files)

    assert done.returncode == 0, done.stderr
    said, sentence = done.stdout.splitlines()[-2:]
    assert "candidate.cnf give the servers the same options, so no server was started (--equal measures" in said
    assert missing(sentence, "candidate is no worse than current", "the same options") == []
    assert "comparing" not in done.stderr
    assert "cold-start reference" not in done.stderr


@pytest.mark.parametrize("given", ["files", "file", "releases"])
def test_what_is_given_twice_is_a_mistake(called, tmp_path, given):
    """Nothing is started, and the answer is no result but a wrong use: what to give instead."""
    files = two_files(tmp_path, "innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit = 2")
    words = {"files": files, "file": [files[0]] * 2, "releases": ["--release=mariadb:10.11"] * 2}[given]

    done = called("compare", *words)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "so no server was started; give two different files or releases" in done.stderr
    assert "mariadb_10.11_1 is there twice" in done.stderr or "are equal" in done.stderr
    assert "starting" not in done.stderr


def test_equal_files_are_measured_where_it_is_asked_for(tmp_path):
    """``--equal`` shows what equal servers look like on this machine: they are not worse."""
    files = two_files(tmp_path, "innodb_flush_log_at_trx_commit = 2", "innodb_flush_log_at_trx_commit = 2")
    shop = directory(tmp_path / "shop", {"browse.sql": "\\sleep 2 ms\nSELECT name FROM items WHERE id = 1;\n"})

    words = ["--equal", f"--workload={shop}/", "--threads=4", "--seconds=10"]
    done = dbcluster("compare", *files, *words, seconds=180, program=alone(tmp_path / "bin", SHORT_COMPARISON))

    assert done.returncode in (0, 4), done.stderr
    assert "differs in effect: no server variable" in done.stdout
    assert any(line.startswith("sql shop t4 ") for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ("0", "--seconds 0: a comparison needs 10 s or more"),
        ("9s", "--seconds 9s: a comparison needs 10 s or more"),
        ("-5", "--seconds '-5': it accepts a time in ms, s, min, h or d"),
        ("nan", "--seconds 'nan': it accepts a time in ms, s, min, h or d"),
        ("inf", "--seconds 'inf': it accepts a time in ms, s, min, h or d"),
    ],
)
def test_a_time_that_decides_nothing_is_refused(called, seconds, message):
    """Before anything starts."""
    done = called("compare", "--release=mariadb:10.11", "--release=mariadb:11.8", f"--seconds={seconds}")

    assert done.returncode == 2
    assert message in done.stderr


def test_an_unknown_provisioner_leaves_no_directory(tmp_path, capsys):
    """The name of another program leads to ours."""
    releases = ["--release=mariadb:10.11", "--release=mariadb:11.8"]
    status = main(["compare", *releases, "--provisioner=docker", f"--results={tmp_path / 'results'}"])

    assert status == 2
    assert capsys.readouterr().err.endswith("; did you mean container?\n")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(called, tmp_path):
    """Before anything starts."""
    done = called("compare", "--cnf=/nowhere/a.cnf", "--cnf=/nowhere/b.cnf")

    assert done.returncode == 2
    assert "/nowhere/a.cnf" in done.stderr


def test_what_is_wrong_in_either_file_is_said_at_once(called, tmp_path):
    """Both files are checked before a server starts: the options and lines of both that the release cannot take."""
    files = two_files(tmp_path, "innodb_large_prefix=1", "innodb_flash=1")

    done = called("compare", *files)

    assert done.returncode == 2
    assert "current.cnf:2: innodb_large_prefix=1: " in done.stderr
    assert "candidate.cnf:2: innodb_flash=1: " in done.stderr
    assert "comparing" not in done.stderr
    assert "cold-start reference" not in done.stderr


def test_a_machine_that_stays_busy_ends_the_comparison_without_an_answer(tmp_path, monkeypatch, capsys):
    """It waits as long as ``--wait`` says, names who has the machine, and ends with the code of "could not tell"."""
    files = two_files(tmp_path, "max_connections = 100", "max_connections = 200")
    own = machine_lock.MachineLock(tmp_path / "machine")
    monkeypatch.setattr(machine_lock, "this", lambda: own)
    with measuring_in(own.directory) as holder:
        status = main(["compare", *files, "--wait=1", f"--results={tmp_path / 'results'}"])

    assert status == 4
    shown = capsys.readouterr()
    assert (
        "\nthe data fit into a buffer pool of 128 MiB: sysbench oltp_read_write t16 25 MiB of tables, tpcc" in shown.err
    )
    (line,) = shown.out.splitlines()
    assert line.startswith("could not tell: waited 1 s (--wait) for the machine: ")
    assert f"pid {holder.pid}" in line


@pytest.mark.parametrize("wrong", ["innodb_flash=1", "binlog_format=SOMETIMES"])
def test_a_wrong_file_is_answered_while_others_have_the_machine(tmp_path, monkeypatch, wrong, capsys):
    """No lock is waited for."""
    files = two_files(tmp_path, "max_connections = 100", wrong)
    own = machine_lock.MachineLock(tmp_path / "machine")
    monkeypatch.setattr(machine_lock, "this", lambda: own)
    with measuring_in(own.directory):
        status = main(["compare", *files, "--wait=30", f"--results={tmp_path / 'results'}"])

    assert status == 2
    assert "candidate.cnf" in capsys.readouterr().err
    assert not own.had_turn
