"""What the scripts share that starts servers: the clusters of a run, and blocks of rounds on them."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_dbcluster import ClusterSpec, ReleaseName
from pytest_dbcluster.claims.block_order import block_orders
from pytest_dbcluster.clusters.startup import ResolvedCluster
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
    """Say what goes on, apart from the table."""
    print(line, file=sys.stderr, flush=True)


def server() -> Release:
    """The release that everything here is measured on."""
    return find.find(DEFAULT_RELEASE, progress=tell)


@contextlib.contextmanager
def hosts() -> Iterator[LocalProvisioner]:
    """A provisioner whose servers end with the block, however it ends."""
    with contextlib.closing(LocalProvisioner()) as provisioner:
        yield provisioner


@contextlib.contextmanager
def clusters(made: Provisioner | None = None) -> Iterator[Pool]:
    """The clusters of a run, ended with the block, however it ends; on hosts of this machine without another maker."""
    with contextlib.nullcontext(made) if made else hosts() as provisioner:
        pool = Pool(Resolution(provisioner, fragments=FRAGMENTS, below={}, progress=tell))
        try:
            yield pool
        finally:
            pool.close()


def to_start(spec: ClusterSpec, release: Release, provisioner: Provisioner) -> ResolvedCluster:
    """What a cluster of this spec is started from, without options."""
    topology, proxy = look_up(spec, provisioner)
    return ResolvedCluster(spec, release, topology, proxy, {})


def stage_of(pool: Pool, load: Workload, specs: Sequence[ClusterSpec], profile: str = "quick") -> Testbed:
    """What runs the rounds of a load on these specs."""
    release = ReleaseName.parse(DEFAULT_RELEASE)
    variants = [pool.resolution.resolve(spec.on_release(release)) for spec in specs]
    return Testbed(load, variants, pool, profile, tell)


def setting(pool: Pool, rooms: Testbed, variant: int, profile: str) -> Setting:
    """What a load needs to run on the cluster of one variant, outside of a round."""
    chosen = rooms.variants[variant]
    running = pool.running([chosen])[0]
    return Setting(running.cluster, pool.client(chosen.release), chosen.release, profile, tell)


def blocks(rooms: Testbed, number: int, seed: int = 1) -> list[list[Round]]:
    """So many blocks of alternating rounds, each in the order of its variants; one block before them is dropped."""
    found = []
    for block, order in enumerate(itertools.islice(block_orders(len(rooms.names), seed), number + 1)):
        drawn = {one: rooms.round(one, block=block - 1, position=place) for place, one in enumerate(order)}
        found.append([drawn[one] for one in sorted(drawn)])
    return found[1:]
