"""A small project on GitHub: its checkout here, and what a job of it finds on the runner."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

from pytest_dbcluster.system import cache
from tests.support import conftests, stand_in_gh
from tests.support.command import ROOT, alone, git_in, program
from tests.support.workflows import GitHub

# What a project copies of this one.
COPIED = ("Makefile", "pyproject.toml", "scripts")
PYTEST = '#!/bin/sh\nexec {python} -m pytest -p no:hypothesispytest -p no:cacheprovider "$@"\n'
# Makes the environment of this installation, or does what it is told.
PYTHON = '#!/bin/sh\n[ "$1 $2" = "-m venv" ] || exec {python} "$@"\nexec cp -r {environment} "$3"\n'


class Checkout:
    """A git repository with a remote, and the runner on which a job of it runs.

    The programs that a job installs are there already: ``apt-get`` and ``pip`` take down what they are asked for, and
    ``python3 -m venv`` gives the environment of this installation. Its ``dbcluster`` and ``pytest`` take turns with no
    other run. The stand-in for ``gh`` has a token without rights, as in a job of a fork.
    """

    def __init__(self, directory, copied=COPIED, changes="", **more):
        """copied: files of this project. changes, more: of dbcluster, as for ``alone``."""
        self.directory, self.place = directory, directory / "checkout"
        self.place.mkdir(parents=True)
        self.git = git_in(self.place)
        for name in copied:
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, self.place / name)
        (self.place / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.SHORT_ROUNDS)
        self._environment(directory / "venv", changes, more)
        self._programs()
        self.git("init", "--quiet")
        (self.place / ".gitignore").write_text(".venv\n__pycache__\nreports\n")
        self._remote()

    def _environment(self, venv, changes, more):
        alone(venv / "bin", changes, **more)
        program(venv / "bin" / "pytest", PYTEST.format(python=sys.executable))
        program(venv / "bin" / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        program(venv / "bin" / "pip", self._noting("pip"))
        packages = (ROOT / "pyproject.toml").read_bytes()
        known = subprocess.run(["cksum"], input=packages, stdout=subprocess.PIPE, check=True).stdout.decode()
        (venv / ".ready").write_text(f"{self.place} {known}")  # as scripts/setup.sh leaves it

    def _noting(self, name):
        return f'#!/bin/sh\necho "{name} $*" >>{self.directory}/installed\n'

    def _programs(self):
        programs, state = self.directory / "programs", self.directory / "gh.json"
        program(programs / "apt-get", self._noting("apt-get"))
        program(programs / "python3", PYTHON.format(python=sys.executable, environment=self.directory / "venv"))
        program(programs / "gh", f'#!/bin/sh\nexec {sys.executable} {stand_in_gh.__file__} {state} "$@"\n')
        state.write_text(json.dumps({"rights": False, "calls": []}))

    def _remote(self):
        remote = self.directory / "remote.git"
        self.git("init", "--quiet", "--bare", str(remote))
        self.git("remote", "add", "origin", str(remote))

    def set_up(self):
        """Lay the environment out as a finished ``make setup`` does."""
        shutil.copytree(self.directory / "venv", self.place / ".venv")

    def commit(self, message, **files):
        """Commit these files, path -> text; return the commit."""
        for name, text in files.items():
            path = self.place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, *words):
        """Call the script that keeps a history on a branch."""
        subprocess.run(["scripts/history_branch.sh", *words], cwd=self.place, stdout=subprocess.PIPE, check=True)

    def runs(self, workflow, job, **github):
        """Run a job of a workflow here."""
        on = GitHub(self.directory, self.directory / "programs", self._variables(), github)
        return on.run(workflow, job, self.place)

    def _variables(self):
        """The cache of an earlier job is there."""
        return {"XDG_CACHE_HOME": str(cache.root().parent)}

    @property
    def installed(self):
        """What the job had to install."""
        path = self.directory / "installed"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def calls(self):
        """The calls of ``gh``."""
        return json.loads((self.directory / "gh.json").read_text())["calls"]
