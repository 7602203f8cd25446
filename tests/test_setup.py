"""Set-up: what README, Makefile and CHANGELOG say is so, and what the set-up script says where it cannot go on."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from pytest_dbcluster import cli, provisioner, registry, settings, topology

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.split("#")[0].strip()
]


def inline(pattern):
    """What the README quotes as code in its running text."""
    return [code for code in re.findall(r"`([^`\n]+)`", README) if re.match(pattern, code)]


def quoted(program):
    """The first word after a program, wherever the README shows a call of it."""
    calls = [*COMMANDS, *inline(rf"{program} ")]
    return {found[1] for call in calls if (found := re.search(rf"(?:^|[ /]){program} ([a-z]+)", call))}


def table(first):
    """The rows of the README's table whose first heading is ``first``."""
    rows = re.search(rf"^\| {first} \|.*\n\|[-| ]+\n((?:\|.*\n)+)", README, re.MULTILINE)
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
    settings.add_options(group)
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
    """Each `dbcluster COMMAND` of the README is a command, and none of them is only planned."""
    action = next(one for one in cli._parser()._actions if isinstance(one, argparse._SubParsersAction))
    shown = quoted("dbcluster")

    assert shown
    assert shown <= set(action.choices) - set(cli.PLANNED)


def test_readme_shows_pytest_calls_of_suites_that_exist():
    """The paths of the README's pytest calls are there."""
    calls = [call.split("pytest ", 1)[1].split()[0] for call in [*COMMANDS, *inline(r"pytest ")] if "pytest " in call]

    assert "suites/galera" in calls
    assert [path for path in calls if not (ROOT / path).exists()] == []


def test_readme_lists_every_option():
    """The table of options has exactly the options of the plugin."""
    rows = [re.match(r"`(--db-[a-z-]+)", row[0])[1] for row in table("option")]

    assert len(rows) == len(set(rows))
    assert set(rows) == options()


def test_documents_name_no_option_that_does_not_exist():
    """An option that is only planned is not offered to a reader."""
    texts = [README, MAKEFILE, *((ROOT / name).read_text() for name in ("CHANGELOG.md", "CONTRIBUTING.md"))]
    named = {name for text in texts for name in re.findall(r"--db-[a-z]+(?:-[a-z]+)*", text)}

    assert named <= options()


@pytest.mark.parametrize(
    ("first", "package", "planned"),
    [
        ("topology", "pytest_dbcluster.topologies", topology.PLANNED),
        ("provisioner", "pytest_dbcluster.provisioners", provisioner.PLANNED),
    ],
)
def test_readme_lists_what_is_built_and_what_is_planned(first, package, planned):
    """The tables of topologies and provisioners say of each one whether it is built."""
    rows = {row[0].strip("`"): row[1] for row in table(first)}
    built = set(registry.names(package))

    assert {name for name, state in rows.items() if state == "built"} == built
    assert {name for name, state in rows.items() if state == "planned"} == set(planned) - built


def test_readme_shows_the_flush_test_as_it_is():
    """The test in the README is the one that `make bench` runs, from its first import to its last line."""
    text = (ROOT / "suites" / "galera" / "test_flush.py").read_text()

    assert f"```python\n{text[text.index('import ') :]}```" in README


def test_readme_links_to_files_that_exist():
    """No link and no entry of "What's here" points at nothing."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    here = re.search(r"## What's here\n(.*?)\n## ", README, re.DOTALL)[1]
    entries = re.findall(r"^\| `([^`]+)` \|", here, re.MULTILINE)

    assert entries
    assert [name for name in [*links, *entries] if not (ROOT / name).exists()] == []


def test_readme_and_contributing_stay_short():
    """A newcomer reads them whole."""
    assert len(README.splitlines()) < 150
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) < 70


def test_changelog_begins_with_the_version_of_the_package():
    """The newest entry is about this version."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    entries = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert entries[0] == version


def test_ci_runs_make_test():
    """The check of a clean checkout is the command that people type."""
    script = ROOT / ".ci" / "run"

    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()


@pytest.fixture
def checkout(tmp_path):
    """``checkout(uid, python3=..., sudo=...)``: runs the set-up script where only the programs given exist."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "cat", "cksum", "cut", "dirname", "flock", "rm"):
        (programs / name).symlink_to(shutil.which(name))
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    def run(uid, **stubs):
        for name, body in {"id": f"echo {uid}", **stubs}.items():
            program = programs / name.replace("_", "-")
            program.write_text(f"#!{shutil.which('bash')}\n{body}\n")
            program.chmod(0o755)
        command = [tmp_path / "scripts" / "setup.sh"]
        return subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)

    return run


WITHOUT_VENV = """
case "$*" in
    *version_info\\ \\<*) exit 0 ;;
    *ensurepip*) [[ -e "${0%/*}/installed" ]] ;;
    *print*) echo python3.11 ;;
    *-m\\ venv*) echo "made $3"; exit 7 ;;
    *) echo Python 3.11.2 ;;
esac"""
APT = '[[ $1 == --simulate ]] && exit 0; echo "apt-get $*" >>"${0%/*}/asked"; : >"${0%/*}/installed"'


def test_a_machine_without_a_recent_python_is_told_so(checkout):
    """The sentence names what was looked for, what is there, and what to install."""
    done = checkout(0, python3='[[ $1 == --version ]] && echo "Python 3.9.2" || exit 1')

    assert done.returncode == 1
    assert done.stderr == (
        "setup: no Python 3.11 or newer found (looked for python3.13, python3.12, python3.11, python3; "
        "python3 is Python 3.9.2). Debian 12 and newer have one:  apt-get install python3 python3-venv\n"
    )


def test_a_user_without_sudo_gets_the_one_command(checkout):
    """Where python3-venv is missing and root is not to be had, the set-up prints the command and stops."""
    done = checkout(1000, python3=WITHOUT_VENV, apt_get=APT)

    assert done.returncode == 1
    assert done.stderr == (
        "setup: python3 cannot make virtual environments without python3-venv, and installing it needs root. "
        "Run this and start again:  "
        "su -c 'apt-get install --yes python3-venv'\n"
    )


def test_a_user_whose_sudo_asks_for_a_password_gets_the_one_command(checkout):
    """The set-up never waits for a password; fresh package lists are part of the command where there are none."""
    done = checkout(1000, python3=WITHOUT_VENV, apt_get="exit 100", sudo="exit 1")

    assert done.returncode == 1
    assert "Run this and start again:  sudo sh -c 'apt-get update && apt-get install --yes python3-venv'" in done.stderr


@pytest.mark.parametrize(("uid", "sudo"), [(0, "exit 1"), (1000, 'shift; exec "$@"')])
def test_python3_venv_is_installed_where_root_is_to_be_had(checkout, tmp_path, uid, sudo):
    """As root, or with a sudo that needs no password, the missing package is installed and the set-up goes on."""
    done = checkout(uid, python3=WITHOUT_VENV, apt_get=APT, sudo=sudo, true="exit 0")

    assert (tmp_path / "bin" / "asked").read_text() == "apt-get install --yes python3-venv\n"
    assert "made .venv" in done.stdout
    assert done.returncode == 7


def test_a_python_beside_the_default_gets_its_own_package(checkout, tmp_path):
    """python3-venv serves the default version only, so another one asks for python3.12-venv."""
    default = "[[ $* == *print* ]] && echo python3.9 || exit 1"
    other = {"python3.12": WITHOUT_VENV.replace("3.11", "3.12")}
    checkout(0, python3=default, apt_get=APT, **other)

    assert (tmp_path / "bin" / "asked").read_text() == "apt-get install --yes python3.12-venv\n"


def test_a_system_without_apt_is_told_what_is_missing(checkout):
    """Elsewhere than on Debian the sentence names the modules, not a package."""
    done = checkout(0, python3=WITHOUT_VENV)

    assert done.returncode == 1
    assert done.stderr == "setup: python3 lacks the modules venv and ensurepip; install them and start again\n"


def test_what_is_set_up_is_left_alone(checkout, tmp_path):
    """A stamp with the checkout's path and the checksum of pyproject.toml ends the set-up at once."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/false\n")
    python.chmod(0o755)
    checksum = subprocess.run(
        "cksum <pyproject.toml", shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    (tmp_path / ".venv" / ".ready").write_text(f"{tmp_path} {checksum.stdout}")

    done = checkout(1000)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def report(tmp_path):
    """Runs the report script in a directory of its own, where no command allure is."""
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "report.sh", tmp_path / "scripts")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname"):
        (programs / name).symlink_to(shutil.which(name))

    def run():
        command = [script, "reports/latest"]
        return subprocess.run(command, env={"PATH": str(programs)}, capture_output=True, text=True, check=False)

    return run


def test_a_report_without_results_names_the_command_that_makes_them(report):
    """There is nothing to show before a run."""
    done = report()

    assert done.returncode == 1
    assert done.stderr == "report: there is no reports/latest/allure-results; a run makes it:  make bench\n"


def test_a_report_without_allure_says_how_to_get_one(report, tmp_path):
    """Both ways are commands to be copied."""
    (tmp_path / "reports" / "latest" / "allure-results").mkdir(parents=True)
    done = report()

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "report: the command allure is not there. It comes with Node.js:  npm install --global allure@3",
        "report: without installing it:  "
        "npx allure@3 generate --config reports/allurerc.mjs reports/latest/allure-results",
    ]
