"""How long three Galera nodes take until all are ready, by us and by bare servers in the naive order.

    python benchmarks/bring_up.py [--runs 5]

All start from fresh copies of the same template, programs and template cached; copying is part of the time.
Naive: the first node bootstraps the group, and when it is Synced the others join, together or one by one.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence

from benchmarks import ratios, stage
from pytest_dbcluster import wait
from pytest_dbcluster.cluster import READY_SECONDS, bring_up, ready_template
from pytest_dbcluster.node import Node
from pytest_dbcluster.provisioners.local import LocalProvisioner
from pytest_dbcluster.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.topologies.galera import Galera

TARGET = 3.0
SPEC = ClusterSpec("galera", nodes=3)
TOGETHER = ((0,), (1, 2))
ONE_BY_ONE = ((0,), (1,), (2,))


def ours(release: Release, provisioner: LocalProvisioner) -> float:
    """Seconds of one bring-up as tests do it."""
    with contextlib.ExitStack() as stack:

        def start() -> None:
            cluster = bring_up(SPEC, release, provisioner, options={})
            stack.callback(provisioner.release, cluster.hosts)
            stack.callback(cluster.close)

        return ratios.seconds(start)


def naive(release: Release, provisioner: LocalProvisioner, steps: Sequence[Sequence[int]]) -> float:
    """Seconds of one bring-up without a restored component; ``steps`` says which nodes start together."""
    nodes: list[Node] = []
    with contextlib.ExitStack() as stack:

        def start() -> None:
            made = ready_template(release, provisioner, {}, stage.tell)
            hosts = provisioner.acquire(SPEC)
            stack.callback(provisioner.release, hosts)
            nodes.extend(Node(host.name, host, release, host.port(), made.password) for host in hosts)
            for host, node in zip(hosts, nodes, strict=True):
                stack.callback(node.kill)
                host.copy_tree(str(made.data), node.data)
            _join(nodes, steps)

        return ratios.seconds(start)


def _join(nodes: Sequence[Node], steps: Sequence[Sequence[int]]) -> None:
    form = Galera()
    living: list[Node] = []
    for node in nodes:
        node.configure(form.options(node, nodes))
    for step in steps:
        for number in step:
            nodes[number].start(*(["--wsrep-new-cluster"] if not living else []))
            living.append(nodes[number])
        wait.until(functools.partial(form.problems, living), "the naive group", seconds=READY_SECONDS, poll=0.01)


def main() -> None:
    """Reads the command line and prints the table."""
    said = ratios.arguments(__doc__, 5, "bring-ups of each kind").parse_args()
    release = stage.server()
    with stage.hosts() as provisioner:
        one, together, one_by_one = ratios.alternate(
            said.runs,
            lambda: ours(release, provisioner),
            lambda: naive(release, provisioner, TOGETHER),
            lambda: naive(release, provisioner, ONE_BY_ONE),
        )
    print("| 3 Galera nodes ready | seconds | ours / this |")
    print("|---|---|---|")
    print(f"| ours | {ratios.Figure.of(one)} | |")
    print(f"| naive, joiners together | {ratios.Figure.of(together)} | {ratios.ratio(one, together)} |")
    print(f"| naive, one by one | {ratios.Figure.of(one_by_one)} | {ratios.ratio(one, one_by_one)} |")
    print(f"\nours, seconds: {ratios.met(ratios.Figure.of(one).median, TARGET)}")


if __name__ == "__main__":
    ratios.run(main)
