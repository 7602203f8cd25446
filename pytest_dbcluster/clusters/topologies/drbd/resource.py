"""Resource: one device that DRBD replicates between the disks of two hosts.

It runs the hosts' programs drbdadm and modprobe. It reads states from /proc/drbd and the kernel's log, in the format of
version 8.4.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pytest_dbcluster import wait
from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.formatting import quantity, size
from pytest_dbcluster.hosts.host import BlockDevice, Host, replication_address

T = TypeVar("T")
NAME = "r0"
DEVICE = "/dev/drbd0"
PORT = 7788
VERSION = "8.4"
CONNECT_SECONDS = 60.0
RESYNC_SECONDS = 600.0
# DRBD's times are tenths of a second for timeouts, otherwise seconds. A busy machine delays answers by seconds. If this
# ended a connection, the round would be void, so the timeouts are long. Failover does not wait for them. Both hosts
# sleep for socket-check-timeout when a connection opens.
# al-extents: the areas of 4 MiB to copy again after a crash; this was the default at the time of the published
# measurement. c-plan-ahead 0: a resync uses all the bandwidth, because no round runs meanwhile.
CONFIGURATION = """\
global {{ usage-count no; }}
resource {name} {{
  device {device} minor 0;
  meta-disk internal;
  net {{ protocol {protocol}; timeout 100; connect-int 11; ping-int 11; ping-timeout 100; socket-check-timeout 2; }}
  disk {{ al-extents 127; c-plan-ahead 0; resync-rate 400M; }}
{hosts}}}
"""
HOST = "  on {name} {{ disk {disk}; address {address}:{port}; }}\n"
# Before a resync the kernel runs a helper program, which would refuse it without its configuration: use /bin/true.
LOAD = """\
mkdir -p /var/lib/drbd /run/lock /var/lock
test -e /proc/drbd || modprobe drbd usermode_helper=/bin/true || exit
cat /proc/drbd
"""
STATE_NOW = "cat /proc/drbd 2>/dev/null; true"
# In a guest each program takes some ms to start, so only those readings have the kernel's log that need it.
WITH_CHANGES = "cat /proc/drbd 2>/dev/null; dmesg | grep -E 'drbd.*( -> |Split-Brain)'; true"
STATE = re.compile(r"^ *0: cs:(\w+) ro:(\w+)/(\w+) ds:(\w+)/(\w+) (\w?)", re.MULTILINE)
NUMBER = re.compile(r"\b(pe|ua|oos):(\d+)")
SPLIT_BRAIN = "Split-Brain detected but unresolved"
CONNECTED, ALONE, UP_TO_DATE = "Connected", "StandAlone", "UpToDate"


@dataclasses.dataclass(frozen=True)
class ResourceState:
    """The resource as one host sees it."""

    connection: str
    """The connection's state, such as ``Connected``, ``StandAlone`` or ``SyncTarget``."""

    role: str
    """The host's role, such as ``Primary``."""

    peer_role: str
    """The other host's role."""

    disk: str
    """The disk's state, such as ``UpToDate``."""

    peer_disk: str
    """The state of the other host's disk."""

    protocol: str
    """The replication protocol: A, B or C; empty without a connection."""

    pending: int
    """The number of requests that are sent or received, but not answered."""

    out_of_sync: int
    """The number of bytes in which the disks differ."""

    changes: Sequence[str]
    """The kernel's log lines about changes of connections, roles and disks; none if the log was not read."""

    split_brain: bool
    """Whether the kernel has logged an unresolved split brain; False if the log was not read."""

    def __str__(self) -> str:
        return f"{self.connection}, {self.role}/{self.peer_role}, {self.disk}/{self.peer_disk}"


def parse(text: str) -> ResourceState | None:
    """The state in a host's output of WITH_CHANGES or STATE_NOW; None if the host does not have the resource."""
    found = STATE.search(text)
    if found is None:
        return None
    numbers = {name: int(value) for name, value in NUMBER.findall(text)}
    lines = text.splitlines()
    connection, role, peer_role, disk, peer_disk, protocol = found.groups()
    return ResourceState(
        connection=connection,
        role=role,
        peer_role=peer_role,
        disk=disk,
        peer_disk=peer_disk,
        protocol=protocol,
        pending=numbers.get("pe", 0) + numbers.get("ua", 0),
        out_of_sync=numbers.get("oos", 0) * 1024,
        changes=[line.partition("] ")[2] or line for line in lines if " -> " in line],
        split_brain=any(SPLIT_BRAIN in line for line in lines),
    )


class Resource:
    """The device on two hosts. version: the version of the kernel's module, known after ``make``."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = hosts
        self.version = ""
        self._configuration: dict[str, str] = {}
        self._lines = ""  # the hosts' lines of the configuration

    def make(self) -> None:
        """Make the device on equal disks, so DRBD copies nothing. Raises ProvisionError, Unsupported."""
        self._on_all(self._load)
        names = self._on_all(lambda host: host.run(["uname", "-n"]).stdout.strip())
        lines = [
            HOST.format(name=name, disk=block_device(host).device, address=replication_address(host), port=PORT)
            for host, name in zip(self.hosts, names, strict=True)
        ]
        self._lines = "".join(lines)
        self._configuration = {host.name: f"{host.directory}/drbd.conf" for host in self.hosts}
        self._on_all(lambda host: self._configure(host, "C"))
        self._on_all(self._create)
        wait.until(lambda: self._mismatches("connection", CONNECTED), f"DRBD of {self._names}", seconds=CONNECT_SECONDS)
        self.run(self.hosts[0], "new-current-uuid", "--clear-bitmap")
        wait.until(lambda: self._mismatches("disk", UP_TO_DATE), f"DRBD of {self._names}", seconds=CONNECT_SECONDS)

    def _configure(self, host: Host, protocol: str) -> None:
        """Write the file that drbdadm reads. Both hosts need the same protocol, or they refuse to connect."""
        text = CONFIGURATION.format(name=NAME, device=DEVICE, protocol=protocol, hosts=self._lines)
        host.push(text.encode(), self._configuration[host.name])

    @property
    def _names(self) -> str:
        return " and ".join(host.name for host in self.hosts)

    def _load(self, host: Host) -> None:
        try:
            output = host.run(["/bin/sh", "-c", LOAD]).stdout
        except CommandFailed as error:
            raise Unsupported(f"{host.name} cannot load the kernel module drbd: {error.stderr.strip()}") from error
        found = re.search(r"^version: (\S+)", output, re.MULTILINE)
        self.version = found[1] if found else "of an unknown version"
        if not f"{self.version}.".startswith(f"{VERSION}."):
            raise Unsupported(
                f"{host.name} has DRBD {self.version}, but the topology drbd supports only version {VERSION}"
            )

    def _create(self, host: Host) -> None:
        try:
            self.run(host, "create-md", "--force")
        except CommandFailed as error:
            raise ProvisionError(
                f"cannot make DRBD's metadata on {block_device(host).device} of {host.name}: {error.stderr.strip()}; "
                "ask for a larger disk with disk="
            ) from error
        self.run(host, "up")

    def attach(self, host: Host) -> None:
        """Bring the resource up on a host that has restarted. Raises ProvisionError."""
        self._load(host)
        self.run(host, "up")

    def run(self, host: Host, *words: str) -> None:
        """Run drbdadm for the resource on a host. Raises CommandFailed."""
        host.run(["drbdadm", "-c", self._configuration[host.name], *words, NAME])

    def _on_all(self, does: Callable[[Host], T]) -> list[T]:
        with concurrent.futures.ThreadPoolExecutor(len(self.hosts)) as threads:
            return list(threads.map(does, self.hosts))

    def state(self, host: Host, *, changes: bool = False) -> ResourceState | None:
        """The resource as a host sees it; None if the host does not have it. Raises ProvisionError.

        changes: also read the kernel's log.
        """
        return parse(host.run(["/bin/sh", "-c", WITH_CHANGES if changes else STATE_NOW]).stdout)

    def states(self) -> list[ResourceState | None]:
        """The resource as each host sees it, in order. Raises ProvisionError."""
        return self._on_all(self.state)

    def _mismatches(self, field: str, wanted: str) -> list[str]:
        """One line for each host with another value in a field of the state."""
        values = [getattr(state, field, "unknown") for state in self.states()]
        return [
            f"{host.name}: the {field} is {value}, wanted {wanted}"
            for host, value in zip(self.hosts, values, strict=True)
            if value != wanted
        ]

    def problems(self, *, connected: bool) -> list[str]:
        """Why the connection is not as wanted, one line each. Raises ProvisionError for a split brain."""
        lines = []
        for host, state in zip(self.hosts, self.states(), strict=True):
            if state is None:
                lines.append(f"{host.name}: DRBD has no resource {NAME}, because the host has restarted")
            elif not connected:
                lines += [] if state.connection == ALONE else [f"{host.name}: DRBD is {state}, wanted {ALONE}"]
            elif state.connection == ALONE and self._is_split(host):
                raise ProvisionError(self._split_brain_message(host))
            elif state.connection != CONNECTED or {state.disk, state.peer_disk} != {UP_TO_DATE}:
                left = f", {size(state.out_of_sync)} to copy" if state.out_of_sync else ""
                lines.append(f"{host.name}: DRBD is {state}{left}")
        return lines

    def _is_split(self, host: Host) -> bool:
        state = self.state(host, changes=True)
        return state is not None and state.split_brain

    def _split_brain_message(self, host: Host) -> str:
        return (
            f"split brain of DRBD, seen on {host.name}: both hosts have written since they lost their connection, and "
            f"neither disk has everything. We changed nothing. Decide whose writes to discard. On that host unmount "
            f"{DEVICE} and run: {self._command(host, 'secondary')}; "
            f"{self._command(host, 'connect --discard-my-data')}; then on the other host: "
            f"{self._command(host, 'connect')}"
        )

    def _command(self, host: Host, words: str) -> str:
        return f"drbdadm -c {self._configuration[host.name]} {words} {NAME}"

    def backlog(self) -> list[str]:
        """What the hosts still have to send, write or answer, one line each.

        This is empty if a host has ended, or has restarted without the resource, because waiting would not help. The
        readings of a round show that the resource no longer exists.
        """
        states = self._on_all(self._state_or_none)
        known = [state for state in states if state]
        if len(known) < len(states):
            return []
        return [
            f"{host.name}: DRBD has {quantity(state.pending, 'request')} pending and {size(state.out_of_sync)} to copy"
            for host, state in zip(self.hosts, known, strict=True)
            if state.pending or state.out_of_sync
        ]

    def _state_or_none(self, host: Host) -> ResourceState | None:
        try:
            return self.state(host)
        except ProvisionError:
            if host.why_lost():
                return None
            raise

    def connect(self) -> None:
        """Connect each host that has given up its connection. Raises ProvisionError."""
        states = self.states()
        for host, state in zip(self.hosts, states, strict=True):
            if state and state.connection == ALONE:
                self.run(host, "connect")

    def wait_for_resync(self) -> None:
        """Connect the hosts, and wait until their disks are equal. Raises ProvisionError, NotReady."""
        if not self.problems(connected=True):
            return
        self.connect()
        wait.until(
            lambda: self.problems(connected=True), f"the resync of {self._names}", seconds=RESYNC_SECONDS, poll=0.05
        )

    def disconnect(self, serving: Host) -> None:
        """Disconnect the hosts, and mark the standby's data as out of date. Raises ProvisionError."""
        if not self.problems(connected=False):
            return
        self.run(serving, "disconnect")
        for host in self.hosts:
            if host is not serving:
                self.run(host, "disconnect")
                self.run(host, "outdate")

    def use_protocol(self, protocol: str) -> None:
        """Set the protocol of connected hosts, A, B or C: how far writes wait for the standby."""
        if not self._mismatches("protocol", protocol):
            return

        def use(host: Host) -> None:
            self._configure(host, protocol)
            self.run(host, "net-options", f"--protocol={protocol}")

        self._on_all(use)
        wait.until(lambda: self._mismatches("protocol", protocol), f"DRBD of {self._names}", seconds=CONNECT_SECONDS)

    def promote(self, host: Host) -> None:
        """Let a host write. Raises ProvisionError if its data is out of date."""
        try:
            self.run(host, "primary")
        except CommandFailed as error:
            state = self.state(host)
            raise ProvisionError(
                f"DRBD does not let {host.name} write ({state or 'it has no resource'}): "
                f"{' '.join(error.stderr.split()) or error.ended}"
                + ("; its data is out of date, so connect it to the other host first" if _is_outdated(state) else "")
            ) from error

    def leave_peer(self, host: Host) -> None:
        """Disconnect a host from a fenced peer, so that it does not wait for it. Raises ProvisionError."""
        self.run(host, "disconnect", "--force")

    def readings(self) -> Mapping[str, str]:
        """The state on each host and the number of its changes, by name; a round must not change them."""
        return {name: text for readings in self._on_all(self._reading) for name, text in readings.items()}

    def _reading(self, host: Host) -> Mapping[str, str]:
        try:
            state = self.state(host, changes=True)
        except ProvisionError as error:
            return {f"DRBD on {host.name}": f"unknown: {str(error).splitlines()[0]}"}
        changes = state.changes if state else []
        return {
            f"DRBD on {host.name}": f"{state}, protocol {state.protocol}" if state else "gone",
            f"changes on {host.name}": f"{len(changes)}, the last: {changes[-1] if changes else 'none'}",
        }


def _is_outdated(state: ResourceState | None) -> bool:
    return state is not None and state.disk not in (UP_TO_DATE, "Diskless")


def block_device(host: Host) -> BlockDevice:
    """The host as a BlockDevice. Raises Unsupported for a host without a separate disk."""
    if not isinstance(host, BlockDevice):
        raise Unsupported(f"{host.name} has no separate disk, which DRBD needs")
    return host
