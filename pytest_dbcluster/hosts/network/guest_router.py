"""A router that is a guest, for kernels without netem: the guest's kernel has it.

Each port of the guest sends and receives packets on one interface of the namespace that holds all ports. The guest has
priority over all other programs of this machine, because a real network does not wait for servers.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.guests.guest import Guest, GuestHardware
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.network import kernel_settings, namespaces
from pytest_dbcluster.hosts.network.namespaces import Namespace
from pytest_dbcluster.hosts.network.router import GUEST_LATE, MTU, Port, Router
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM

MEMORY = 128 * 2**20  # bytes
MODULES = "/usr/lib/uml/modules"
NEEDED = ("sch_prio", "sch_netem", "cls_u32")
SECONDS = 20.0  # timeout of a command in the guest; on an idle machine it takes 10 ms
PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


class GuestRouter(Router):
    """Forwards in a guest. ``files``: the host of this machine that starts it. ``hub``: holds the ports' other ends."""

    late = GUEST_LATE

    def __init__(self, files: LocalHost, hub: Namespace, gateway: str, *, keep: bool, progress: Report) -> None:
        self._files = files
        self._hub = hub
        self._gateway = ipaddress.IPv4Interface(f"{gateway}/32")
        self._keep = keep
        self._progress = progress
        self._guest: Guest | None = None
        self.ports: Sequence[Port] = ()

    @staticmethod
    def interface(port: Port) -> str:
        """The name of a port in the router."""
        return f"vec{port.number - 1}"

    def start(self, ports: Sequence[Port]) -> None:
        """Boot the guest and make it forward between these ports. Raises ProvisionError."""
        self.ports = ports
        machine = GuestHardware(
            MEMORY,
            interfaces=[(port.outside, self._gateway) for port in ports],
            enter=[*namespaces.ahead(), *self._hub.command_inside()],
            writable=[self._files.directory],
            keep=self._keep,
            more=[f"mtu={MTU}"],
        )
        self._guest = Guest("router", find.find(GUEST_SYSTEM, progress=self._progress), self._files, machine)
        for name in NEEDED:
            self._run(["insmod", f"{MODULES}/{name}.ko"])
        own = [
            line
            for port in ports
            for line in (
                f"link set dev {self.interface(port)} down",
                f"link set dev {self.interface(port)} address {port.router_mac}",
            )
        ]
        self._batch("ip", [*own, *self.forwarding()])
        self._run(["sysctl", "-w", "net.ipv4.ip_forward=1"])
        self.tc(self.queues())

    def tc(self, lines: Sequence[str]) -> None:
        """Run these lines with ``tc`` in the guest."""
        self._batch("tc", lines)

    def show_queues(self) -> str:
        """The output of ``tc`` in the guest."""
        return self._run(["/sbin/tc", *kernel_settings.SHOW])

    def _batch(self, program: str, lines: Sequence[str]) -> None:
        path = f"{self._files.directory}/{program}.batch"
        self._files.push(("\n".join(lines) + "\n").encode(), path)
        self._run([f"/sbin/{program}", "-batch", path])

    def _run(self, command: Sequence[str]) -> str:
        assert self._guest
        output = f"{self._files.directory}/output"
        Path(output).unlink(missing_ok=True)
        begin = agent.script(command, directory="/", environment=PATH, output=output)
        status = self._guest.agent.wait(self._guest.agent.begin(begin), SECONDS)
        said = Path(output).read_text(errors="replace") if Path(output).exists() else ""
        if status:
            raise CommandFailed(command, status, said, host="the router guest", seconds=SECONDS)
        if status is None:
            raise ProvisionError(f"the router guest has not ended {' '.join(command)} within {SECONDS:g} s")
        return said

    def why_lost(self) -> str:
        """Why the guest does not forward any more; empty while it does."""
        if self._guest is None or not self._guest.agent.gone:
            return ""
        last = self._guest.last_words().strip().splitlines()[-1:] or ["nothing"]
        return f"the router between the nodes is gone (a guest; the last line of its console: {last[0]})"

    def close(self) -> None:
        """End the guest."""
        if self._guest:
            self._guest.close()
