"""Ledger: all launches of a run, of all its workers, under one cap.

Before a launch we reserve its maximum cost. When its instances have ended, we reduce this to its actual cost. The
ledger is a file that every worker reads and replaces under a kernel lock. A killed process leaves its reservations,
because its instances may live until they end themselves.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import filelock
import msgspec

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2.money.cost import MICRO, Cost, usd

LOCK_SECONDS = 60.0  # timeout; another worker holds the lock for milliseconds


class LaunchEntry(msgspec.Struct, omit_defaults=True):
    """A launch."""

    most: int
    """The reserved sum, in millionths of a USD."""

    spent: int | None = None
    """The cost in millionths of a USD; None while its instances may live."""


class Entries(msgspec.Struct):
    """The content of the file."""

    launches: dict[str, LaunchEntry]
    """Id of a launch -> the launch."""


class LaunchLedger:
    """The launches of a run. path: the file, in a directory of the run's user. cap: in USD; None permits nothing."""

    def __init__(self, path: Path, cap: float | None) -> None:
        self._path = path
        self._cap = cap

    def reserve(self, cost: Cost) -> str:
        """Reserve the maximum cost of a launch. Returns the id of the reservation, for ``settle``.

        It is on disk before this returns. Raises ConfigError if the cap does not allow it. Raises ProvisionError if the
        ledger cannot be read or written; then the caller must not launch anything.
        """
        if self._cap is None:
            raise ConfigError(cost.refusal(None))
        with self._open() as entries:
            used = _total(entries)
            if used + cost.most > math.floor(self._cap * MICRO + 1e-6):
                raise ConfigError(cost.refusal(self._cap, used))
            name = secrets.token_hex(8)
            entries.launches[name] = LaunchEntry(cost.most)
            self._write(entries)
        return name

    def settle(self, name: str, spent: int) -> None:
        """Record the cost of a launch in millionths of a USD after its instances have ended; 0 without instances.

        Raises ProvisionError, and then the reservation stays. A second call changes nothing.
        """
        with self._open() as entries:
            launch = entries.launches[name]
            if launch.spent is None:
                launch.spent = max(0, spent)
                self._write(entries)

    @property
    def used(self) -> int:
        """The spent and reserved sum, in millionths of a USD. Raises ProvisionError."""
        with self._open() as entries:
            return _total(entries)

    @property
    def settled_total(self) -> int:
        """The cost of launches whose instances have ended, in millionths of a USD. Raises ProvisionError."""
        with self._open() as entries:
            return sum(launch.spent for launch in entries.launches.values() if launch.spent is not None)

    @property
    def line(self) -> str:
        """The spent sum: ``about 0.41 USD spent``. Raises ProvisionError."""
        with self._open() as entries:
            launches = entries.launches.values()
            spent = sum(launch.spent for launch in launches if launch.spent is not None)
            left = sum(launch.most for launch in launches if launch.spent is None)
        more = f", and at most {usd(left)} USD by instances that have not ended yet" if left else ""
        return f"about {spent / MICRO:.2f} USD spent{more}"

    @contextlib.contextmanager
    def _open(self) -> Iterator[Entries]:
        """The entries, locked against other processes. Raises ProvisionError."""
        try:
            with filelock.FileLock(f"{self._path}.lock", timeout=LOCK_SECONDS):
                yield self._read()
        except filelock.Timeout:
            raise ProvisionError(
                f"the ledger of the run's cost, {self._path}, was in use by another process for {LOCK_SECONDS:.0f} s"
            ) from None
        except OSError as error:
            raise ProvisionError(
                f"cannot use the ledger of the run's cost, {self._path}: {error.strerror or error}; without it we "
                "launch nothing"
            ) from None

    def _read(self) -> Entries:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Entries)
        except FileNotFoundError:
            return Entries({})
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ProvisionError(
                f"the ledger of the run's cost, {self._path}, is damaged ({error}); without it we launch nothing"
            ) from None

    def _write(self, entries: Entries) -> None:
        """Replace the file atomically; it is on disk when this returns."""
        fresh = self._path.with_name(f"{self._path.name}.new")
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(entries))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _total(entries: Entries) -> int:
    return sum(launch.most if launch.spent is None else launch.spent for launch in entries.launches.values())
