"""Free ports on a shared address, held by lock files so that two runs never choose the same one."""

from __future__ import annotations

import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.system import shared_directory

LOWEST, HIGHEST = 10_000, 65_000


def ephemeral_range() -> tuple[int, int]:
    """The ports that the kernel hands out by itself (ip_local_port_range): ours lie outside of it."""
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except (OSError, ValueError):
        return 32_768, 60_999
    return int(low), int(high)


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a server could listen there now; a connection in TIME_WAIT does not count as taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


class PortLocks:
    """Ports held by this process until ``close`` or its end; the kernel drops a dead holder's locks.

    A port and the one above it are both ours: Galera takes base_port + 1 when nobody tells it otherwise.
    """

    def __init__(self, directory: Path | None = None) -> None:
        # One directory for all users of the machine, because they share its ports.
        self.directory = directory or Path(tempfile.gettempdir()) / "pytest-dbcluster-ports"
        self._held: dict[int, IO[bytes]] = {}

    def take(self) -> int:
        """A free port that no other holder has. Raises ProvisionError after 200 tries."""
        with shared_directory.entered(self.directory, "no place for the locks of ports") as place:
            return self._take(place)

    def _take(self, place: int) -> int:
        low, high = ephemeral_range()
        choice = [port for port in range(LOWEST, HIGHEST) if not low <= port <= high]
        for port in random.SystemRandom().sample(choice, min(200, len(choice))):
            if port not in self._held and self._lock(place, port):
                if is_free(port):
                    return port
                self._held.pop(port).close()
        raise ProvisionError(f"no free port on 127.0.0.1 in 200 tries (locks in {self.directory})")

    def close(self) -> None:
        """Give every port back."""
        for file in self._held.values():
            file.close()
        self._held.clear()

    def _lock(self, place: int, port: int) -> bool:
        try:
            # What is no file at all, such as a pipe, must not keep us waiting.
            how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            file = os.fdopen(os.open(f"{port}.lock", how, 0o666, dir_fd=place), "rb")
        except OSError:  # another user's lock file; the port may be in use by that user. Or a link, which says nothing
            return False
        if not shared_directory.try_lock(file):
            file.close()
            return False
        self._held[port] = file
        return True
