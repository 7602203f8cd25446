"""Time until three nodes are ready: with the plugin, and as bare servers in the naive order.

    python benchmarks/bring_up.py [--runs 5] [--only group_replication]

Both start from fresh copies of the same template. Programs and template are cached; copying is part of the time.
Naive order: the first node starts alone. When it is ready, the other nodes start, together or one by one. Each node
gets its join command when it answers. The next step begins when all nodes so far are ready and their commands have
returned.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import ratios, stage
from pytest_dbcluster import ClusterSpec, wait
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.startup import READY_SECONDS, ready_template
from pytest_dbcluster.clusters.topologies.async_replication import follow
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release

NODES = 3
TOGETHER = ((0,), (1, 2))
ONE_BY_ONE = ((0,), (1,), (2,))


def join_galera(form: Any, step: Sequence[Node], nodes: Sequence[Node]) -> None:
    """Start the nodes of a step; the first node of the cluster bootstraps it, the others join."""
    for node in step:
        node.start(*(["--wsrep-new-cluster"] if node is nodes[0] else []))


def join_group(form: Any, step: Sequence[Node], nodes: Sequence[Node]) -> None:
    """Start the nodes of a step, and run START GROUP_REPLICATION on each when it answers."""
    for node in step:
        node.start()
    for node in step:
        node.wait_answering()
    with concurrent.futures.ThreadPoolExecutor() as joining:
        statements = [form.before_start(node, nodes, bootstrap=node is nodes[0]) for node in step]
        list(joining.map(lambda node, before: node.sql.run([*before, "START GROUP_REPLICATION"]), step, statements))


def follow_primary(form: Any, step: Sequence[Node], nodes: Sequence[Node]) -> None:
    """Start the nodes of a step, and let each replica that answers follow the first node."""
    for node in step:
        node.start()
    for node in step:
        node.wait_answering()
        if node is not nodes[0]:
            follow(node, nodes[0])


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of three-node cluster, the target of the plugin in seconds, and how bare servers join."""

    topology: str
    release: str
    target: float
    join: Callable[[Any, Sequence[Node], Sequence[Node]], None]

    @property
    def spec(self) -> ClusterSpec:
        """The cluster to start."""
        return ClusterSpec(self.topology, nodes=NODES)

    def __str__(self) -> str:
        return f"{self.topology}, {self.release}"


KINDS = (
    Kind("galera", "mariadb:10.11", 3.0, join_galera),
    Kind("group_replication", "mysql:9.7", 5.0, join_group),
    Kind("async_replication", "mysql:9.7", 3.0, follow_primary),
    Kind("async_replication", "mariadb:10.11", 3.0, follow_primary),
)


def naive(kind: Kind, release: Release, provisioner: LocalProvisioner, steps: Sequence[Sequence[int]]) -> float:
    """The seconds of one bring-up of bare servers; ``steps`` lists the 0-based nodes that start together."""
    nodes: list[Node] = []
    with contextlib.ExitStack() as stack:

        def start() -> None:
            made = ready_template(release, provisioner, {}, stage.tell)
            hosts = provisioner.acquire(kind.spec)
            stack.callback(provisioner.give_back, hosts)
            nodes.extend(Node(host.name, host, release, host.port(3306), made.password) for host in hosts)
            for host, node in zip(hosts, nodes, strict=True):
                stack.callback(node.kill)
                host.copy_tree(str(made.data), node.data)
            _join(kind, nodes, steps)

        return ratios.seconds(start)


def _join(kind: Kind, nodes: Sequence[Node], steps: Sequence[Sequence[int]]) -> None:
    form = topology(kind.topology)
    started: list[Node] = []
    for node in nodes:
        node.configure(form.options(node, nodes))
    for step in steps:
        joining = [nodes[number] for number in step]
        kind.join(form, joining, nodes)
        started += joining
        wait.until(functools.partial(form.problems, started), f"the naive {kind}", seconds=READY_SECONDS, poll=0.01)


def rows(kind: Kind, runs: int) -> list[str]:
    """The table rows of one kind of cluster, with its target."""
    release = find.find(kind.release, progress=stage.tell)
    with stage.hosts() as provisioner:
        ready_template(release, provisioner, {}, stage.tell)
        stage.tell(f"{kind}: {runs} bring-ups of each way")
        plugin, together, one_by_one = ratios.alternate(
            runs,
            lambda: stage.ready(kind.spec, release, provisioner),
            lambda: naive(kind, release, provisioner, TOGETHER),
            lambda: naive(kind, release, provisioner, ONE_BY_ONE),
        )
    median = ratios.Figure.of(plugin)
    return [
        f"| {kind}: ours | {median} | | {ratios.target_text(median.median, kind.target)} |",
        f"| naive, the others together | {ratios.Figure.of(together)} | {ratios.ratio(plugin, together)} | |",
        f"| naive, one by one | {ratios.Figure.of(one_by_one)} | {ratios.ratio(plugin, one_by_one)} | |",
    ]


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "bring-ups of each way")
    parser.add_argument("--only", choices=sorted({kind.topology for kind in KINDS}), help="one topology, not all")
    arguments = parser.parse_args()
    print(f"| {NODES} nodes ready | seconds | ours / this | seconds of ours |\n|---|---|---|---|")
    for kind in KINDS:
        if arguments.only in (None, kind.topology):
            print("\n".join(rows(kind, arguments.runs)), flush=True)


if __name__ == "__main__":
    ratios.run(main)
