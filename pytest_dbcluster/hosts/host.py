"""Host: a machine, a container or a directory where commands run.

It is the only seam that does I/O; everything above it is tested with a fake. What only some hosts can do, and what has
no sensible default, is a protocol of its own (``Pauses``, ``Partitions``, ``Falls``), to be asked for with
``isinstance``.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable


@dataclasses.dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended with 0."""

    stdout: str
    stderr: str
    seconds: float


class Process(abc.ABC):
    """A long-lived program on a host."""

    @property
    @abc.abstractmethod
    def pid(self) -> int:
        """Its number among the processes of this machine; 0 when it cannot be seen from here."""

    @abc.abstractmethod
    def status(self) -> int | None:
        """None while it runs, then its exit status; negative for the signal that ended it."""

    @abc.abstractmethod
    def signal(self, number: int) -> None:
        """Send a signal to it and to its own children; nothing happens when it has ended."""


class Host(abc.ABC):
    """Where commands run.

    ``address`` is how peers and clients reach it, ``directory`` is ours on it, ``root`` says whether commands run
    as root there. Paths are absolute paths on the host. A file that is missing raises FileNotFoundError.
    """

    name: str
    address: str
    directory: str
    root: bool

    @abc.abstractmethod
    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Run a command to its end with ``text`` as its input. Raises CommandFailed."""

    @abc.abstractmethod
    def spawn(
        self,
        command: Sequence[str],
        *,
        log: str,
        directory: str,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program that stays; its output is added to the file ``log``. Raises ProvisionError."""

    @abc.abstractmethod
    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a file, with its directories."""

    @abc.abstractmethod
    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """Read a file from ``offset`` on."""

    @abc.abstractmethod
    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a directory of this machine to the host; the copy belongs to whoever runs the servers there.

        ``durable``: the copy is on disk when this returns. Raises ProvisionError.
        """

    @abc.abstractmethod
    def remove_tree(self, path: str) -> None:
        """Remove a directory; one that is missing is no error."""

    def port(self, usual: int) -> int:
        """The port for a program that listens on ``usual`` by default.

        It is ``usual`` itself on a host with an address of its own. Hosts that share an address give a free port that
        no other run takes while this one lives, another one at each call.
        """
        return usual

    def limit_reached(self) -> str:
        """Which limit of the host has ended a program on it, as a clause; empty for none."""
        return ""

    def cpu_seconds(self) -> float | None:
        """The CPU time of everything that was run on the host so far, in seconds; None when it is not known."""
        return None

    def typed(self, command: Sequence[str]) -> list[str]:
        """The words by which a person runs a program of the host from a shell of this machine.

        Empty when the host has no programs of its own, or when this machine lacks what would run them.
        """
        return []


@runtime_checkable
class Pauses(Protocol):
    """An optional power: everything on the host can be frozen, as on a machine that stalls."""

    def pause(self) -> None:
        """Freeze it. Raises ProvisionError."""

    def resume(self) -> None:
        """Let it go on. Raises ProvisionError."""


@runtime_checkable
class Partitions(Protocol):
    """An optional power: the host can be cut off from all others, this machine included."""

    def partition(self) -> None:
        """Take it off its network. Raises ProvisionError."""

    def heal(self) -> None:
        """Put it on its network again, with its old address. Raises ProvisionError."""


@runtime_checkable
class Falls(Protocol):
    """An optional power: everything on the host can end at once, as by a power cut."""

    def kill(self) -> None:
        """End it; the files stay, and the host can be used again. Raises ProvisionError."""
