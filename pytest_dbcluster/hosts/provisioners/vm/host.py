"""A host that is a guest: its programs run in the guest, its files are in a shared directory, data on its disk."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.agent_host import AgentHost
from pytest_dbcluster.hosts.guests.disk import Counted
from pytest_dbcluster.hosts.guests.guest import DIRECTORY, Guest, GuestHardware
from pytest_dbcluster.hosts.guests.network import Network
from pytest_dbcluster.hosts.host import BlockDevice, Falls, Host, LimitsWrites, Partitions, Pauses, ReplicationLink
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.network.path import NetworkPath
from pytest_dbcluster.hosts.provisioners.vm.data_disk import DEVICE, DataDisk
from pytest_dbcluster.hosts.provisioners.vm.disk_images import DiskImages
from pytest_dbcluster.releases.release import Release

LOOK_SECONDS = 1.0  # timeout for the figures of a guest; a paused one does not answer
TICKS, SECTOR, ETHERNET = 100, 512, 14  # units: of CPU time (1/s), of disks and of an Ethernet header (bytes)


class GuestHost(AgentHost, Pauses, Partitions, Falls, LimitsWrites, BlockDevice, ReplicationLink):
    """A guest, its agent, its disk, and the directory that it shares with this machine under the same path."""

    root = True  # inside the guest
    patience = 4.0  # measured: servers are two to four times slower
    device = DEVICE

    def __init__(
        self,
        name: str,
        system: Release,
        files: LocalHost,
        machine: GuestHardware,
        network: Network,
        images: DiskImages,
    ) -> None:
        self._interfaces = machine.interfaces
        address, *more = [str(address.ip) for _, address in machine.interfaces]
        super().__init__(name, address, files)
        self.replication_address = more[0] if more else ""
        self._network = network
        self.connects = network.connects
        self.path: NetworkPath | None = None  # the network to the other hosts of the cluster, if it can be delayed
        self._scripts = itertools.count(1)
        self._cut = False  # whether it lost power and is restarting
        self._guest = Guest(name, system, files, machine)
        self.agent = self._guest.agent
        self._disk = DataDisk(self, self._guest.disks[0], images)

    def begin(self, script: str) -> int:
        """Start a script; returns its number. It is sent in a file: the serial line takes .1 ms per character."""
        with self._numbering:
            path = f"{self.directory}/{DIRECTORY}/program-{next(self._scripts)}"
        self._files.push(script.encode(), path)
        return self.agent.begin(f". {path}")

    def why_lost(self) -> str:
        """Why the guest has ended, with the last lines of its console; empty while it runs or restarts."""
        return "" if self._cut else self.agent.gone

    def limit_reached(self) -> str:
        """Whether the guest's memory was used up, its disk failed, or the guest ended, as a clause; otherwise empty."""
        return self._guest.memory_words() or self.agent.gone or self._guest.disk_words()

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a file, through the shared directory if it is on the disk."""
        if not self._disk.holds(path):
            super().push(content, path, mode=mode)
            return
        with self._numbering:
            shared = f"{self.directory}/{DIRECTORY}/file-{next(self._scripts)}"
        super().push(content, shared)
        self._disk.push(shared, path, mode)

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """The content of a file from byte ``offset`` (0-based) to its end."""
        if not self._disk.holds(path):
            return super().pull(path, offset=offset)
        copy = self._disk.pull(path)
        content = super().pull(copy, offset=offset)
        Path(copy).unlink()
        return content

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a directory of this machine; for the server's data, into a new file system on the disk."""
        if target != self._disk.directory:
            super().copy_tree(source, target, durable=durable)
            return
        self.place(source, durable=durable)
        self.mount(self.device)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it; the mount point of the disk stays, empty."""
        if self._disk.holds(path):
            self._disk.remove(path)
        else:
            super().remove_tree(path)

    def take_tree(self, source: str, target: Path) -> None:
        """Move a directory to this machine."""
        super().take_tree(self._disk.copy_out(source) if self._disk.holds(source) else source, target)

    def tree_size(self, path: str) -> int:
        """The size of a directory, in bytes."""
        return self._disk.size(path) if self._disk.holds(path) else super().tree_size(path)

    def flush_seconds(self) -> float:
        """The time of one flush of the disk, or of this machine's disk while the disk has no data."""
        return self._disk.flush_seconds() if self._disk.holds(self._disk.directory) else super().flush_seconds()

    def counters(self) -> Counted:
        """Counters of the disk since the guest was powered on."""
        return self._guest.disks[0].counters()

    def write_limit(self) -> int | None:
        """The write operations/s of the program that serves the disk; None without a limit."""
        return self._files.write_limit()

    def limit_writes(self, iops: int) -> None:
        """Change the limit on writes of a guest that has one. Raises ProvisionError."""
        self._files.limit_writes(iops)

    def place(self, source: str, *, durable: bool = False) -> None:
        """Make a file system on the disk, with a copy of a directory of this machine. Raises ProvisionError."""
        self._disk.place(source, durable=durable)

    def copy_disk(self, other: Host, *, durable: bool = False) -> None:
        """Make the disk equal to that of another guest. Raises ProvisionError."""
        assert isinstance(other, GuestHost)
        self._disk.copy(self._files, other._guest.disks[0].disk.path, durable=durable)

    def mount(self, device: str) -> None:
        """Mount the disk, or a device on top of it, at the server's data directory. Raises ProvisionError."""
        self._disk.mount(device)

    def unmount(self) -> None:
        """Undo ``mount``. Raises ProvisionError."""
        self._disk.unmount()

    def cpu_seconds(self) -> float | None:
        """The CPU seconds of the guest so far, with those of its kernel and disk; None after its end."""
        total = 0.0
        with contextlib.suppress(psutil.Error):
            kernel = psutil.Process(self._guest.pid)
            times = kernel.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
            disks = [psutil.Process(disk.pid) for disk in self._guest.disks]
            for process in (*kernel.children(recursive=True), *disks):
                with contextlib.suppress(psutil.Error):
                    times = process.cpu_times()
                    total += times.user + times.system
        return total or None

    def command_line(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a program in the guest's network, if this machine is not connected to it."""
        return [*self._network.enter, *command] if self.connects else []

    def usage(self) -> Mapping[str, float]:
        """The counters of the guest's kernel; empty if it does not answer, which other checks report."""
        try:
            counted = self.agent.look(LOOK_SECONDS)
        except (ProvisionError, OSError):
            return {}
        if not counted:
            return {}
        found = {f"cpu_{name}": counted[name] / TICKS for name in ("user", "system", "iowait", "idle")}
        found |= {"disk_read_bytes": counted["read"] * SECTOR, "disk_write_bytes": counted["written"] * SECTOR}
        if "packets" not in counted:
            return found
        # The counters of a link omit the Ethernet header.
        own = counted["sent"] - ETHERNET * counted["packets"]
        return {
            **found,
            "network_received_bytes": counted["received"] - own,
            "network_sent_bytes": counted["sent"],
        }

    def pause(self) -> None:
        """Freeze the guest, as a machine that stalls. Raises ProvisionError."""
        self._guest.pause()

    def resume(self) -> None:
        """Let the guest continue. Raises ProvisionError."""
        self._guest.resume()

    @property
    def _names(self) -> list[str]:
        return [interface for interface, _ in self._interfaces]

    def partition(self) -> None:
        """Cut the guest off from all other guests and from this machine. Raises ProvisionError."""
        self._network.cut(self._names)

    def heal(self) -> None:
        """Connect the guest again. Raises ProvisionError."""
        self._network.join(self._names)

    def kill(self) -> None:
        """Cut the guest's power and start it again. Raises ProvisionError.

        The contents of its memory and unflushed writes to its disk are lost. Files in the shared directory stay.
        Sockets and their lock files do not, as for files in /run: after a boot, another process can have the process
        id in a lock file.
        """
        self._cut = True
        self._guest.cut()
        for path in Path(self.directory).glob("*.sock*"):
            path.unlink()
        self._guest.boot()
        self.agent = self._guest.agent  # a new connection
        self._cut = False
        self._disk.begin_again()
        if self.path:
            self.path.begin_again(self.name)

    def detach(self) -> None:
        """Close our connection to the guest. It then ends, unless the run is kept."""
        self._guest.detach()

    def close(self) -> None:
        """End the guest and remove its ports. It is not an error if it has ended already."""
        self._guest.close()
        for interface, address in self._interfaces:
            self._network.detach(interface, address)
        if self._files.group:
            self._files.group.remove()
