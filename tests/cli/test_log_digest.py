"""dbcluster init --workload --from: a log becomes a directory, and nothing is overwritten."""

from __future__ import annotations

import pytest

from pytest_dbcluster.cli import main
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
