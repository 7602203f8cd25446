"""The trial of a release: each topology that it offers, and each workload for a second. Its report is for us."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import DBClusterError, ProvisionError, Unsupported, WorkloadError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.redaction import redact
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed.pool import Pool, open_pool
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.version import __version__
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from pytest_dbcluster.workloads.workload import Setting, Workload

WORKLOADS: tuple[Workload, ...] = (
    MySQLSlap("write", concurrency=4, queries=2000),
    SysBench("oltp_read_write", size=1000, threads=4, seconds=1.0, to="writer"),
    TPCC(warehouses=1, threads=4, seconds=1.0),
)
TAIL = 20  # lines of the end of a log
OWN_PACKAGES = ("mariadb", "mysql", "percona", "galera")  # first words of the packages that the report names
SEND = "Send us this whole report as an issue, also if nothing failed: the row of this release then becomes tried."


@dataclasses.dataclass(frozen=True)
class TrialStep:
    """One thing that the trial tried."""

    name: str
    """What it is, such as ``galera`` or ``galera, tpcc w1 t4``."""

    result: str
    """What happened, on one or several lines."""

    failed: bool = False
    """Whether it should have worked, and did not."""

    log: Sequence[str] = ()
    """The last lines of the servers' logs after a failure."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """A release with everything that was tried."""

    name: ReleaseName
    """The release as the user wrote it."""

    release: Release | None
    """Its programs; None if it could not be fetched."""

    steps: Sequence[TrialStep]
    """The steps, in order."""

    @property
    def failed(self) -> int:
        """The number of steps that failed."""
        return sum(step.failed for step in self.steps)

    def text(self) -> str:
        """The report, without passwords and without the path of the home directory."""
        about = [*_about_machine(), *(_about_release(self.release) if self.release else [])]
        width = max(len(name) for name, _ in [*about, *((step.name, "") for step in self.steps)])
        lines = [f"{name.ljust(width)}  {value}" for name, value in about]
        for step in self.steps:
            first, *more = step.result.splitlines() or [""]
            lines.append(f"{step.name.ljust(width)}  {'FAILED: ' if step.failed else ''}{first}")
            lines += [f"{' ' * width}  {line}" for line in [*more, *step.log]]
        end = f"{quantity(self.failed, 'step')} failed with {self.name}" if self.failed else f"{self.name}: all worked"
        return redact("\n".join([*lines, "", end, SEND])).replace(str(Path.home()), "~")


def try_release(name: ReleaseName, kinds: Sequence[str] = ()) -> Trial:
    """Fetch a release, and try topologies with each workload. Raises ConfigError for an unknown release.

    kinds: the names of the topologies; by default all.
    """
    find.check(name)
    pool = open_pool("local", progress=tell)
    pool.provisioner.logs = logs = KeptLogs(cache.root() / "logs", "doctor")
    shutil.rmtree(logs.directory / logs.test, ignore_errors=True)  # of an earlier trial
    with contextlib.ExitStack() as stack:
        stack.callback(pool.leave)
        try:
            release = pool.resolution.release(name)
        except (ProvisionError, Unsupported) as error:
            return Trial(name, None, [TrialStep("fetch", str(error), failed=True)])
        steps = [
            step for kind in kinds or registry.names("topology") for step in _try_topology(pool, kind, name, release)
        ]
    return Trial(name, release, steps)


def _try_topology(pool: Pool, kind: str, name: ReleaseName, release: Release) -> Iterator[TrialStep]:
    """Start as few nodes of a topology as replication needs, and run each workload on them."""
    shape = topology(kind)
    nodes = max(shape.minimum_nodes, 2 if shape.replicates else 1)
    spec = ClusterSpec(kind, nodes=nodes, release=name, name=kind)
    tell(f"trying {kind} on {name}")
    try:
        variant = pool.resolution.resolve(spec, switched=False)
    except Unsupported as error:
        yield TrialStep(kind, f"not offered: {error}")
        return
    except DBClusterError as error:
        yield _failure(kind, error, pool)
        return
    with pool.turns.building():
        yield from _try_variant(pool, variant, release)


def _try_variant(pool: Pool, variant: Variant, release: Release) -> Iterator[TrialStep]:
    kind = variant.spec.topology
    try:
        cluster = bring_up(variant.to_start(), pool.provisioner, progress=tell)
    except DBClusterError as error:
        yield _failure(kind, error, pool)
        return
    try:
        yield TrialStep(kind, f"{quantity(len(cluster.nodes), 'server')} ready in {cluster.ready_seconds:.1f} s")
        for workload in WORKLOADS:
            yield _try_workload(pool, cluster, workload, release)
    finally:
        cluster.close()
        pool.provisioner.give_back(cluster.hosts)


def _try_workload(pool: Pool, cluster: Cluster, workload: Workload, release: Release) -> TrialStep:
    """Make the tables, run a round, and check that all nodes have the same rows and logged no error."""
    name = f"{cluster.spec.topology}, {workload}"
    if lacking := workload.lacks(release):
        return TrialStep(name, f"not offered: {lacking}")
    setting = Setting(cluster, pool.client(release), release, "quick", tell)
    try:
        workload.prepare(setting)
        workload.reset(setting)
        done = workload.run(setting)
        cluster.check(workload.tables)
        if wrong := workload.violations(cluster):
            raise WorkloadError("; ".join(wrong))
    except DBClusterError as error:
        cluster.keep_logs(pool.provisioner.logs, error)
        return _failure(name, error, pool)
    return TrialStep(name, f"{done.done} of {quantity(done.operations, 'operation')} in {done.seconds:.1f} s")


def _failure(name: str, error: DBClusterError, pool: Pool) -> TrialStep:
    return TrialStep(name, str(error), failed=True, log=list(_tails(pool.provisioner.logs, name.partition(",")[0])))


def _tails(logs: KeptLogs | None, cluster: str) -> Iterator[str]:
    """The last lines of each log that was kept of a cluster."""
    files = sorted((logs.directory / logs.test).glob(f"{cluster}*/*/*.log")) if logs else []
    for file in files:
        yield f"-- {file.parent.name}, {file.name}"
        yield from file.read_text(errors="replace").splitlines()[-TAIL:]


def _about_machine() -> list[tuple[str, str]]:
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        system = ""
    where = f"{system or platform.system()}, Linux {platform.release()} {platform.machine()}"
    python = f"Python {platform.python_version()}"
    return [("plugin", f"pytest-dbcluster {__version__}, {python}"), ("machine", f"{where}, {os.cpu_count()} CPUs")]


def _about_release(release: Release) -> Iterable[tuple[str, str]]:
    """The exact version, the source and the layout."""
    root = str(cache.root())
    options = {**release.server_options, **{f"client {name}": path for name, path in release.client_options.items()}}
    yield "release", f"{release.name}, exactly {release.version}"
    yield "source", release.source
    manifest = cache.read(release.trees[0]) if release.trees else None
    packages = manifest.packages if manifest else {}
    own = [f"{name} {version}" for name, version in sorted(packages.items()) if name.startswith(OWN_PACKAGES)]
    yield "packages", f"{', '.join(own)}; {len(packages)} in all" if own else "none: no packages of a distribution"
    paths = [f"{name}={path}" for name, path in options.items()]
    yield "layout", ", ".join(paths).replace(root, "CACHE") or "installed in the system"
    yield "Galera library", str(release.wsrep_provider or "none").replace(root, "CACHE")
    yield "programs", " ".join(sorted(path.name for path in release.bin.iterdir()))
