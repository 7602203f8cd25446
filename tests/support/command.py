"""The command dbcluster, called as a user calls it, and runs that the tests of it leave behind on purpose."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support import conftests

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "pytest_dbcluster.cli.main"]
# The command, which waits for no other run of this machine.
PROGRAM = """\
#!{python}
import sys
{lock}{changes}
from pytest_dbcluster.cli.main import main

sys.argv[2:2] = {more}.get(" ".join(sys.argv[1:2]), [])
sys.exit(main())
"""


# Changes of ``alone``: rounds that are shorter than a second, for which a short comparison has time.
SHORT_COMPARISON = """
from pytest_dbcluster.rounds import round_length

round_length.SHORTEST = 0.15
round_length.LONGEST = round_length.USUAL = round_length.WARM_UP = round_length.SHORTEST
"""


def alone(directory, changes="", **more):
    """The command in a directory, as a program that takes turns with no other run: a test of times must not wait.

    changes: statements that it runs first. more: by command, such as ``compare``, options that it always gets.
    """
    text = PROGRAM.format(python=sys.executable, lock=conftests.OWN_MACHINE, changes=changes, more=more)
    return program(directory / "dbcluster", text)


def program(path, text):
    """A program of this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def dbcluster(*words, seconds=60, program=None):
    """Run the command, or another program, as a user does."""
    command = COMMAND if program is None else [program]
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False)


def git_in(place):
    """A function that calls git in a directory, as an author of its own, and returns what it prints."""

    def git(*words):
        who = {f"GIT_{role}_{key}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        command = ["git", "-c", "init.defaultBranch=main", *words]
        done = subprocess.run(command, cwd=place, env=os.environ | who, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return git


def left(run_id):
    """The processes that carry a run's id."""
    return runs.Run(Path(run_id), 0, 0.0, kept=True).processes()


def sleeping_run(*, leave):
    """A run of one host, on which a program sleeps."""
    provisioner = LocalProvisioner(keep=leave)
    host = provisioner.acquire(ClusterSpec("standalone", name="asleep"))[0]
    host.spawn(["sleep", "120"], log=f"{host.directory}/log", directory=host.directory)
    if leave:
        provisioner.leave()
        provisioner.close()
    return provisioner


HOLDER = """
import sys
from pathlib import Path
from pytest_dbcluster.system.machine_lock import MEASURING, MachineLock

with MachineLock(Path(sys.argv[1])).turn(MEASURING):
    print("has it", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def measuring_in(directory):
    """Another process that measures during the block, on the machine whose locks are in this directory."""
    words = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout.readline() == "has it\n"
        yield process
        process.stdin.close()
