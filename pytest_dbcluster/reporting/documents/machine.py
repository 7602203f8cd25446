"""The machine of a run, and the commit of the project under test."""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import subprocess
from pathlib import Path

import psutil

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.reporting.documents.run_document import MachineDocument
from pytest_dbcluster.system import block_devices, probes

MACHINE_ID = Path("/etc/machine-id")
ID_LENGTH = 16  # characters of the hash: 64 bits keep the machines of one history apart
GIT = ("git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--untracked-files=no")
GIT_SECONDS = 10.0
COMMIT = "# branch.oid "


def machine(data: Path) -> MachineDocument:
    """The machine that we run on. data: the directory that holds the servers' data; it need not exist yet.

    The hosts may be other machines, but the run begins before there is a provisioner. The fingerprint of each claim
    names the machines of its servers.
    """
    return MachineDocument(
        cpu=probes.cpu_model(),
        cpus=psutil.cpu_count() or 1,
        cores=probes.usable_cores(),
        memory=psutil.virtual_memory().total,
        kernel=platform.release(),
        file_system=block_devices.file_system(data),
        device=_device(data),
        id=_hash(MACHINE_ID),
    )


def _device(data: Path) -> str:
    try:
        return block_devices.node(data)
    except (Unsupported, OSError):
        return ""


def _hash(path: Path) -> str:
    """A hash of the machine id with a key of ours, as machine-id(5) asks. So it is not the plain hash."""
    try:
        identity = path.read_bytes().strip()
    except OSError:
        return ""
    return hmac.new(identity, b"pytest-dbcluster", hashlib.sha256).hexdigest()[:ID_LENGTH] if identity else ""


def commit(project: Path) -> tuple[str | None, bool | None]:
    """The commit of the git repository of a directory, and whether tracked files differ from it.

    (None, None) without a repository, a commit or git, and if git refuses the repository of another user. Git writes
    nothing.
    """
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # otherwise git may write its index
    try:
        done = subprocess.run(
            GIT, cwd=project, env=environment, capture_output=True, timeout=GIT_SECONDS, check=True, encoding="utf-8"
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None, None
    lines = done.stdout.splitlines()
    commits = [line.removeprefix(COMMIT) for line in lines if line.startswith(COMMIT)]
    if not commits or commits[0].startswith("("):  # "(initial)": a repository without a commit
        return None, None
    return commits[0], any(not line.startswith("#") for line in lines)
