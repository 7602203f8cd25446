"""The clean-up commands of a run: what ends that which a provisioner has made outside of the run's directory.

They are recorded in the run's directory before anything is made. The run's supervisor has the same list and runs it
when the owner is gone; whoever ends a run later (``dbcluster down``, ``dbcluster reap``) runs it from here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

FILE = "cleanup.json"
SECONDS = 60.0  # for each command
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclasses.dataclass(frozen=True)
class Command:
    """One command; ``environment`` is what it needs beside the variables of whoever runs it."""

    argv: Sequence[str]
    environment: Mapping[str, str]


def record(directory: Path, command: Command) -> None:
    """Add a command to those of the run in this directory. Raises OSError; the file is whole at any time."""
    known = [dataclasses.asdict(each) for each in (*recorded(directory), command)]
    fresh = directory / f".{FILE}"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(known, file)
    fresh.rename(directory / FILE)


def recorded(directory: Path) -> list[Command]:
    """The commands of the run in this directory, in the order in which they were recorded.

    None when the directory or the file is not this user's, or somebody else may write to it.
    """
    try:
        return [_command(document) for document in json.loads(_own_text(directory))]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def run(directory: Path, seconds: float = SECONDS) -> None:
    """Run the commands of the run in this directory, each for so many seconds at most.

    Their output is dropped. A command that fails, or whose program is missing, is no error.
    """
    quiet = subprocess.DEVNULL
    for command in recorded(directory):
        with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
            subprocess.run(
                command.argv,
                env={**os.environ, **command.environment},
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                timeout=seconds,
                check=False,
            )


def _own_text(directory: Path) -> str:
    """The text of the file. Raises PermissionError for one that another user could have written."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _refuse_others(place)
        # What is checked is what is read: a path could lead elsewhere in the meantime.
        with os.fdopen(os.open(FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)) as file:
            _refuse_others(file.fileno())
            return file.read()
    finally:
        os.close(place)


def _refuse_others(descriptor: int) -> None:
    status = os.fstat(descriptor)
    if status.st_uid != os.getuid() or status.st_mode & _OTHERS_WRITE:
        raise PermissionError("another user may have written it")


def _command(document: Mapping[str, object]) -> Command:
    """Raises ValueError, TypeError or KeyError for what is no command."""
    argv, environment = document["argv"], document["environment"]
    if not (isinstance(argv, list) and argv and isinstance(environment, dict)):
        raise ValueError(document)
    if not all(isinstance(word, str) for word in (*argv, *environment, *environment.values())):
        raise ValueError(document)
    return Command(argv, environment)
