"""Control groups: what a host's programs may use of this machine, limited by its kernel.

A limited host has a group of its own, ``dbcluster-RUN-OWNER-BORN/CLUSTER-NODE``, in each tree that limits it.

Version 1 charges a write to the process that submits it: what the kernel writes back later, and the journal of the
file system, are not limited. A server's own fsync and O_DIRECT writes are.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.spec import HostNeeds
from pytest_dbcluster.system import block_devices, cgroup_tree
from pytest_dbcluster.system.cgroup_tree import POWERS, Tree

PERIOD = 100_000  # of a CPU quota, in microseconds: the kernel's default
OOM = ("memory.events", "memory.oom_control")  # of either version; both have a line "oom_kill N"
# Without swap a kernel has no such file; with it, swap would be a way around a limit of memory.
IF_THERE = ("memory.memsw.limit_in_bytes", "memory.swap.max")
MIB = 2**20
RECORD = "groups"  # in a run's directory


@dataclasses.dataclass(frozen=True)
class Group:
    """The group of one host, as a directory in each tree that limits it."""

    places: tuple[Path, ...]
    needs: HostNeeds

    @property
    def joins(self) -> list[str]:
        """The files that a process writes its number into, to join."""
        return [str(place / "cgroup.procs") for place in self.places]

    def limit_reached(self) -> str:
        """Says that the kernel killed a program because the group had used all its memory; empty when it did not."""
        lines = [line for place in self.places for file in OOM for line in cgroup_tree.read(place / file).splitlines()]
        killed = sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        if not killed or self.needs.memory is None:
            return ""
        return f"the host's memory limit of {self.needs.memory / MIB:g} MiB was reached"

    def remove(self) -> None:
        """End what is left in it and remove it. Never raises."""
        for place in self.places:
            cgroup_tree.remove(place)


@dataclasses.dataclass(frozen=True)
class Limits:
    """What may be limited for programs whose data lies in one directory, and why the rest may not.

    device: MAJOR:MINOR of the disk, empty where it cannot be limited.
    """

    trees: Mapping[str, Tree]
    missing: Mapping[str, str]
    device: str = ""

    @property
    def offers(self) -> frozenset[str]:
        """``cores``, ``memory`` and ``iops``, or those of them that may be limited."""
        return frozenset(self.trees)

    def group(self, run: str, name: str, needs: HostNeeds) -> Group:
        """A group with these limits for a host of this process's run.

        Raises Unsupported for what may not be limited here, and ProvisionError with the kernel's refusal.
        """
        asked = [power for power in POWERS if getattr(needs, power) is not None]
        if lacking := [f"no {power}: {self.missing[power]}" for power in asked if power in self.missing]:
            raise Unsupported(f"cannot limit {name} to {needs} here; {'; '.join(lacking)}")
        trees = list(dict.fromkeys(self.trees[power] for power in asked))
        made = Group(tuple(tree.place / cgroup_tree.run_name(run) / name for tree in trees), needs)
        try:
            for tree, place in zip(trees, made.places, strict=True):
                place.parent.mkdir(exist_ok=True)
                if tree.version == 2:
                    with cgroup_tree.enabling(tree.place):
                        cgroup_tree.enable(tree.place, tree.powers)
                        cgroup_tree.enable(place.parent, tree.powers)  # from now on nobody can take them back
                place.mkdir()
                for file, text in settings(tree, needs, self.device):
                    if file not in IF_THERE or (place / file).exists():
                        cgroup_tree.write(place / file, text)
        except OSError as error:
            made.remove()
            where = f"{error.filename}: {error.strerror}"
            raise ProvisionError(f"cannot limit {name} to {needs} with a control group: {where}") from None
        return made


def settings(tree: Tree, needs: HostNeeds, device: str) -> list[tuple[str, str]]:
    """What is written into which files of a group of this tree, in this order."""
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
    """What may be limited here for data in this directory, which need not be made yet; tried once per process."""
    said = dict(zip(POWERS, cgroup_tree.trees(), strict=True))
    trees = {power: one for power, one in said.items() if isinstance(one, Tree)}
    missing = {power: one for power, one in said.items() if isinstance(one, str)}
    device = ""
    if "iops" in trees:
        try:
            device = block_devices.whole_disk(directory)
        except Unsupported as error:
            missing["iops"] = str(error)
            del trees["iops"]
    return Limits(trees, missing, device)


def record(directory: Path, group: Group) -> list[Path]:
    """Write down in a run's directory which groups are the run's; those that were not known yet."""
    known = recorded(directory)
    fresh = [place for place in dict.fromkeys(host.parent for host in group.places) if place not in known]
    if fresh:
        (directory / RECORD).write_text("".join(f"{place}\n" for place in (*known, *fresh)))
    return fresh


def recorded(directory: Path) -> list[Path]:
    """The groups of the run in this directory, wherever in the trees it was begun."""
    return [Path(line) for line in cgroup_tree.read(directory / RECORD).splitlines()]


def reap() -> None:
    """Remove groups of runs whose owner is gone and that hold no process. Never raises."""
    for place in cgroup_tree.of_runs():
        if cgroup_tree.orphaned(place) and not cgroup_tree.members(place):
            cgroup_tree.remove(place)
