"""What this machine offers to a measurement, and what that rules out. Findings first, text second."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import resource
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster.clusters.servers import connection
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import gibibytes
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.container import engine, images
from pytest_dbcluster.system import block_devices, cgroups, ports, probes
from pytest_dbcluster.system.cgroups import POWERS, Limits

NO_CONTAINERS = "--db-provisioner container cannot run here"
NETEM = "ip link set lo up && tc qdisc add dev lo root netem delay 1ms"
CONNECTIONS = 4096  # open files: two of a proxy for each of its connections
GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing about this machine; ``rules_out`` says what cannot be claimed here because of it."""

    name: str
    value: str
    rules_out: str = ""


def findings(directory: Path | None = None) -> list[Finding]:
    """Everything that is known about this machine; ``directory`` is where the servers' data will lie.

    Raises ConfigError for a directory that cannot be made or written.
    """
    place = directory or runs.directory()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        other = "DBCLUSTER_DATA_DIR=DIRECTORY takes another one"
        raise ConfigError(f"cannot make the data directory {place}: {error.strerror}; {other}") from None
    looks: Sequence[Callable[[], Finding]] = (
        cores,
        memory,
        lambda: Finding("kernel", f"{platform.system()} {platform.release()} {platform.machine()}"),
        lambda: data_directory(place),
        lambda: fsync(probes.fsync_seconds(place), place),
        containers,
        lambda: netem(root=os.geteuid() == 0),
        user_mode_linux,
        lambda: limits(cgroups.find(place)),
        port_range,
        lambda: open_files(*resource.getrlimit(resource.RLIMIT_NOFILE)),
        lambda: Finding("Python", f"{platform.python_version()} ({platform.python_implementation()})"),
        lambda: Finding("control driver", connection.driver()),
        apt,
    )
    return [look() for look in looks]


def text(found: Sequence[Finding]) -> str:
    """The findings for people: one line each, and under it what it rules out."""
    width = max((len(each.name) for each in found), default=0)
    lines = []
    for each in found:
        lines.append(f"{each.name.ljust(width)}  {each.value}")
        if each.rules_out:
            lines.append(f"{' ' * width}  ! {each.rules_out}")
    return "\n".join(lines)


def cores(count: int | None = None) -> Finding:
    """The CPUs that we may use, and that servers on one machine share them, however many there are.

    One server alone may use all of them, one of three nodes beside each other a third: that is no scaling of nodes.
    """
    number, usable = count or len(os.sched_getaffinity(0)), probes.usable_cores(count)
    value = f"{number}" if usable >= number else f"{number}, limited to {usable:g} by the cgroup"
    return Finding("cores", value, probes.shared_cores(usable))


def memory(total: int | None = None) -> Finding:
    """The memory of this machine; a limit of our cgroup counts."""
    import psutil

    machine = total or psutil.virtual_memory().total
    said = cgroups.read(probes.CGROUP / "memory.max").strip()
    usable = min(machine, int(said)) if said.isdigit() else machine
    limited = f", limited to {gibibytes(usable)} by the cgroup" if usable < machine else ""
    tight = usable < 4 * GIB
    return Finding(
        "memory",
        f"{gibibytes(machine)}{limited}",
        "two clusters of three nodes do not fit side by side: variants of static options are not paired"
        if tight
        else "",
    )


def data_directory(directory: Path) -> Finding:
    """The file system under the servers' data, and what is free there."""
    kind, free = block_devices.file_system(directory), shutil.disk_usage(directory).free
    rules_out = ""
    if kind in probes.MEMORY_FILE_SYSTEMS:
        rules_out = (
            f"on {kind} InnoDB makes no fsync at all: claims about flushing are inconclusive; "
            "DBCLUSTER_DATA_DIR=DIRECTORY takes a real disk"
        )
    elif free < 2 * GIB:
        rules_out = "two clusters of three nodes need 2 GiB and more for their data; DBCLUSTER_DATA_DIR=DIRECTORY"
    return Finding("data directory", f"{directory}: {kind}, {gibibytes(free)} free", rules_out)


def fsync(seconds: float, directory: Path) -> Finding:
    """What a flush of the log costs."""
    blind = seconds < probes.BLIND_FSYNC
    return Finding(
        "fsync",
        f"{seconds * 1e6:.0f} us (4 KiB appended, median) in {directory}",
        "nothing is written that fast: claims about flushing are inconclusive" if blind else "",
    )


def containers() -> Finding:
    """Which container engine answers, and its images of ours; or why none does."""
    if not engine.has_socket():
        return Finding("containers", f"nobody listens on {', '.join(engine.socket_paths())}", NO_CONTAINERS)
    try:
        with contextlib.closing(engine.connect()) as reached:
            made = [image.tag for image in images.found(reached) if image.tag]
            value = f"{reached.name} {reached.version} on {reached.socket}, images: {', '.join(made) or 'none of ours'}"
    except (ProvisionError, Unsupported) as error:
        return Finding("containers", str(error), NO_CONTAINERS)
    without = "releases without an image need `dbcluster image build NAME:VERSION`, or --db-image"
    return Finding("containers", value, "" if made else without)


def netem(*, root: bool) -> Finding:
    """Whether the kernel can delay packets: tried in a network namespace of its own, which only root can make."""
    if not root:
        return Finding("netem", "unknown: only root can try", "RTT claims may need another host")
    missing = [program for program in ("unshare", "ip", "tc") if not shutil.which(program)]
    if missing:
        return Finding("netem", f"unknown: no {', '.join(missing)} here", "RTT claims may need another host")
    command = ["unshare", "--net", "sh", "-c", NETEM]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return Finding("netem", "unknown: no answer in 10 s", "RTT claims may need another host")
    if done.returncode == 0:
        return Finding("netem", "yes")
    words = " ".join(done.stderr.split())[:120]
    return Finding("netem", f"no ({words})", "no netem: RTT claims need another host")


def user_mode_linux() -> Finding:
    """Whether guests of user-mode-linux can be booted, which have DRBD and netem of their own."""
    found = shutil.which("linux") or shutil.which("linux.uml")
    if found:
        return Finding("user-mode-linux", found)
    return Finding("user-mode-linux", "not installed", "no DRBD without it or another host (package user-mode-linux)")


def limits(found: Limits) -> Finding:
    """What of this machine a host may be limited to, tried; a spec that needs more of it is skipped here."""
    offered = [power for power in POWERS if power in found.offers]
    versions = sorted({str(found.trees[power].version) for power in offered})
    value = f"{', '.join(offered)} (control groups, version {' and '.join(versions)})" if offered else "none"
    rules_out = "; ".join(f"no {power}=: {why}" for power, why in found.missing.items())
    if "iops" in found.missing:
        rules_out += "; a slower disk (iops=3000, --db-storage gp3) cannot be imitated here"
    return Finding("host limits", value, rules_out)


def port_range(kernel: tuple[int, int] | None = None) -> Finding:
    """The ports that the kernel hands out by itself, and how many that leaves for servers."""
    low, high = kernel or ports.ephemeral_range()
    left = sum(1 for port in range(ports.LOWEST, ports.HIGHEST) if not low <= port <= high)
    return Finding(
        "ip_local_port_range",
        f"{low} to {high}, {left} ports left for servers",
        "servers find no port of their own; narrow net.ipv4.ip_local_port_range" if left < 200 else "",
    )


def open_files(soft: int, hard: int) -> Finding:
    """The limit of open files; programs raise the soft one by themselves."""
    shown = " to ".join("unlimited" if n == resource.RLIM_INFINITY else str(n) for n in (soft, hard))
    few = hard != resource.RLIM_INFINITY and hard < CONNECTIONS
    return Finding("open files", shown, f"a proxy takes fewer than {CONNECTIONS // 2} connections" if few else "")


def apt() -> Finding:
    """Whether releases can be fetched here."""
    missing = [program for program in ("apt-get", "dpkg-deb") if not shutil.which(program)]
    if not missing:
        return Finding("apt", "yes")
    why = "releases cannot be fetched; --db-release NAME:VERSION=DIRECTORY takes an unpacked one"
    return Finding("apt", f"no {', '.join(missing)}", why)
