"""What tests of guests share: the reason why there can be none here."""

from __future__ import annotations

import functools
import socket
import sys
import time
from pathlib import Path

from pytest_dbcluster import wait
from pytest_dbcluster.hosts.guests import network
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM


@functools.cache  # a dozen modules ask while they are collected
def missing() -> str:
    """Why guests cannot be tested here; empty when they can."""
    if fetched.lookup(GUEST_SYSTEM, "") is None:
        return f"the system of guests is not in the cache: dbcluster fetch {GUEST_SYSTEM}"
    return network.why_not()


def connection(host: Host, port: int, seconds: float = 30.0) -> socket.socket:
    """A connection of this process to a port of a guest. Raises OSError."""
    if host.connects:
        return host.connects(host.address, port, seconds)
    return socket.create_connection((host.address, port), seconds)


def reachable(host: Host, seconds: float = 60.0) -> float | None:
    """Seconds until a guest refused a connection, which it does when it is there; None when nothing came back."""
    began = time.monotonic()
    try:
        connection(host, 1, seconds).close()
    except ConnectionRefusedError:
        return time.monotonic() - began
    except OSError:
        return None
    raise AssertionError(f"something listens on port 1 of {host.address}")


class Listener:
    """A program of this machine to which guests connect. ``beside``: the host that runs it. It hangs up at once."""

    PROGRAM = """
import socket, sys
server = socket.create_server((sys.argv[1], 0), backlog=100)
print(server.getsockname()[1], flush=True)
while True:
    connection, caller = server.accept()
    connection.close()
    print(caller[0], flush=True)
"""

    def __init__(self, beside: Host) -> None:
        self._log = Path(beside.directory, "listener.log")
        self._log.unlink(missing_ok=True)
        self.process = beside.spawn(
            [sys.executable, "-c", self.PROGRAM, beside.address], log=str(self._log), directory=beside.directory
        )
        wait.until(lambda: [] if self._lines() else ["no port"], "a listener", seconds=60)
        self.port = int(self._lines()[0])

    def _lines(self) -> list[str]:
        text = self._log.read_text() if self._log.exists() else ""
        return text.splitlines() if text.endswith("\n") else []

    def callers(self, number: int) -> list[str]:
        """The addresses of the first so many callers, waited for."""
        wait.until(lambda: [] if len(self._lines()) > number else ["too few"], f"{number} callers", seconds=60)
        return self._lines()[1 : number + 1]


def servers_in(host: Host) -> int:
    """How many database servers run in a guest."""
    return sum(any(name in line for name in ("/mariadbd ", "/mysqld ")) for line in _processes(host))


def _processes(host: Host) -> list[str]:
    lines = host.run(["sh", "-c", "for one in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$one; echo; done"]).stdout
    return [line for line in lines.splitlines() if "for one in" not in line]
