"""``Backup``: a backup of one node under load, by a program of the release or the server's clone plugin."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import Event, Happened, Stage
from pytest_dbcluster.clusters.events.maintenance import clone_plugin
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import ConfigError, ProvisionError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.hosts.host import Completed
    from pytest_dbcluster.releases.release import Release
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

MARIABACKUP, MYSQLDUMP, CLONE = "mariabackup", "mysqldump", "clone"
PROGRAMS = {MARIABACKUP: ("mariadb-backup", "mariabackup"), MYSQLDUMP: ("mariadb-dump", "mysqldump")}
DIRECTORY = "backup"  # in the directory of the node's host


@dataclasses.dataclass(frozen=True)
class Backup(Event):
    """Back one node up while the load runs. The backup is removed when it is complete."""

    tool: str
    """``mariabackup`` (MariaDB), ``mysqldump``, or ``clone`` (the plugin of MySQL, to a directory of the host)."""

    node: str = event.OTHER
    """``writer``, ``other`` (the last node that is not the writer), or a name such as ``node2``."""

    def __str__(self) -> str:
        return f"{self.tool} of {self.node}"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for an unknown tool, and for a node that the cluster does not have."""
        if self.tool not in TOOLS:
            known = ", ".join(f'"{name}"' for name in TOOLS)
            raise ConfigError(f"Backup({self.tool!r}): it accepts {known}")
        event.check_node(self.node, f"Backup({self.tool!r}, {self.node!r})", spec, topology)

    def equip(self, start: Stage, stages: Sequence[Stage]) -> Self:
        """Raise ConfigError for a release without the tool."""
        for release in start.releases:
            if not _has(release, self.tool):
                has = ", ".join(f'"{tool}"' for tool in TOOLS if _has(release, tool)) or "no tool"
                name = f"{release.name} ({release.source})"
                raise ConfigError(f"Backup({self.tool!r}): {name} does not have it; it has {has}")
        return self

    def moves_writes(self, topology: Topology) -> bool:
        """Return False: every node stays."""
        return False

    def prepare(self, cluster: Cluster) -> None:
        """Load the clone plugin, if the backup needs it. Raises ProvisionError."""
        if self.tool == CLONE:
            clone_plugin.load(event.target(self.node, cluster))

    def act(self, cluster: Cluster) -> Happened:
        """Back the node up. The proof is that the tool says that it completed, and that its files have bytes.

        Of a clone, the server says it, in its performance_schema.clone_status.
        """
        node = event.target(self.node, cluster)
        target = f"{node.host.directory}/{DIRECTORY}"
        node.host.remove_tree(target)
        happened = Happened(time.time(), node.name)
        try:
            TOOLS[self.tool](node, target)
            happened.mark("complete")
            if not node.host.tree_size(target):
                happened.void = f"{self.tool} wrote no bytes"
        except (SQLError, ProvisionError) as error:
            happened.void = f"{error}"
        finally:
            node.host.remove_tree(target)
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Unload the clone plugin, if the backup needed it."""
        if self.tool == CLONE:
            clone_plugin.unload(event.target(happened.node, cluster))
        return super().restore(cluster, happened)


def _has(release: Release, tool: str) -> bool:
    return clone_plugin.is_in(release) if tool == CLONE else bool(_program(release, tool))


def _program(release: Release, tool: str) -> str:
    """The name of the tool's program in a release; empty if the release does not have it."""
    return next((name for name in PROGRAMS[tool] if release.path_of(name)), "")


def _run(node: Node, program: str, *words: str) -> Completed:
    """Run a client program of the node's release on the host of the node. Raises ProvisionError."""
    from pytest_dbcluster.clusters.servers.data_template import run_client

    return run_client(node, program, *words, seconds=wait.SLOW_SECONDS)


def _mariabackup(node: Node, target: str) -> None:
    program = _program(node.release, MARIABACKUP)
    done = _run(node, program, "--backup", f"--target-dir={target}")
    if "completed OK!" not in done.stderr:
        raise ProvisionError(f"{program} of {node.name} did not say that it completed: {done.stderr[-300:]}")


def _mysqldump(node: Node, target: str) -> None:
    program, file = _program(node.release, MYSQLDUMP), f"{target}/all.sql"
    node.host.run(["mkdir", target])
    whole = ("--single-transaction", "--all-databases", "--routines", "--events", f"--result-file={file}")
    _run(node, program, *whole)
    end = node.host.run(["tail", "-n", "1", file]).stdout
    if not end.startswith("-- Dump completed"):
        raise ProvisionError(f"the dump of {node.name} does not end as a complete one: {end[:300]}")


def _clone(node: Node, target: str) -> None:
    with node.separate() as connection:
        connection.query(f"CLONE LOCAL DATA DIRECTORY = '{target}'", wait.SLOW_SECONDS)
    if reason := clone_plugin.not_cloned(node, local=True):
        raise ProvisionError(reason)


TOOLS: Mapping[str, Callable[[Node, str], None]] = {
    MARIABACKUP: _mariabackup,
    MYSQLDUMP: _mysqldump,
    CLONE: _clone,
}
