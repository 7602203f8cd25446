"""Shared code that starts servers: the clusters of a run, and blocks of rounds on them."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import ratios
from pytest_dbcluster import ClusterSpec, ReleaseName
from pytest_dbcluster.claims.block_order import block_orders
from pytest_dbcluster.clusters.startup import ResolvedCluster, bring_up
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.spec import DEFAULT_RELEASE
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution, look_up
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.workload import Setting, Workload

ROOT = Path(__file__).parent.parent
FRAGMENTS = ROOT / "fixtures" / "mycnf"


def tell(line: str) -> None:
    """Print a line of progress to stderr; the table goes to stdout."""
    print(line, file=sys.stderr, flush=True)


def server() -> Release:
    """The default release, on which the scripts measure."""
    return find.find(DEFAULT_RELEASE, progress=tell)


@contextlib.contextmanager
def hosts() -> Iterator[LocalProvisioner]:
    """A local provisioner; the end of the block stops its servers, also after an error."""
    with contextlib.closing(LocalProvisioner()) as provisioner:
        yield provisioner


@contextlib.contextmanager
def clusters(given: Provisioner | None = None) -> Iterator[Pool]:
    """The clusters of a run, stopped at the end of the block; local processes unless a provisioner is given."""
    with contextlib.nullcontext(given) if given else hosts() as provisioner:
        pool = Pool(Resolution(provisioner, fragments=FRAGMENTS, below=None, progress=tell))
        try:
            yield pool
        finally:
            pool.close()


def to_start(spec: ClusterSpec, release: Release, provisioner: Provisioner) -> ResolvedCluster:
    """What a cluster of this spec is started from, without options."""
    topology, proxy = look_up(spec, provisioner)
    return ResolvedCluster(spec, release, topology, proxy, {})


def ready(spec: ClusterSpec, release: Release, provisioner: Provisioner) -> float:
    """The seconds of one bring-up, done as in tests; the cluster has ended when this returns."""
    with contextlib.ExitStack() as stack:

        def start() -> None:
            cluster = bring_up(to_start(spec, release, provisioner), provisioner)
            stack.callback(provisioner.give_back, cluster.hosts)
            stack.callback(cluster.close)

        took = ratios.seconds(start)
        tell(f"{type(provisioner).__name__}: {spec} ready in {took:.2f} s")
        return took


def stage_of(pool: Pool, load: Workload, specs: Sequence[ClusterSpec], profile: str = "quick") -> Testbed:
    """The testbed that runs rounds of a workload on these specs."""
    release = ReleaseName.parse(DEFAULT_RELEASE)
    variants = [pool.resolution.resolve(spec.on_release(release)) for spec in specs]
    return Testbed(load, variants, pool, profile, tell)


def setting(pool: Pool, testbed: Testbed, variant: int, profile: str) -> Setting:
    """The setting to run a workload on the cluster of one variant (0-based) without a round."""
    chosen = testbed.variants[variant]
    running = pool.running([chosen])[0]
    return Setting(running.cluster, pool.client(chosen.release), chosen.release, profile, tell)


def blocks(testbed: Testbed, number: int, seed: int = 1) -> list[list[Round]]:
    """``number`` blocks of alternating rounds, each block by variant number; one block before them is dropped."""
    drawn = []
    for block, order in enumerate(itertools.islice(block_orders(len(testbed.names), seed), number + 1)):
        by_variant = {
            variant: testbed.round(variant, block=block - 1, position=position)
            for position, variant in enumerate(order)
        }
        drawn.append([by_variant[variant] for variant in sorted(by_variant)])
    return drawn[1:]
