"""A host that is a guest. Its programs run in the guest; its files lie in a directory of this machine."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
from collections.abc import Sequence

import psutil

from pytest_dbcluster.formatting import mebibytes
from pytest_dbcluster.hosts.agent_host import AgentHost
from pytest_dbcluster.hosts.guests.guest import DIRECTORY, Guest, Machine
from pytest_dbcluster.hosts.guests.network import Network
from pytest_dbcluster.hosts.host import Falls, Partitions, Pauses
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.network.path import NetworkPath
from pytest_dbcluster.releases.release import Release


class GuestHost(AgentHost, Pauses, Partitions, Falls):
    """A guest, its agent, and the directory that it shares with this machine under the same path."""

    root = True  # in the guest

    def __init__(self, name: str, system: Release, files: LocalHost, machine: Machine, network: Network) -> None:
        self._interface, address = machine.interfaces[0]
        super().__init__(name, str(address.ip), files)
        self._address: ipaddress.IPv4Interface = address
        self._network = network
        self.connects = network.connects
        self._memory = machine.memory
        self.path: NetworkPath | None = None  # the network to the other hosts of the cluster, where it can be delayed
        self._scripts = itertools.count(1)
        self._guest = Guest(name, system, files, machine)
        self.agent = self._guest.agent

    def begin(self, script: str) -> int:
        """Start a script; returns its number. It goes over by a file: the line takes .1 ms for a character."""
        with self._numbering:
            path = f"{self.directory}/{DIRECTORY}/program-{next(self._scripts)}"
        self._files.push(script.encode(), path)
        return self.agent.begin(f". {path}")

    def lost(self) -> str:
        """Why the guest has ended, with the last words of its console; empty while it runs."""
        return self.agent.gone

    def limit_reached(self) -> str:
        """That the guest's memory was used up, or why the whole guest ended; empty for neither."""
        if "Out of memory" in self._guest.console():
            return f"the guest's memory of {mebibytes(self._memory)} was used up"
        return self.agent.gone

    def cpu_seconds(self) -> float | None:
        """The CPU time of the guest so far, with that of its kernel, in seconds; None after its end."""
        total = 0.0
        with contextlib.suppress(psutil.Error):
            kernel = psutil.Process(self._guest.pid)
            times = kernel.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
            for process in kernel.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    times = process.cpu_times()
                    total += times.user + times.system
        return total or None

    def typed(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a program in the network of the guest, where this machine is not connected."""
        return [*self._network.enter, *command] if self.connects else []

    def pause(self) -> None:
        """Freeze the guest, as a machine that stalls. Raises ProvisionError."""
        self._guest.pause()

    def resume(self) -> None:
        """Let the guest continue. Raises ProvisionError."""
        self._guest.resume()

    def partition(self) -> None:
        """Cut the guest off from all other guests and from this machine. Raises ProvisionError."""
        self._network.cut(self._interface)

    def heal(self) -> None:
        """Connect the guest again. Raises ProvisionError."""
        self._network.join(self._interface)

    def kill(self) -> None:
        """Cut the guest's power and start it again. Raises ProvisionError.

        What its programs had in memory is lost. What they wrote to files, flushed or not, this machine has.
        """
        self._guest.cut()
        self._guest.boot()
        self.agent = self._guest.agent  # a new line

    def detach(self) -> None:
        """Close our line to the guest. It ends then, unless the run is kept."""
        self._guest.detach()

    def close(self) -> None:
        """End the guest and remove its port. A guest that has ended already is no error."""
        self._guest.close()
        self._network.detach(self._interface, self._address)
        if self._files.group:
            self._files.group.remove()
