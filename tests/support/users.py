"""Ordinary users for tests: programs under user ids that exist nowhere, so no account is made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALICE, MALLORY = 64001, 64002
# The interpreter may lie where only root can read. So modules are loaded before the program becomes another user's.
BECOME = """
import encodings.unicode_escape, importlib, os, sys
uid, loads = int(sys.argv[1]), sys.argv[2].split()
del sys.argv[1:3]
for name in loads:
    importlib.import_module(name)
os.umask(0o022)
os.chdir("/")
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
"""
SYSTEM = ("pytest_dbcluster.system.machine_lock", "pytest_dbcluster.system.ports")
CLI = (
    *("pytest_dbcluster.cli.main", "pytest_dbcluster.cli.clusters", "pytest_dbcluster.cli.up"),
    *("pytest_dbcluster.hosts.provisioners.container.engine", "pytest_dbcluster.redaction"),
    *("difflib", "importlib.metadata", "pkgutil"),  # functions of the registry import them
)


def missing() -> str:
    """Why no program can be run as another user here; empty when it can."""
    return "" if os.geteuid() == 0 else "only root starts programs of other users"


def begin(uid, program, *words, loads=(), **variables):
    """A Python program of this user that runs beside the test; whoever begins it ends it.

    loads: the modules that it imports. variables: of its environment.
    """
    return subprocess.Popen(
        [sys.executable, "-c", BECOME + program, str(uid), " ".join(loads), *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **variables},
    )


def program(text, *words):
    """What a Python program prints that becomes another user itself, below the checkout."""
    command = [sys.executable, "-c", text, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(uid, program, *words, loads=(), **variables):
    """What a Python program of this user prints until its end."""
    with begin(uid, program, *words, loads=loads, **variables) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    return output
