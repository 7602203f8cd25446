"""The clean-up commands of a run remove what its provisioner made outside of the run's directory.

A provisioner records them in the run's directory before it makes anything. The run's supervisor has the same list and
runs the commands when the owner process ends. ``dbcluster down`` and ``dbcluster reap`` read the recorded list.
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
SECONDS = 60.0  # timeout of each command
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclasses.dataclass(frozen=True)
class Command:
    """One command. ``environment``: variables that are added to the environment of the process that runs it."""

    argv: Sequence[str]
    environment: Mapping[str, str]


def record(directory: Path, command: Command) -> None:
    """Add a command to those of the run in this directory. The file is replaced atomically. Raises OSError."""
    commands = [dataclasses.asdict(known) for known in (*recorded(directory), command)]
    fresh = directory / f".{FILE}"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(commands, file)
    fresh.rename(directory / FILE)


def recorded(directory: Path) -> list[Command]:
    """The commands of the run in this directory, in the order of their recording.

    Empty when the file cannot be read, when another user owns it or its directory, or when others may write to them.
    """
    try:
        return [_command(document) for document in json.loads(_own_text(directory))]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def run(directory: Path, seconds: float = SECONDS) -> None:
    """Run the commands of the run in this directory, each with a timeout of ``seconds``.

    The output is discarded. A command that fails, or a program that is missing, is no error.
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
    """The text of the file. Raises PermissionError when another user could have written it."""
    parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _refuse_others(parent)
        # Check and read the same open file: somebody could replace the file between two uses of its path.
        with os.fdopen(os.open(FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)) as file:
            _refuse_others(file.fileno())
            return file.read()
    finally:
        os.close(parent)


def _refuse_others(descriptor: int) -> None:
    status = os.fstat(descriptor)
    if status.st_uid != os.getuid() or status.st_mode & _OTHERS_WRITE:
        raise PermissionError("another user owns the file or may write to it")


def _command(document: Mapping[str, object]) -> Command:
    """The command in a JSON object. Raises ValueError, TypeError or KeyError for an object that is no command."""
    argv, environment = document["argv"], document["environment"]
    if not (isinstance(argv, list) and argv and isinstance(environment, dict)):
        raise ValueError(document)
    if not all(isinstance(word, str) for word in (*argv, *environment, *environment.values())):
        raise ValueError(document)
    return Command(argv, environment)
