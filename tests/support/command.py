"""The command dbcluster, called as a user calls it, and runs that the tests of it leave behind on purpose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "pytest_dbcluster.cli.main"]


def dbcluster(*words, seconds=60):
    """Run the command as a user does."""
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=seconds, cwd=ROOT, check=False)


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
