"""dbcluster init: a project that works as it is written, and nothing overwritten."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from pytest_dbcluster.cli import init, main
from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.workloads.sql import SQLFiles, example
from tests.support.command import ROOT
from tests.support.facts import missing
from tests.workloads.sql.directories import directory


def written(directory: Path) -> dict[str, str]:
    """The files below a directory."""
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def project(tmp_path, capsys):
    """A project that the command wrote into a directory that was not there."""
    assert main.main(["init", str(tmp_path / "mine" / "project")]) == 0
    capsys.readouterr()
    return tmp_path / "mine" / "project"


def test_a_project_is_a_test_a_my_cnf_and_a_workflow(project):
    """And the file that makes the directory the root of pytest."""
    assert sorted(written(project)) == sorted([init.TEST, init.CNF, init.WORKFLOW, init.PYTEST_INI, init.GITIGNORE])
    entries = cnf_file.read(project / init.CNF).entries
    assert [(entry.section, entry.name, entry.value) for entry in entries] == [
        ("mysqld", "innodb_flush_log_at_trx_commit", "2")
    ]


def test_pytest_collects_the_project(project):
    """One test, from a directory that has nothing of this checkout."""
    command = [sys.executable, "-W", "error", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if "::" in line] == [
        "test_performance.py::test_inserts_flush_less_and_are_no_slower",
    ]


def test_mypy_knows_the_fixture_in_a_project_of_ones_own(project):
    """The package is typed where it is installed: strict, and a wrong type is seen."""
    wrong = project / "test_wrong.py"
    wrong.write_text(
        (project / init.TEST).read_text()
        + "    assert candidate.beats(default, by='much')\n"
        + "    measure(MySQLSlap('key'), on=DEFAULT)\n"
        + "    assert candidate > default\n"
    )
    cache = ["--cache-dir", str(ROOT / ".mypy_cache")]
    command = [sys.executable, "-m", "mypy", "--strict", *cache, init.TEST, wrong.name]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    assert re.findall(r"^(\S+):\d+: error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE) == [
        ("test_wrong.py", "arg-type"),
        ("test_wrong.py", "arg-type"),
        ("test_wrong.py", "operator"),
    ], done.stdout


@pytest.mark.parametrize("name", [init.TEST, init.CNF, init.WORKFLOW, init.PYTEST_INI])
def test_nothing_is_overwritten(tmp_path, capsys, name):
    """One file that is there, also as a link to nothing, is named, and no other is written."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")

    assert main.main(["init", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    facts = (f"dbcluster: {tmp_path} already has {name};", "overwrites nothing", "name another directory")
    assert missing(line, *facts) == []
    assert written(tmp_path) == {}


def test_a_project_that_configures_pytest_keeps_its_configuration(tmp_path):
    """A pytest.ini would take the place of what is in pyproject.toml."""
    (tmp_path / "pyproject.toml").touch()

    assert main.main(["init", str(tmp_path)]) == 0
    assert not (tmp_path / init.PYTEST_INI).exists()


def test_results_stay_out_of_git(project):
    """The results of a run, and what Python leaves, are no changes of the project, so a run's commit is not dirty."""
    for name in ("reports/latest/run.json", "__pycache__/a.pyc", ".venv/bin/pytest"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    changes = subprocess.run(status, cwd=project, capture_output=True, text=True, check=True).stdout

    assert sorted(line[3:] for line in changes.splitlines()) == sorted(init.files(project / "empty"))


def test_a_gitignore_that_is_there_stays(tmp_path):
    """It belongs to the project."""
    (tmp_path / init.GITIGNORE).write_text("*.log\n")

    assert main.main(["init", str(tmp_path)]) == 0
    assert (tmp_path / init.GITIGNORE).read_text() == "*.log\n"


def test_a_directory_that_is_a_file_is_one_sentence(tmp_path, capsys):
    """What cannot be written is named with the reason."""
    (tmp_path / "file").touch()

    assert main.main(["init", str(tmp_path / "file")]) == 1
    assert re.fullmatch(r"dbcluster: cannot write .*/file/test_performance\.py: .*\n", capsys.readouterr().err)


def test_the_next_step_is_printed(tmp_path, capsys, monkeypatch):
    """The command to type, from where the user is."""
    assert main.main(["init", str(tmp_path / "my project")]) == 0
    assert f"run it:   cd '{tmp_path / 'my project'}' && pytest " in capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    assert main.main(["init"]) == 0
    assert "run it:   pytest " in capsys.readouterr().out


ORIGINS = {
    "": "pytest-dbcluster[all]",
    '{"url": "file:///home/me/checkout", "dir_info": {"editable": true}}': "pytest-dbcluster[all]",
    '{"url": "https://example.org/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}': (
        "pytest-dbcluster[all] @ git+https://example.org/x.git@abc"
    ),
    '{"url": "https://example.org/x.whl", "archive_info": {}}': "pytest-dbcluster[all] @ https://example.org/x.whl",
}


@pytest.mark.parametrize(("text", "requirement"), ORIGINS.items())
def test_the_workflow_installs_the_package_from_where_it_came(tmp_path, monkeypatch, text, requirement):
    """A directory of this machine is of no use there, and is not named."""
    installed = types.SimpleNamespace(read_text=lambda name: text or None)
    monkeypatch.setattr(init.importlib.metadata, "distribution", lambda name: installed)

    assert init.requirement() == requirement
    assert f'  PYTEST_DBCLUSTER: "{requirement}"\n' in init.files(tmp_path)[init.WORKFLOW]


@pytest.mark.parametrize(("text", "hint"), [(text, "file:" in text) for text in ORIGINS])
def test_an_installation_from_this_machine_needs_a_url_on_github(tmp_path, capsys, monkeypatch, text, hint):
    """The last line says so; a job on GitHub can install from an index or a URL."""
    installed = types.SimpleNamespace(read_text=lambda name: text or None)
    monkeypatch.setattr(init.importlib.metadata, "distribution", lambda name: installed)

    assert main.main(["init", str(tmp_path / "new")]) == 0
    assert ("on GitHub: a job there cannot install from this machine" in capsys.readouterr().out) is hint


def test_the_workflow_runs_options_that_exist(project):
    """Its commands are ours, its expressions GitHub's."""
    text = (project / init.WORKFLOW).read_text()

    assert set(re.findall(r"--db-[a-z]+(?:-[a-z]+)*", text)) == {"--db-release", "--db-budget", "--db-strict"}
    assert "path: ${{ env.XDG_CACHE_HOME }}/pytest-dbcluster/releases\n" in text
    assert re.findall(r"(?<!\$)\{\w", text) == []


def collected(project):
    """The tests that pytest finds in a directory."""
    command = [sys.executable, "-W", "error", "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_a_workload_that_is_not_there_is_written_as_an_example(tmp_path, capsys):
    """A schema, generated rows and three transactions, with a test that uses them."""
    assert main.main(["init", str(tmp_path), "--workload", "shop/"]) == 0
    shop = SQLFiles(tmp_path / "shop")

    assert sorted(written(tmp_path)) == sorted([*(f"shop/{name}" for name in example.FILES), "test_shop.py"])
    assert shop.parts[:3] == ("browse", "history", "order")
    assert shop.read.manifest.rows == {"customers": 20000, "products": 1000, "orders": 50000}
    assert collected(tmp_path) == ["test_all_transactions_are_no_slower", "test_order_waits_no_longer"]
    said = capsys.readouterr().out
    assert f"cd {tmp_path} && pytest test_shop.py " in said
    assert "dbcluster compare --cnf current.cnf --cnf candidate.cnf --workload shop/" in said


def test_of_a_workload_that_is_there_only_a_test_is_written(tmp_path, capsys):
    """The test claims the latency of its last transaction."""
    own = directory(
        tmp_path / "bench" / "my shop", {"browse.sql": None, "top-ten.sql": "SELECT * FROM items LIMIT 10;"}
    )
    before = written(own)

    assert main.main(["init", str(tmp_path), "--workload", "bench/my shop"]) == 0
    assert written(own) == before
    assert {name for name in written(tmp_path) if not name.startswith("bench/")} == {"test_my_shop.py"}
    text = (tmp_path / "test_my_shop.py").read_text()
    assert [part for part in ('/ "bench/my shop"', '"p95:top-ten"') if part not in text] == []
    assert collected(tmp_path) == ["test_all_transactions_are_no_slower", "test_top_ten_waits_no_longer"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("broken", "broken/browse.sql:1:"),
        ("../shop", "--workload ../shop: it accepts a directory below"),
        ("/shop", "--workload /shop: it accepts a directory below"),
        (".", "--workload .: it accepts a directory below"),
        ("a.lua", "--workload a.lua: this is a file; name a directory, such as shop/"),
        ("there", "already has test_there.py"),
    ],
)
def test_a_workload_that_cannot_be_tested_is_refused(tmp_path, capsys, given, words):
    """Nothing is written."""
    directory(tmp_path / "broken", {"browse.sql": "SELECT :unknown;"})
    (tmp_path / "a.lua").write_text("")
    (tmp_path / "test_there.py").write_text("")
    before = written(tmp_path)

    assert main.main(["init", str(tmp_path), "--workload", given]) == 2
    assert words in capsys.readouterr().err
    assert written(tmp_path) == before
