"""dbcluster init --workload --from: a log becomes a directory, and nothing is overwritten."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.cli import log_digest, main
from pytest_dbcluster.workloads.digest import digest_check
from pytest_dbcluster.workloads.digest.digest_directory import read_log
from tests.workloads.digest.logs import SCHEMA, shop, slow, write


@pytest.fixture
def words(tmp_path):
    """The words of the command for a log of a small shop."""
    log, schema = write(tmp_path / "slow.log", slow(shop())), write(tmp_path / "schema.sql", SCHEMA)
    return ["init", "--workload", str(tmp_path / "shop"), "--from", str(log), "--schema", str(schema)]


def test_the_directory_is_written_and_the_report_printed(words, tmp_path, capsys):
    """It names what is covered, and that it is experimental."""
    code = main.main(words)
    printed = capsys.readouterr()

    assert code == 0
    assert "experimental" in printed.err
    assert "they cover 100 % of the log's time" in printed.out
    assert "fill in 2 texts" in printed.out
    assert (tmp_path / "shop" / "workload.toml").exists()


def test_an_existing_file_stays(words, tmp_path, capsys):
    """The command writes nothing then."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "schema.sql").write_text("mine")

    assert main.main(words) == 2
    assert "already has schema.sql" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "shop").iterdir()] == ["schema.sql"]


@pytest.mark.parametrize("missing", ["--workload", "--schema"])
def test_a_directory_and_a_schema_are_needed(words, missing, capsys):
    """The message has the whole command."""
    at = words.index(missing)

    assert main.main(words[:at] + words[at + 2 :]) == 2
    assert "dbcluster init --workload shop/ --from slow.log --schema schema.sql" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--schema", "x"], ["--check"], ["--keep-literals"], ["--release", "mysql:9.7"]])
def test_options_of_a_digest_belong_to_a_log(option, tmp_path, capsys):
    """A first test is not written then."""
    assert main.main(["init", str(tmp_path / "mine"), *option]) == 2
    assert f"{option[0]} belongs to --from LOG" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_a_workload_that_is_a_file_is_refused(words, tmp_path, capsys):
    """Before the log is read."""
    (tmp_path / "shop").write_text("")

    assert main.main(words) == 2
    assert "is a file: name a directory" in capsys.readouterr().err


@pytest.fixture
def ran(monkeypatch, tmp_path):
    """``ran(first, second)``: the statements that the checks log, in place of servers."""

    def ran(*logs):
        left = list(logs)

        def check(digest, given, workload, setting):
            return read_log(write(tmp_path / "run.log", slow(left.pop(0))), given.schema)

        monkeypatch.setattr(log_digest, "_server", lambda release: contextlib.nullcontext())
        monkeypatch.setattr(digest_check, "check", check)

    return ran


def apart():
    """A run in which one transaction reads more rows than in the log."""
    return [(text, {**how, "examined": 90}) if "status = " in text else (text, how) for text, how in shop()]


DIFFERENCE = "Rows_examined is 5 in the log, 90 in the check"


def test_a_check_that_agrees_leaves_all_transactions(words, ran, tmp_path, capsys):
    """With exit code 0."""
    ran(shop())

    assert main.main([*words, "--check"]) == 0
    assert "all figures agree within 10 %" in capsys.readouterr().out
    assert '"select_orders.sql@40",' in (tmp_path / "shop" / "workload.toml").read_text()


def test_a_check_leaves_out_what_differs_and_checks_the_others(words, ran, tmp_path, capsys):
    """The report names it, and the exit code is that of the last check."""
    ran(apart(), [each for each in shop() if "status = " not in each[0]])
    code = main.main([*words, "--check"])
    printed = capsys.readouterr().out

    assert code == 0
    assert f"refused: select_orders.sql, 5.4 %: {DIFFERENCE}\n" in printed
    assert "checking the 2 others; they cover 95 % of the log's time" in printed
    assert '# "select_orders.sql": apart in the check' in (tmp_path / "shop" / "workload.toml").read_text()
    assert f"- select_orders.sql: {DIFFERENCE}" in (tmp_path / "shop" / "digest.md").read_text()


def test_a_check_changes_no_directory_of_the_user(words, ran, tmp_path, capsys):
    """It names what differs, with exit code 1."""
    main.main(words)
    before = (tmp_path / "shop" / "workload.toml").read_text()
    ran(apart())

    assert main.main([*words, "--check"]) == 1
    assert f"differs: select_orders.sql: {DIFFERENCE}\n" in capsys.readouterr().out
    assert (tmp_path / "shop" / "workload.toml").read_text() == before
