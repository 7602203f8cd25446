"""Documents: what README, Makefile, CHANGELOG and the CI's script say is so."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest_dbcluster
from fixtures import clusters
from fixtures.loads import WRITING, slap
from pytest_dbcluster.cli import main
from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.plugin import command_line
from pytest_dbcluster.releases import catalogue
from tests.support.conftests import PLAIN

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SITE = "".join(
    path.read_text()
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if not {"_build", "generated"} & set(path.relative_to(ROOT).parts)
)
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"^```sh\n(.*?)^```", README + SITE + CONTRIBUTING, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.split("#")[0].strip()
]


def inline(pattern):
    """What README, site and CONTRIBUTING quote as code in their running text."""
    return [code for code in re.findall(r"`([^`\n]+)`", README + SITE + CONTRIBUTING) if re.match(pattern, code)]


def quoted(program):
    """The first word after a program, wherever the README shows a call of it."""
    calls = [*COMMANDS, *inline(rf"{program} ")]
    return {found[1] for call in calls if (found := re.search(rf"(?:^|[ /]){program} ([a-z0-9]+)", call))}


def options():
    """Every ``--db-...`` option there is."""
    names = set()
    command_line.add_options(lambda _: lambda name, **_: names.add(name))
    return names


def test_every_make_target_is_phony_and_stands_in_the_help():
    """`make help` lists each target with what it does."""
    # A make that was started by a make says which directory it enters.
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, env=alone).stdout
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()

    assert {line.split()[1] for line in said.splitlines()} == TARGETS
    assert set(phony) == TARGETS
    assert all(re.match(r"make [a-z]+ +[a-z].{10,}", line) for line in said.splitlines())


def test_documents_show_make_targets_that_exist():
    """`make bench` and the others that documents name are targets."""
    shown = quoted("make")

    assert shown >= {"bench", "test", "docs", "lint"}
    assert shown <= TARGETS


def test_documents_show_commands_that_are_built():
    """Each `dbcluster COMMAND` of README and site is a command."""
    action = next(one for one in main.parser([])._actions if isinstance(one, argparse._SubParsersAction))
    shown = quoted("dbcluster")

    assert shown
    assert shown <= set(action.choices)


def test_documents_show_pytest_calls_of_suites_that_exist():
    """The suites in calls of pytest are there."""
    calls = [call for call in [*COMMANDS, *inline(r"(\.venv/bin/)?pytest ")] if "pytest " in call]
    paths = {path.split("::")[0] for call in calls for path in re.findall(r"(?<!\S)suites/[^\s`]*", call)}

    assert {"suites/galera", "suites/replication"} <= paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_documents_name_no_option_that_does_not_exist():
    """An option that is only planned is not offered to a reader."""
    texts = [README, SITE, MAKEFILE, CONTRIBUTING, (ROOT / "CHANGELOG.md").read_text()]
    named = {name for text in texts for name in re.findall(r"--db-[a-z0-9]+(?:-[a-z0-9]+)*(?![a-z0-9-])", text)}

    assert named <= options()


def test_documents_name_releases_that_can_be_fetched():
    """Every version that is named without a directory is on offer, and `make test` has all of them that we tried."""
    pattern = r"\b(?:mariadb|mysql|percona|pxc):\d+\.\d+\b(?!=)"
    named = {text: set(re.findall(pattern, text)) for text in (README + SITE, MAKEFILE)}
    tried = {offer.name for offer in catalogue.OFFERS if any(origin.is_tried for origin in offer.origins)}

    assert named[README + SITE] <= {offer.name for offer in catalogue.OFFERS}
    assert named[README + SITE] & tried == named[MAKEFILE]


EXAMPLE = re.search(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[1]


def test_readme_shows_a_test_that_works_in_an_empty_directory(tmp_path):
    """Pasted, it is collected by pytest and passes mypy: it imports nothing of this checkout but the package."""
    (tmp_path / "test_pasted.py").write_text(EXAMPLE)
    pytest_words = ["pytest", "--collect-only", "-q", *PLAIN]
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


def test_readme_and_changelog_link_to_files_that_exist():
    """No link and no picture points at nothing; the build of the site checks the links of the site."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README + (ROOT / "CHANGELOG.md").read_text())

    assert links
    assert [name for name in links if not (ROOT / name).exists()] == []


def test_readme_and_contributing_stay_short():
    """A newcomer reads them whole."""
    assert len(README.splitlines()) <= 120
    assert len(CONTRIBUTING.splitlines()) < 90


def test_readme_fits_a_terminal():
    """No line is wider than 100 characters, and no paragraph or list item has more than 60 words."""
    prose = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)
    paragraphs = re.split(r"\n\n|\n(?=- )", prose)

    assert [line for line in README.splitlines() if len(line) > 100] == []
    assert [text for text in paragraphs if len(text.split()) > 60] == []


def test_contributing_lists_the_rooms():
    """Each folder of the package, from the top down, and no other."""
    rooms = re.findall(r"^\| `pytest_dbcluster/([a-z]+)` \|", CONTRIBUTING, re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "pytest_dbcluster").glob("*/__init__.py")}

    assert len(rooms) == len(folders)
    assert set(rooms) == folders


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
    command = [sys.executable, "-m", "pytest", "suites/galera", "-k", "flush", "--collect-only", "-q", *PLAIN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    selected = [line for line in done.stdout.splitlines() if "::" in line]

    assert {line.split("::")[0] for line in selected} == {"suites/galera/test_flush.py"}
    assert len(selected) == 3


def test_the_site_names_the_oldest_versions():
    """They are those of the messages."""
    oldest = {product: ".".join(map(str, version)) for product, version in catalogue.OLDEST.items()}
    page = (ROOT / "docs" / "reference" / "releases.md").read_text()

    assert f"MySQL {oldest['mysql']}, MariaDB {oldest['mariadb']}, or newer" in page
