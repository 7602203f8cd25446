"""The checks of this machine, or of other machines, and the claims that cannot be measured there.

Each check returns a Finding; ``findings`` runs all checks of this machine; ``text`` formats them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster.clusters.servers import connection
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import gibibytes, quantity
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.guests import guest, network, user_namespace
from pytest_dbcluster.hosts.network import kernel_router, local_paths
from pytest_dbcluster.hosts.provisioners.container import engine, images
from pytest_dbcluster.hosts.provisioners.ssh.checkup import Checkup
from pytest_dbcluster.releases import apt, fetched
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM
from pytest_dbcluster.rounds import busy_machine
from pytest_dbcluster.system import block_devices, cgroups, ports, probes
from pytest_dbcluster.system.cgroups import POWERS, Limits
from pytest_dbcluster.testbed.why import cpu_stacks

NO_CONTAINERS = "--db-provisioner container cannot run here"
NO_GUESTS = "--db-provisioner vm cannot run here"
NO_KERNEL = "no kernel in the cache"
FETCHES_KERNEL = f" (the first run in guests fetches it, or `dbcluster fetch {GUEST_SYSTEM}`)"
GUEST_MEMORY = 512 * 2**20  # of the smallest guest in which a server runs with its defaults
CLOCK_SECONDS = 5.0  # allowed difference of the clock of another machine
CONNECTIONS = 4096  # open files; a proxy needs two for each connection
GIB = 2**30
PERF_SECONDS = 20.0  # for one trial of perf
LOOK_SECONDS = 1.0  # minimum time to observe other programs


@dataclasses.dataclass(frozen=True)
class Finding:
    """One property of this machine."""

    name: str
    """Name of the property."""

    value: str
    """Its value, as text."""

    rules_out: str = ""
    """Claims that it rules out; empty for none."""


def findings(directory: Path | None = None) -> list[Finding]:
    """All findings about this machine. ``directory`` is for the data of servers; None for the usual one.

    Raises ConfigError for a directory that cannot be created.
    """
    path = directory or runs.directory()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        other = "set DBCLUSTER_DATA_DIR to another directory"
        raise ConfigError(f"cannot create the data directory {path}: {error.strerror}; {other}") from None
    began = probes.CpuReading.now()
    checks: Sequence[Callable[[], Finding]] = (
        cores,
        memory,
        lambda: Finding("kernel", f"{platform.system()} {platform.release()} {platform.machine()}"),
        lambda: data_directory(path),
        lambda: fsync(probes.fsync_seconds(path), path),
        containers,
        netem,
        guests,
        perf,
        lambda: limits(cgroups.find(path)),
        port_range,
        listeners,
        lambda: open_files(*resource.getrlimit(resource.RLIMIT_NOFILE)),
        lambda: Finding("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        lambda: Finding("control driver", connection.driver()),
        packages,
        lambda: load(began),  # the last one, so that it observes the machine during all others
    )
    return [check() for check in checks]


def text(findings: Sequence[Finding]) -> str:
    """One line for each finding; a second one with ``!`` for what it rules out."""
    width = max((len(finding.name) for finding in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{finding.name.ljust(width)}  {finding.value}")
        if finding.rules_out:
            lines.append(f"{' ' * width}  ! {finding.rules_out}")
    return "\n".join(lines)


def cores(count: int | None = None) -> Finding:
    """The CPUs that this process may use; all nodes of a cluster share them.

    A single server may use all CPUs, each of three nodes only a third. So a comparison of one server with three nodes
    says nothing about scaling. ``count`` replaces the number of CPUs.
    """
    number, usable = count or len(os.sched_getaffinity(0)), probes.usable_cores(count)
    value = f"{number}" if usable >= number else f"{number}, limited to {usable:g} by the cgroup"
    return Finding("cores", value, probes.shared_cores(usable))


def load(began: probes.CpuReading) -> Finding:
    """The load, and the cores that other programs took since a reading; it observes LOOK_SECONDS at least."""
    time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began.at)))
    others, usable = probes.CpuReading.now().others_since(began), probes.usable_cores()
    busy = busy_machine.busy(others, usable)
    return Finding(
        "load",
        f"{os.getloadavg()[0]:.1f}; other programs took {others:.1f} of {quantity(usable, 'core')}",
        f"busy: rounds vary more, so claims need more pairs or stay inconclusive; {busy_machine.WHAT_HELPS}"
        if busy
        else "",
    )


def memory(total: int | None = None) -> Finding:
    """The memory of this machine, or the limit of this process's cgroup. ``total`` replaces the machine's, in bytes."""
    import psutil

    machine = total or psutil.virtual_memory().total
    limit = cgroups.read(probes.CGROUP / "memory.max").strip()
    usable = min(machine, int(limit)) if limit.isdigit() else machine
    limited = f", limited to {gibibytes(usable)} by the cgroup" if usable < machine else ""
    tight = usable < 4 * GIB
    return Finding(
        "memory",
        f"{gibibytes(machine)}{limited}",
        "two clusters of three nodes do not fit side by side, so variants of static options cannot run in pairs"
        if tight
        else "",
    )


def data_directory(directory: Path) -> Finding:
    """The file system for the data of servers, and its free space."""
    kind, free = block_devices.file_system(directory), shutil.disk_usage(directory).free
    rules_out = ""
    if kind in probes.MEMORY_FILE_SYSTEMS:
        rules_out = (
            f"on {kind} InnoDB makes no fsync: claims about flushing are inconclusive; "
            "set DBCLUSTER_DATA_DIR to a directory on a real disk"
        )
    elif free < 2 * GIB:
        rules_out = (
            "two clusters of three nodes need at least 2 GiB for their data; "
            "set DBCLUSTER_DATA_DIR to another directory"
        )
    return Finding("data directory", f"{directory}: {kind}, {gibibytes(free)} free", rules_out)


def fsync(seconds: float, directory: Path) -> Finding:
    """The time of one fsync in ``directory``, in seconds, shown in microseconds."""
    blind = seconds < probes.BLIND_FSYNC
    return Finding(
        "fsync",
        f"{seconds * 1e6:.0f} us (4 KiB appended, median) in {directory}",
        "no disk is that fast: claims about flushing are inconclusive" if blind else "",
    )


def containers() -> Finding:
    """The container engine and its images from ``dbcluster image build``; or why no engine answers."""
    if not engine.has_socket():
        return Finding("containers", f"no engine listens on {', '.join(engine.socket_paths())}", NO_CONTAINERS)
    try:
        with contextlib.closing(engine.connect()) as connected:
            tags = [image.tag for image in images.list_images(connected) if image.tag]
            shown = ", ".join(tags) or "none of ours"
            value = f"{connected.name} {connected.version} on {connected.socket}, images: {shown}"
    except (ProvisionError, Unsupported) as error:
        return Finding("containers", str(error), NO_CONTAINERS)
    build = "`dbcluster image build NAME:VERSION`, or " if can_fetch() else ""
    without = f"releases without an image need {build}--db-image"
    return Finding("containers", value, "" if tags else without)


def netem() -> Finding:
    """Whether the kernel can delay packets between nodes; this tries it in a network namespace."""
    if reason := local_paths.why_not():
        return Finding("netem", "unknown: this machine permits no network namespace", f"no RTT claims: {reason}")
    reason = kernel_router.why_not()
    return Finding("netem", f"no ({reason}); a guest delays packets between nodes" if reason else "yes")


def perf() -> Finding:
    """Whether perf may sample the CPU of servers."""
    root, reason = os.geteuid() == 0, cpu_stacks.NOT_INSTALLED
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        command = [cpu_stacks.PERF, *cpu_stacks.trial(root=root)]
        tried = subprocess.run(command, capture_output=True, text=True, timeout=PERF_SECONDS, check=False)
        reason = cpu_stacks.refusal(tried.returncode, tried.stderr) if tried.returncode else ""
        reason = reason if root else cpu_stacks.setting_to_change(Path(cpu_stacks.PERMISSION).read_text()) or reason
    return Finding(
        "perf", "no" if reason else "yes", f"--db-why has no CPU time by function: {reason}" if reason else ""
    )


def guests() -> Finding:
    """The kernel of guests, the way they start and the place of their memory; or why guests are impossible here."""
    system = fetched.lookup(GUEST_SYSTEM, "")
    kernel = f"user-mode Linux {system.version}" if system else NO_KERNEL
    if not system:
        kernel += FETCHES_KERNEL if can_fetch() else f"; `dbcluster fetch {GUEST_SYSTEM}` needs Debian or Ubuntu"
    if reason := network.why_not() or guest.no_memory(GUEST_MEMORY):
        return Finding("guests", kernel, f"{NO_GUESTS}: {reason}")
    mode = "by root" if user_namespace.root() else "without root, in a user namespace"
    free = gibibytes(guest.free_memory())
    return Finding("guests", f"{kernel}, started {mode}, memory in {guest.memory_directory()} ({free} free)")


def limits(available: Limits) -> Finding:
    """The limits that hosts can have here (cores, memory, iops); tests with other limits are skipped."""
    offered = [power for power in POWERS if power in available.offers]
    versions = sorted({str(available.trees[power].version) for power in offered})
    value = f"{', '.join(offered)} (control groups, version {' and '.join(versions)})" if offered else "none"
    rules_out = "; ".join(f"no {power}=: {why}" for power, why in available.missing.items())
    if "iops" in available.missing:
        rules_out += "; a slower disk (iops=3000, --db-storage gp3) cannot be simulated here"
    return Finding("host limits", value, rules_out)


def port_range(kernel: tuple[int, int] | None = None) -> Finding:
    """The kernel's range of ephemeral ports, and the number of other ports for servers.

    ``kernel`` replaces the range, as (first, last).
    """
    low, high = kernel or ports.ephemeral_range()
    left = sum(1 for port in range(ports.LOWEST, ports.HIGHEST) if not low <= port <= high)
    return Finding(
        "ip_local_port_range",
        f"{low} to {high}, {quantity(left, 'port')} left for servers",
        "a connection may take the port of a server; narrow net.ipv4.ip_local_port_range" if left < 200 else "",
    )


def listeners() -> Finding:
    """The addresses on which servers and proxies of this machine listen; ``tests/contracts`` checks each port."""
    return Finding(
        "listening",
        "servers and proxies listen only on 127.0.0.1; MySQL's Group Replication (XCom) listens on every address, and "
        "refuses connections from other addresses than 127.0.0.1",
    )


def open_files(soft: int, hard: int) -> Finding:
    """The soft and hard limit of open files; programs raise the soft limit to the hard one."""
    shown = " to ".join("unlimited" if limit == resource.RLIM_INFINITY else str(limit) for limit in (soft, hard))
    few = hard != resource.RLIM_INFINITY and hard < CONNECTIONS
    return Finding("open files", shown, f"a proxy accepts fewer than {CONNECTIONS // 2} connections" if few else "")


def can_fetch() -> bool:
    """Whether this machine can fetch packages."""
    return not apt.missing_program()


def packages() -> Finding:
    """Whether this machine can fetch releases as packages, which needs the programs of apt and dpkg."""
    if can_fetch():
        return Finding("packages", "can be fetched with apt")
    rules_out = f"no releases from packages; {apt.without_packages('NAME:VERSION')}"
    return Finding("packages", f"this system has no {apt.missing_program()}", rules_out)


def machine_findings(found: Checkup) -> list[Finding]:
    """The findings about another machine, the first with its name."""
    if found.problem:
        return [Finding("machine", f"{found.target}: unusable", found.problem)]
    if found.busy or found.facts is None:
        return [Finding("machine", f"{found.target}: another run uses it", "no checks there, to not disturb the run")]
    facts = found.facts
    return [
        Finding("machine", f"{found.target}: {facts.name}, Linux {facts.kernel} {facts.architecture}"),
        Finding("host key", f"known, {found.key or 'not shown again'}"),
        Finding("cores", f"{facts.cpus} x {facts.cpu or facts.architecture}"),
        Finding("memory", f"{gibibytes(facts.memory)}, {gibibytes(found.available)} available"),
        machine_disk(found, facts.root, facts.disk),
        fsync(found.flush, Path(facts.root)),
        isolation(found),
        tunnels(found),
        Finding("zstd", "yes" if facts.zstd else "no: we send programs unpacked, which takes longer over a slow line"),
        clock(facts.clock_ahead),
    ]


def machine_disk(found: Checkup, directory: str, kind: str) -> Finding:
    """The file system for the data of servers on another machine, and its free space."""
    rules_out = ""
    if kind.split()[0] in probes.MEMORY_FILE_SYSTEMS:
        rules_out = (
            f"on {kind.split()[0]} InnoDB makes no fsync: claims about flushing are inconclusive; "
            "choose a directory on a real disk with --db-host-directory DIR"
        )
    elif found.free < 2 * GIB:
        rules_out = "programs and data need at least 2 GiB; choose another directory with --db-host-directory DIR"
    return Finding("data directory", f"{directory}: {kind}, {gibibytes(found.free)} free", rules_out)


def isolation(found: Checkup) -> Finding:
    """How we find all programs of a host, to kill all of them at once."""
    namespaces = "PID namespaces"
    marks = "no PID namespaces (they need unshare of util-linux, and a kernel that permits it); we use a mark"
    return Finding("programs", namespaces if found.namespaces else marks)


def tunnels(found: Checkup) -> Finding:
    """Whether ssh forwards ports in both directions, and how many sessions a connection may have."""
    advice = "the sshd of the machine has to permit AllowTcpForwarding"
    if found.forwards:
        return Finding("forwarding", f"no: {found.forwards}", f"servers are unreachable; {advice}")
    one = "; one session for each connection (MaxSessions 1): each transfer connects again" if found.one_session else ""
    if found.offers:
        return Finding("forwarding", f"to the machine{one}", f"no proxy with a health check: {found.offers}; {advice}")
    return Finding("forwarding", f"both ways{one}")


def clock(ahead: float) -> Finding:
    """The difference between the clock of a machine and ours, in seconds, with the time of a connection."""
    value = f"{abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} ours"
    off = abs(ahead) > CLOCK_SECONDS
    return Finding("clock", value, "times in its logs differ from ours; rounds use one clock" if off else "")
