"""Documents: what README, Makefile, CHANGELOG and the CI's script say is so."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_dbcluster
from fixtures import clusters
from fixtures.loads import WRITING, slap
from pytest_dbcluster import registry
from pytest_dbcluster.cli import main
from pytest_dbcluster.clusters import topology
from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.hosts import provisioner
from pytest_dbcluster.plugin import command_line
from pytest_dbcluster.releases import catalogue

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "REFERENCE.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"^```sh\n(.*?)^```", README + REFERENCE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.split("#")[0].strip()
]


def inline(pattern):
    """What README and REFERENCE quote as code in their running text."""
    return [code for code in re.findall(r"`([^`\n]+)`", README + REFERENCE) if re.match(pattern, code)]


def quoted(program):
    """The first word after a program, wherever the README shows a call of it."""
    calls = [*COMMANDS, *inline(rf"{program} ")]
    return {found[1] for call in calls if (found := re.search(rf"(?:^|[ /]){program} ([a-z0-9]+)", call))}


def table(first):
    """The rows of REFERENCE's table whose first heading is ``first``."""
    rows = re.search(rf"^\| {first} \|.*\n\|[-| ]+\n((?:\|.*\n)+)", REFERENCE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1].splitlines()]


class Options:
    """An option group that takes down the names."""

    def __init__(self):
        self.names = set()

    def addoption(self, name, **_):
        """Take one down."""
        self.names.add(name)


def options():
    """Every ``--db-...`` option there is."""
    group = Options()
    command_line.add_options(group)
    return group.names


def test_every_make_target_is_phony_and_stands_in_the_help():
    """`make help` lists each target with what it does."""
    # A make that was started by a make says which directory it enters.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, env=alone).stdout
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()

    assert {line.split()[1] for line in said.splitlines()} == TARGETS
    assert set(phony) == TARGETS
    assert all(re.match(r"make [a-z]+ +[a-z].{10,}", line) for line in said.splitlines())


def test_readme_shows_make_targets_that_exist():
    """`make bench` and the others that the README names are targets."""
    shown = quoted("make")

    assert shown >= {"bench", "test", "suites", "help"}
    assert shown <= TARGETS


def test_readme_shows_commands_that_are_built():
    """Each `dbcluster COMMAND` of the README is a command."""
    action = next(one for one in main.parser([])._actions if isinstance(one, argparse._SubParsersAction))
    shown = quoted("dbcluster")

    assert shown
    assert shown <= set(action.choices)


def test_readme_shows_pytest_calls_of_suites_that_exist():
    """The paths of the README's pytest calls are there."""
    calls = [call.split("pytest ", 1)[1].split()[0] for call in [*COMMANDS, *inline(r"pytest ")] if "pytest " in call]

    assert "suites/galera" in calls
    assert [path for path in calls if not (ROOT / path).exists()] == []


def test_the_reference_lists_every_option():
    """The table of options has exactly the options of the plugin."""
    rows = [re.match(r"`(--db-[a-z0-9-]+)", row[0])[1] for row in table("option")]

    assert len(rows) == len(set(rows))
    assert set(rows) == options()


def test_documents_name_no_option_that_does_not_exist():
    """An option that is only planned is not offered to a reader."""
    texts = [README, REFERENCE, MAKEFILE, *((ROOT / name).read_text() for name in ("CHANGELOG.md", "CONTRIBUTING.md"))]
    named = {name for text in texts for name in re.findall(r"--db-[a-z0-9]+(?:-[a-z0-9]+)*", text)}

    assert named <= options()


@pytest.mark.parametrize(
    ("first", "planned"),
    [
        ("topology", topology.PLANNED),
        ("provisioner", provisioner.PLANNED),
    ],
)
def test_the_reference_lists_what_is_built_and_what_is_planned(first, planned):
    """The tables of topologies and provisioners say of each one whether it is built."""
    rows = {row[0].strip("`"): row[1] for row in table(first)}
    built = set(registry.names(first))

    assert {name for name, state in rows.items() if state == "built"} == built
    assert {name for name, state in rows.items() if state == "planned"} == set(planned) - built


def test_documents_name_releases_that_can_be_fetched():
    """Every version that is named without a directory is on offer, and `make test` has all that the README names."""
    named = {
        text: set(re.findall(r"\b(?:mariadb|mysql):\d+\.\d+\b(?!=)", text)) for text in (README + REFERENCE, MAKEFILE)
    }

    assert named[README + REFERENCE] <= {offer.name for offer in catalogue.OFFERS}
    assert named[README + REFERENCE] == named[MAKEFILE]


EXAMPLE = re.search(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[1]


def test_readme_shows_a_test_that_works_in_an_empty_directory(tmp_path):
    """Pasted, it is collected by pytest and passes mypy: it imports nothing of this checkout but the package."""
    (tmp_path / "test_pasted.py").write_text(EXAMPLE)
    pytest_words = ["pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    mypy_words = ["mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), "test_pasted.py"]
    done = [
        subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        for words in (pytest_words, mypy_words)
    ]

    assert [one.returncode for one in done] == [0, 0], [one.stdout + one.stderr for one in done]
    assert [line for line in done[0].stdout.splitlines() if "::" in line] == [
        f"test_pasted.py::test_flush_2_beats_the_default[{mode}]" for mode in WRITING
    ]


def test_readme_shows_the_flush_claims(tmp_path, monkeypatch):
    """The test in the README measures what `make bench` measures: clusters, options, workloads and claims."""
    (tmp_path / "readme_example.py").write_text(EXAMPLE)
    monkeypatch.syspath_prepend(tmp_path)
    example, suite = importlib.import_module("readme_example"), ROOT / "suites" / "galera" / "test_flush.py"

    assert example.GALERA == clusters.GALERA
    assert dict(example.FLUSH_2.options) == {
        entry.name: entry.value for entry in cnf_file.read(ROOT / "fixtures" / "mycnf" / "flush_2.cnf").entries
    }
    assert (example.FLUSH_2.short_name, example.FLUSH_2.nodes) == (clusters.FLUSH_2.short_name, clusters.FLUSH_2.nodes)
    assert [example.MySQLSlap(mode) for mode in WRITING] == [slap(mode) for mode in WRITING]
    claims = [line for line in suite.read_text().splitlines() if line.startswith("    assert ")]
    assert [line for line in EXAMPLE.splitlines() if line.startswith("    assert ")] == claims


def test_readme_links_to_files_that_exist():
    """No link and no entry of "What's here" points at nothing."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README + REFERENCE)
    here = README.split("## What's here\n")[1]
    entries = re.findall(r"^\| `([^`]+)` \|", here, re.MULTILINE)

    assert entries
    assert [name for name in [*links, *entries] if not (ROOT / name).exists()] == []


def test_readme_and_contributing_stay_short():
    """A newcomer reads them whole."""
    assert len(README.splitlines()) < 110
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) < 70


def test_changelog_begins_with_the_version_of_the_package():
    """The newest entry is about this version."""
    entries = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert entries[0] == pytest_dbcluster.__version__


def test_ci_runs_make_test():
    """The check of a clean checkout is the command that people type."""
    script = ROOT / ".ci" / "run"

    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()


def test_ci_keys_its_cache_by_files_that_exist():
    """A path of nothing is no error there: the key would stay the same whatever changes."""
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    patterns = re.findall(r"'([^']+)'", re.search(r"hashFiles\(([^)]*)\)", text)[1])

    assert patterns
    assert [pattern for pattern in patterns if not list(ROOT.glob(pattern))] == []


def test_the_main_job_is_the_flush_claims_alone():
    """`-k flush` selects the claims of one file: names of other tests and clusters do not contain the word."""
    command = [sys.executable, "-m", "pytest", "suites/galera", "-k", "flush", "--collect-only", "-q", "--no-header"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    selected = [line for line in done.stdout.splitlines() if "::" in line]

    assert {line.split("::")[0] for line in selected} == {"suites/galera/test_flush.py"}
    assert len(selected) == 3


def test_the_reference_names_the_oldest_versions():
    """They are those of the messages."""
    oldest = {product: ".".join(map(str, version)) for product, version in catalogue.OLDEST.items()}

    assert f"(MySQL {oldest['mysql']}, MariaDB {oldest['mariadb']} and newer)" in REFERENCE
