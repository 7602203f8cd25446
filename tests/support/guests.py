"""What tests of guests share: the reason why there can be none here."""

from __future__ import annotations

from pytest_dbcluster.hosts.guests import network
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.releases import fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM


def missing() -> str:
    """Why guests cannot be tested here; empty when they can."""
    if fetched.lookup(GUEST_SYSTEM, "") is None:
        return f"the system of guests is not in the cache: dbcluster fetch {GUEST_SYSTEM}"
    return network.missing()


def servers_in(host: Host) -> int:
    """How many database servers run in a guest."""
    return sum(any(name in line for name in ("/mariadbd ", "/mysqld ")) for line in _processes(host))


def _processes(host: Host) -> list[str]:
    lines = host.run(["sh", "-c", "for one in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$one; echo; done"]).stdout
    return [line for line in lines.splitlines() if "for one in" not in line]
