"""Free ports on a shared address. Lock files keep two runs from choosing the same port."""

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
    """The first and last port that the kernel assigns by itself (ip_local_port_range). Our ports lie outside."""
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except (OSError, ValueError):
        return 32_768, 60_999
    return int(low), int(high)


def is_free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a server could listen on this port now. A connection in TIME_WAIT does not take the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


class PortLocks:
    """Ports that this process holds until ``close`` or its end. The kernel releases the locks of a dead process.

    A port and the one above it are both ours: Galera takes base_port + 1 when nobody tells it otherwise.
    """

    def __init__(self, directory: Path | None = None) -> None:
        # One directory for all users of the machine, because they share its ports.
        self.directory = directory or Path(tempfile.gettempdir()) / "pytest-dbcluster-ports"
        self._held: dict[int, IO[bytes]] = {}

    def take(self) -> int:
        """A free port that no other process holds. Raises ProvisionError after 200 attempts."""
        with shared_directory.entered(self.directory, "cannot use the lock files of ports") as directory:
            return self._take(directory)

    def _take(self, directory: int) -> int:
        low, high = ephemeral_range()
        ports = [port for port in range(LOWEST, HIGHEST) if not low <= port <= high]
        for port in random.SystemRandom().sample(ports, min(200, len(ports))):
            if port not in self._held and self._lock(directory, port):
                if is_free(port):
                    return port
                self._held.pop(port).close()
        raise ProvisionError(f"no free port on 127.0.0.1 in 200 attempts (locks in {self.directory})")

    def close(self) -> None:
        """Release every port."""
        for file in self._held.values():
            file.close()
        self._held.clear()

    def _lock(self, directory: int, port: int) -> bool:
        try:
            # O_NONBLOCK: opening a pipe must not block.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            file = os.fdopen(os.open(f"{port}.lock", flags, 0o666, dir_fd=directory), "rb")
        except OSError:  # a link, or another user's lock file: that user may use the port
            return False
        if not shared_directory.try_lock(file):
            file.close()
            return False
        self._held[port] = file
        return True
