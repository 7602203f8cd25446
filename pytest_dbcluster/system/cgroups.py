"""Control groups: the kernel limits CPU, memory and writes of a host's programs.

A limited host has its own group, ``dbcluster-RUN-OWNER-BORN/CLUSTER-NODE``, in each tree that limits it.

Version 1 counts a write for the process that submits it. So it limits a server's own fsync and
O_DIRECT writes. It does not limit later writes by the kernel, nor the journal of the file system.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
import re
import secrets
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import psutil

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.spec import HostNeeds
from pytest_dbcluster.system import block_devices, owned_files, processes, shared_directory

PERIOD = 100_000  # of a CPU quota, in microseconds: the kernel's default
OOM = ("memory.events", "memory.oom_control")  # in version 2 and 1; both have a line "oom_kill N"
# Only kernels with swap have these files. There we must limit swap too, or programs could exceed their memory.
IF_THERE = ("memory.memsw.limit_in_bytes", "memory.swap.max")
RECORD = "groups"  # in a run's directory

PREFIX = "dbcluster"
# Version -> power -> its controller, and the file that a kernel needs to limit it.
CONTROLLERS = MappingProxyType(
    {
        1: {
            "cores": ("cpu", "cpu.cfs_quota_us"),
            "memory": ("memory", "memory.limit_in_bytes"),
            "iops": ("blkio", "blkio.throttle.write_iops_device"),
        },
        2: {"cores": ("cpu", "cpu.max"), "memory": ("memory", "memory.max"), "iops": ("io", "io.max")},
    }
)
POWERS = tuple(CONTROLLERS[2])
# By the controller's name, which is empty in version 2.
CPU_ACCOUNTS = MappingProxyType({"cpuacct": "cpuacct.usage", "": "cpu.stat"})
DELEGATED = "it takes root, or a delegated cgroup v2: systemd-run --user --scope -p Delegate=yes COMMAND"
REMOVE_SECONDS = 3.0
LOCK_SECONDS = 5.0  # to wait for another process to enable controllers, which takes milliseconds


@dataclasses.dataclass(frozen=True)
class Group:
    """The group of one host."""

    paths: tuple[Path, ...]
    """The directory of the group in each tree that limits it."""

    needs: HostNeeds
    """The limits of the host."""

    @property
    def joins(self) -> list[str]:
        """The files into which a process writes its id to join the group."""
        return [str(path / "cgroup.procs") for path in self.paths]

    def limit_reached(self) -> str:
        """A clause if the kernel killed a program because the group had used all its memory; otherwise empty."""
        lines = [line for path in self.paths for file in OOM for line in read(path / file).splitlines()]
        killed = sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        if not killed or self.needs.memory is None:
            return ""
        return f"the host's memory limit of {formatting.mebibytes(self.needs.memory)} was reached"

    def write_limit(self) -> int | None:
        """The write operations/s that the kernel allows on the disk; None without a limit."""
        words = next((text.split() for _, text in self._write_limits()), [])
        value = words[-1].removeprefix("wiops=") if words else ""
        return int(value) if value.isdigit() else None

    def limit_writes(self, iops: int) -> None:
        """Change the limit on write operations/s. Raises ProvisionError without a limit, or with the kernel's error."""
        found = self._write_limits()
        if not found:
            raise ProvisionError("the group of the host has no limit on writes that could change")
        for file, text in found:
            device, last = text.split()[0], text.split()[-1]
            try:
                write(file, f"{device} {'wiops=' if last.startswith('wiops=') else ''}{iops}")
            except OSError as error:
                raise ProvisionError(f"cannot limit writes: {error.filename}: {error.strerror}") from None

    def _write_limits(self) -> list[tuple[Path, str]]:
        """The files with a limit on writes, and its line: ``254:0 200``, or ``254:0 rbps=max ... wiops=200``."""
        files = [
            path / file for path in self.paths for _, file in (versions["iops"] for versions in CONTROLLERS.values())
        ]
        return [(file, lines[0]) for file in files if (lines := read(file).splitlines())]

    def remove(self) -> None:
        """Kill the processes of the group and remove it. Never raises."""
        for path in self.paths:
            remove(path)


@dataclasses.dataclass(frozen=True)
class Limits:
    """The possible limits for programs with data in one directory."""

    trees: Mapping[str, Tree]
    """Power -> the tree that can limit it."""

    missing: Mapping[str, str]
    """Power -> why it cannot be limited."""

    device: str = ""
    """MAJOR:MINOR of the disk, empty if its writes cannot be limited."""

    @property
    def offers(self) -> frozenset[str]:
        """The powers that can be limited, among ``cores``, ``memory`` and ``iops``."""
        return frozenset(self.trees)

    def group(self, run: str, name: str, needs: HostNeeds) -> Group:
        """Make a group with these limits for a host of this process's run.

        Raises Unsupported for limits that are not possible here, and ProvisionError with the error of the kernel.
        """
        asked = [power for power in POWERS if getattr(needs, power) is not None]
        if lacking := [f"no {power}: {self.missing[power]}" for power in asked if power in self.missing]:
            raise Unsupported(f"cannot limit {name} to {needs} here; {'; '.join(lacking)}")
        trees = list(dict.fromkeys(self.trees[power] for power in asked))
        made = Group(tuple(tree.path / run_name(run) / name for tree in trees), needs)
        try:
            for tree, path in zip(trees, made.paths, strict=True):
                path.parent.mkdir(exist_ok=True)
                if tree.version == 2:
                    with enable_lock(tree.path):
                        enable(tree.path, tree.powers)
                        enable(path.parent, tree.powers)  # from now on nobody can disable them
                path.mkdir()
                for file, text in settings(tree, needs, self.device):
                    if file not in IF_THERE or (path / file).exists():
                        write(path / file, text)
        except OSError as error:
            made.remove()
            where = f"{error.filename}: {error.strerror}"
            raise ProvisionError(f"cannot limit {name} to {needs} with a control group: {where}") from None
        return made


def settings(tree: Tree, needs: HostNeeds, device: str) -> list[tuple[str, str]]:
    """The files of a group of this tree and the text to write into each, in this order."""
    first = tree.version == 1
    found: list[tuple[str, str]] = []
    if needs.cores is not None and "cores" in tree.powers:
        quota = round(needs.cores * PERIOD)
        one = [("cpu.cfs_period_us", f"{PERIOD}"), ("cpu.cfs_quota_us", f"{quota}")]
        found += one if first else [("cpu.max", f"{quota} {PERIOD}")]
    if needs.memory is not None and "memory" in tree.powers:
        found.append(("memory.limit_in_bytes" if first else "memory.max", f"{needs.memory}"))
        found.append((IF_THERE[0], f"{needs.memory}") if first else (IF_THERE[1], "0"))
    if needs.iops is not None and "iops" in tree.powers:
        file = "blkio.throttle.write_iops_device" if first else "io.max"
        found.append((file, f"{device} {needs.iops}" if first else f"{device} wiops={needs.iops}"))
    return found


@functools.cache
def find(directory: Path) -> Limits:
    """The possible limits for data in this directory, which need not exist yet. Tested once per process."""
    tested = dict(zip(POWERS, trees(), strict=True))
    usable = {power: tree for power, tree in tested.items() if isinstance(tree, Tree)}
    missing = {power: reason for power, reason in tested.items() if isinstance(reason, str)}
    device = ""
    if "iops" in usable:
        try:
            device = block_devices.whole_disk(directory)
        except Unsupported as error:
            missing["iops"] = str(error)
            del usable["iops"]
    return Limits(usable, missing, device)


def record(directory: Path, group: Group) -> list[Path]:
    """Record the groups of a run in its directory. Returns the newly recorded ones."""
    known = recorded_groups(directory)
    fresh = [path for path in dict.fromkeys(host.parent for host in group.paths) if path not in known]
    if fresh:
        owned_files.write(directory, RECORD, "".join(f"{path}\n" for path in (*known, *fresh)))
    return fresh


def recorded_groups(directory: Path) -> list[Path]:
    """The recorded groups of the run in this directory. Only groups that have its name and its user are the run's."""
    try:
        content, uid = owned_files.read(directory, RECORD)
        paths = [Path(line) for line in content.decode().splitlines()]
    except (OSError, ValueError):
        return []
    # Another user may write any path: we accept only paths in the trees of groups.
    tops = [Path("/")] if uid == os.getuid() else [Path(point) for _, point in mounted_trees().values()]
    name = re.compile(rf"{PREFIX}-{re.escape(directory.name)}-{processes.MARK.pattern}")
    return [
        path
        for path in paths
        if name.fullmatch(path.name)
        and ".." not in path.parts
        and any(path.is_relative_to(top) for top in tops)
        and _owner(path) in (uid, None)
    ]


def _owner(path: Path) -> int | None:
    """The user who owns a group; None if it does not exist."""
    try:
        return path.lstat().st_uid
    except (OSError, ValueError):
        return None


def reap() -> None:
    """Remove the empty groups of this user's runs whose owner has ended. Never raises, and kills nothing."""
    for path in of_runs():
        if _owner(path) == os.getuid() and processes.is_orphaned(path) and not members(path):
            with contextlib.suppress(OSError):  # a process has joined since: the kernel keeps its group
                for inside in _inside(path):
                    inside.rmdir()
                path.rmdir()


@dataclasses.dataclass(frozen=True)
class Tree:
    """A directory in which we can make groups."""

    path: Path
    """The directory."""

    version: int
    """The version of control groups, 1 or 2."""

    powers: frozenset[str]
    """What its groups can limit, among ``cores``, ``memory`` and ``iops``."""


def trees(own: dict[str, str] | None = None, points: dict[str, tuple[str, str]] | None = None) -> list[Tree | str]:
    """For each of ``POWERS``, in their order: the tree that limits it, or why there is none.

    own: controller -> path of our group. points: controller -> root and mount point of its tree.
    """
    own, points = own_groups() if own is None else own, mounted_trees() if points is None else points
    found: dict[str, Tree | str] = {}
    for power, (controller, file) in CONTROLLERS[1].items():
        if controller in points:
            path = _below(*points[controller], own.get(controller, "/"))
            found[power] = _why_not(path, [file])[file] or Tree(path, 1, frozenset({power}))
    rest = [power for power in POWERS if power not in found]
    if rest and "" in points:
        found |= _second(_below(*points[""], own.get("", "/")), Path(points[""][1]), rest)
    return [found.get(power, f"no tree of control groups here has the controller {power}") for power in POWERS]


def _second(own: Path, top: Path, wanted: Sequence[str]) -> dict[str, Tree | str]:
    """Find, among our group and its parents, the group whose new children can limit most of the wanted powers."""
    best: dict[str, Tree | str] = {}
    most = 0
    files = {power: CONTROLLERS[2][power][1] for power in wanted}
    for path in itertools.takewhile(lambda group: group.is_relative_to(top), (own, *own.parents)):
        with enable_lock(path):
            enabled = enable(path, wanted)
            why = _why_not(path, list(files.values()))
            if enabled:  # only a test so far; the kernel refuses if a run's group uses them meanwhile
                with contextlib.suppress(OSError):
                    write(path / "cgroup.subtree_control", " ".join(f"-{controller}" for controller in enabled))
        powers = frozenset(power for power, file in files.items() if not why[file])
        if not best or len(powers) > most:
            most, tree = len(powers), Tree(path, 2, powers)
            best = {power: why[file] or tree for power, file in files.items()}
    return best


@contextlib.contextmanager
def enable_lock(path: Path) -> Iterator[None]:
    """Hold a lock during the block, so that one process at a time changes the controllers of a group.

    After LOCK_SECONDS it goes on without the lock: any user may lock a directory, and conflicts are rare.
    """
    limit = time.monotonic() + LOCK_SECONDS
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):  # no such group: making a group in it will raise the error
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, descriptor)
            while not shared_directory.try_lock(descriptor) and time.monotonic() < limit:
                time.sleep(0.005)
        yield


def enable(path: Path, powers: Iterable[str]) -> list[str]:
    """Enable controllers for the children of a version 2 group. Returns the newly enabled ones."""
    had, done = read(path / "cgroup.subtree_control").split(), []
    for controller in sorted(CONTROLLERS[2][power][0] for power in powers):
        with contextlib.suppress(OSError):  # the caller checks the children to see whether it worked
            if controller not in had:
                write(path / "cgroup.subtree_control", f"+{controller}")
                done.append(controller)
    return done


def _why_not(parent: Path, files: Sequence[str]) -> dict[str, str]:
    """For each file of a limit: why groups below ``parent`` lack it, found with a test group; empty if they have it."""
    group = parent / run_name(f"probe{secrets.token_hex(4)}")
    try:
        group.mkdir()
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            try:
                write(group / "cgroup.procs", str(process.pid))
            finally:
                process.kill()  # in a frozen group it would not see the end of its input
    except OSError as error:
        return dict.fromkeys(files, f"{error.filename}: {error.strerror}; {DELEGATED}")
    else:
        return {file: "" if os.access(group / file, os.W_OK) else f"{group.parent} has no {file}" for file in files}
    finally:
        remove(group)


def own_groups(text: str | None = None) -> dict[str, str]:
    """Our groups: controller -> path. Version 2 has the empty name as its controller (cgroups(7))."""
    content = read(Path("/proc/self/cgroup")) if text is None else text
    lines = [line.split(":", 2) for line in content.splitlines()]
    return {controller: path for _, controllers, path in lines for controller in controllers.split(",")}


def mounted_trees(text: str | None = None) -> dict[str, tuple[str, str]]:
    """Mounted trees: controller -> root and mount point. Version 2 has the empty name as its controller."""
    found: dict[str, tuple[str, str]] = {}
    for mount in block_devices.mounts(text):
        if mount.kind == "cgroup2":
            found.setdefault("", (mount.root, mount.point))
        elif mount.kind == "cgroup":
            found |= dict.fromkeys(mount.options.split(","), (mount.root, mount.point))
    return found


def _below(root: str, point: str, path: str) -> Path:
    """The directory of a group; the mount point if the group is outside of the visible part of the tree."""
    inside = Path(path).relative_to(root) if Path(path).is_relative_to(root) else Path()
    return Path(point) if ".." in inside.parts else Path(point) / inside


# Cached, because reading the list of mounts is slow on machines with many containers.
_points = functools.cache(mounted_trees)


def cpu_seconds(pid: int) -> float | None:
    """The CPU seconds of all processes in the group of a process so far; None if we cannot read it."""
    groups, points = own_groups(read(Path(f"/proc/{pid}/cgroup"))), _points()
    for controller, file in CPU_ACCOUNTS.items():
        if controller in groups and controller in points:
            path = _below(*points[controller], groups[controller])
            if str(pid) in read(path / "cgroup.procs").split() and (text := read(path / file)):
                return parse_cpu_seconds(text)
    return None


def of_process(pid: int, needs: HostNeeds) -> Group:
    """The group of a process in the tree that limits writes; it is not ours."""
    groups, points = own_groups(read(Path(f"/proc/{pid}/cgroup"))), _points()
    found = [name for name in (CONTROLLERS[1]["iops"][0], "") if name in groups and name in points]
    return Group(tuple(_below(*points[name], groups[name]) for name in found), needs)


def parse_cpu_seconds(text: str) -> float:
    """CPU seconds from a file: version 1 has only nanoseconds, version 2 begins with "usage_usec" and microseconds."""
    words = text.split()
    return int(words[0]) / 1e9 if words[0].isdigit() else int(words[1]) / 1e6


def run_name(run: str) -> str:
    """The name of a run's group: id of the run, then the mark of this process."""
    return f"{PREFIX}-{run}-{processes.mark()}"


def of_runs() -> list[Path]:
    """The groups of all runs, in our own group and in its parents."""
    own, points, found = own_groups(), mounted_trees(), []
    for controller in {"", *(name for name, _ in CONTROLLERS[1].values())} & points.keys():
        root, point = points[controller]
        base = _below(root, point, own.get(controller, "/"))
        paths = itertools.takewhile(lambda one, top=point: one.is_relative_to(top), (base, *base.parents))  # type: ignore[misc]
        found += [group for path in paths for group in path.glob(f"{PREFIX}-*-*-*")]
    return found


def members(path: Path) -> list[int]:
    """The ids of the processes in a run's group and in the groups of its hosts. A process that we cannot see is 0."""
    return [int(pid) for group in (path, *_inside(path)) for pid in read(group / "cgroup.procs").split()]


def _inside(path: Path) -> Iterator[Path]:
    return (file.parent for file in path.glob("*/cgroup.procs"))


def remove(path: Path, uid: int | None = None) -> None:
    """Kill the processes of a group and of the groups inside it, and remove the groups. Never raises.

    It leaves groups in which we may not write, and processes of other users than ``uid`` (default: this user) with
    their groups.
    """
    uid = os.getuid() if uid is None else uid
    limit = time.monotonic() + REMOVE_SECONDS
    while path.exists() and os.access(path.parent, os.W_OK) and time.monotonic() < limit:
        with contextlib.suppress(OSError, ValueError):
            for pid in members(path):
                with contextlib.suppress(psutil.Error):
                    process = psutil.Process(pid)
                    if process.uids().real == uid:
                        process.kill()
            for inside in _inside(path):
                inside.rmdir()
            path.rmdir()
            return
        time.sleep(0.005)  # a killed process stays in its group until its end


def read(path: Path) -> str:
    """The text of a control file; empty if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""


def write(path: Path, text: str) -> None:
    """Write a value in one call, as control files need it. Raises OSError, always with the file name."""
    try:
        descriptor = os.open(path, os.O_WRONLY)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
