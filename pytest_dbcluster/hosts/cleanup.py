"""The clean-up commands of a run remove its provisioner's objects outside of the run's directory.

A provisioner records them in the run's directory before it makes anything. The run's supervisor has the same list and
runs the commands when the owner process ends. ``dbcluster down`` and ``dbcluster reap`` read the recorded list.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from pytest_dbcluster.hosts import supervisor
from pytest_dbcluster.system import owned_files

FILE = "cleanup.json"


@dataclasses.dataclass(frozen=True)
class Command:
    """One command."""

    argv: Annotated[Sequence[str], msgspec.Meta(min_length=1)]
    """The program and its arguments."""

    environment: Mapping[str, str]
    """Variables to add to the environment of the process that runs the command."""

    seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = supervisor.AFTER_SECONDS
    """Its timeout."""


def record(directory: Path, command: Command) -> None:
    """Add a command to the run in this directory. Replaces the file atomically. Raises OSError."""
    commands = [*read_commands(directory), command]
    owned_files.write(directory, FILE, msgspec.json.encode(commands).decode())


def read_commands(directory: Path) -> list[Command]:
    """The commands of the run in this directory, in the order of their recording.

    Empty if the file cannot be read, or if another user owns or may write it or its directory.
    """
    try:
        content, owner = owned_files.read(directory, FILE)
        return msgspec.json.decode(content, type=list[Command]) if owner == os.getuid() else []
    except (OSError, msgspec.DecodeError, RecursionError):
        return []


def exists(directory: Path) -> bool:
    """Whether a run in this directory has recorded commands, whoever owns it."""
    return os.path.lexists(directory / FILE)


def run(directory: Path) -> None:
    """Run the commands of the run in this directory, each until its timeout.

    The output is discarded. A command that fails and a missing program are not errors.
    """
    quiet = subprocess.DEVNULL
    for command in read_commands(directory):
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            subprocess.run(
                command.argv,
                env={**os.environ, **command.environment},
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                timeout=command.seconds,
                check=False,
            )
