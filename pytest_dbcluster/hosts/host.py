"""Host: a place where commands run. The only seam that does I/O; everything above it is tested with a fake."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol


@dataclasses.dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended with 0."""

    stdout: str
    stderr: str
    seconds: float


class Process(Protocol):
    """A long-lived program on a host."""

    @property
    def pid(self) -> int:
        """Its number among the processes of this machine; 0 when it cannot be seen from here."""

    def status(self) -> int | None:
        """None while it runs, then its exit status; negative for the signal that ended it."""

    def signal(self, number: int) -> None:
        """Send a signal to it and to its own children; nothing happens when it has ended."""


class Host(Protocol):
    """Where commands run.

    ``address`` is how peers and clients reach it, ``directory`` is ours on it, ``root`` says whether commands run
    as root there. Paths are absolute paths on the host. A file that is missing raises FileNotFoundError.
    """

    name: str
    address: str
    directory: str
    root: bool

    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Run a command to its end with ``text`` as its input. Raises CommandFailed."""

    def spawn(
        self,
        command: Sequence[str],
        *,
        log: str,
        directory: str,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program that stays; its output is added to the file ``log``. Raises ProvisionError."""

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a file, with its directories."""

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """Read a file from ``offset`` on."""


class Ports(Protocol):
    """An extra power of hosts that share an address: each program needs a port of its own there."""

    def port(self) -> int:
        """A free port that no other run takes while this one lives."""


def own_port(host: Host, usual: int) -> int:
    """A port of our own where hosts share an address, the usual one elsewhere."""
    taken: int = host.port() if hasattr(host, "port") else usual
    return taken


class Limited(Protocol):
    """An extra power: the host may be limited, and knows when a limit has ended a program."""

    def limit_reached(self) -> str:
        """Which limit has ended a program on it, as a clause; empty for none."""


class Counts(Protocol):
    """An extra power of hosts whose programs are no children of ours: it knows what they have taken."""

    def cpu_seconds(self) -> float | None:
        """The CPU time of everything on the host so far; None when nobody knows."""


class Pauses(Protocol):
    """An extra power: everything on the host can be frozen, as on a machine that stalls."""

    def pause(self) -> None:
        """Freeze it. Raises ProvisionError."""

    def resume(self) -> None:
        """Let it go on. Raises ProvisionError."""


class Partitions(Protocol):
    """An extra power: the host can be cut off from all others, this machine included."""

    def partition(self) -> None:
        """Take it off its network. Raises ProvisionError."""

    def heal(self) -> None:
        """Put it on its network again, with its old address. Raises ProvisionError."""


class Falls(Protocol):
    """An extra power: everything on the host can end at once, as by a power cut."""

    def kill(self) -> None:
        """End it; the files stay, and the host can be used again. Raises ProvisionError."""


class Shells(Protocol):
    """An extra power: the host has programs of its own, which a person can run from a shell of this machine."""

    def typed(self, command: Sequence[str]) -> list[str]:
        """The words to type for it; none when this machine lacks a program for that."""


class Trees(Protocol):
    """An extra power of hosts that see our file system: a directory is copied without leaving the machine."""

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a directory with its files, ownership to whoever runs the servers; ``durable``: it is on disk then.

        Raises ProvisionError.
        """

    def remove_tree(self, path: str) -> None:
        """Remove a directory; one that is missing is no error."""
