"""Free ports on a shared address. Two runs never choose the same port, even if their users differ."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError

LOWEST, HIGHEST = 10_000, 65_000
ATTEMPTS = 200
NAME = "pytest-dbcluster-port"


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
    """Ports that this process holds until ``close`` or its end.

    A local socket with an abstract name (unix(7)) holds a port. All users of our network namespace see such a name,
    whatever their TMPDIR is. It is not a file, and the kernel frees it when its process ends.
    ``name``: the prefix of these names.
    """

    def __init__(self, name: str = NAME) -> None:
        self.name = name
        self._held: dict[int, socket.socket] = {}

    def take(self) -> int:
        """A free port that no other process holds. Raises ProvisionError after ATTEMPTS.

        If the kernel assigns nearly all ports by itself, as set on many database servers, ours is one of them.
        """
        low, high = ephemeral_range()
        ports = [port for port in range(LOWEST, HIGHEST) if not low <= port <= high]
        ports = ports if len(ports) >= ATTEMPTS else list(range(LOWEST, HIGHEST))
        for port in random.SystemRandom().sample(ports, min(ATTEMPTS, len(ports))):
            if port not in self._held and self._lock(port):
                if is_free(port):
                    return port
                self._held.pop(port).close()
        raise ProvisionError(
            f"no free port on 127.0.0.1 in {ATTEMPTS} attempts; to list the ports that runs hold: "
            f"grep {self.name} /proc/net/unix"
        )

    def close(self) -> None:
        """Release every port."""
        for held in self._held.values():
            held.close()
        self._held.clear()

    def _lock(self, port: int) -> bool:
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(f"\0{self.name}-{port}")
        except OSError:  # another process holds it, whoever its user is
            holder.close()
            return False
        self._held[port] = holder
        return True
