"""The system of stand-in hosts: a root directory with an ssh server and the programs of a small Debian host.

A stand-in host is a set of namespaces of this machine. It sees only this root directory, and its programs run from it
without shims. ``bin/`` has only the programs that make its keys.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_dbcluster.releases import apt, shims

SERVER = "usr/sbin/sshd"
MERGED = ("bin", "sbin", "lib", "lib64")  # directories that are links into usr/ on current hosts


def make(entry: Path, programs: tuple[str, ...], architecture: str) -> None:
    """Make ``entry/bin`` with shims of ``programs``, and make ``entry/root`` a root directory for hosts."""
    unpacked = entry / shims.ROOT
    _merge(unpacked)
    _add_busybox(unpacked)
    shims.make(entry, programs, architecture, remove_others=False)


def _merge(unpacked: Path) -> None:
    """Move the directories of ``MERGED`` into usr/; packages of older suites have them separately."""
    for name in MERGED:
        apart = unpacked / name
        if apart.is_symlink():
            continue
        if apart.is_dir():
            apt.run(["cp", "--archive", "--link", f"{apart}/.", str(unpacked / "usr" / name)])
            shutil.rmtree(apart)
        if (unpacked / "usr" / name).is_dir():
            apart.symlink_to(f"usr/{name}")


def _add_busybox(unpacked: Path) -> None:
    """Add the programs of busybox that no package has. Busybox's shell is not used: it prefers built-in programs."""
    directories = (unpacked / "usr/bin", unpacked / "usr/sbin")
    if not (directories[0] / "sh").exists():
        (directories[0] / "sh").symlink_to("bash")
    for name in apt.run([str(directories[0] / "busybox"), "--list"]).split():
        if not any((directory / name).is_symlink() or (directory / name).exists() for directory in directories):
            (directories[0] / name).symlink_to("busybox")
