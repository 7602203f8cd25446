"""What the tests share: real servers, brought up once and used by many tests."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from _pytest.pytester import SysModulesSnapshot

import pytest_dbcluster.plugin.session  # noqa: F401  (so runs in this process share its classes with our tests)
from pytest_dbcluster.cli import main as command
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers.connection import Endpoint
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.hosts import local_host, runs
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache, machine_lock
from pytest_dbcluster.system.machine_lock import MachineLock
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from tests.support import engines, homes, stand_ins, users
from tests.support.clusters import bring_up
from tests.support.guests import missing as no_guests
from tests.support.homes import Home
from tests.support.stand_ins import StandIns

pytest_plugins = ["pytester"]

# A busy machine makes any example slow; what is too slow is for benchmarks/ to say.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

TESTS = Path(__file__).parent
MAIN_RELEASE = "mariadb:10.11"
# A directory with a module that Python imports when a process begins.
PROCESSES = TESTS / "support" / "processes"

# Packages that runs of pytest in this process share: numpy refuses a second import, and the others use it.
SHARED = ("PIL", "contourpy", "kiwisolver", "matplotlib", "mpl_toolkits", "numpy")

# What takes longest, begun first: whoever has nothing left to do at the end waits for a short one then.
LONG = (
    "contracts/test_topologies.py",
    "workloads/tpcc/test_workload_population.py",
    "workloads/tpcc/test_workload.py",
    "workloads/tpcc/test_workload_corruptions.py",
    "whole/test_event_chaos.py",
    "testbed/events/test_event_testbed_maintenance.py",
    "testbed/events/test_event_testbed_roles.py",
    "testbed/events/test_event_testbed_topologies.py",
    "testbed/events/test_event_testbed.py",
    "plugin/test_xdist.py",
    "contracts/test_workloads.py",
    "clusters/topologies/group_replication/test_topology_members.py",
    "clusters/topologies/group_replication/test_topology_multi_primary.py",
    "whole/test_leaks.py",
    "whole/test_end_to_end.py",
    "workloads/sql/test_workload.py",
    "whole/test_factorial.py",
    "whole/test_own_sql.py",
    "whole/test_own_workload_commands.py",
    "workloads/script/test_workload.py",
    "workloads/digest/test_digest_on_servers.py",
    "cli/compare/test_on_servers.py",
    "cli/compare/test_racing.py",
    "whole/test_gate.py",
    "whole/test_workflow_jobs.py",
    "workloads/tpcc/test_workload_contained.py",
    "workloads/tpcc/test_workload_on_nodes.py",
    "testbed/test_variants.py",
    "clusters/topologies/test_semisync.py",
    "clusters/proxies/haproxy/test_proxy.py",
    "plugin/test_hooks.py",
    "plugin/test_hooks_collection.py",
    "clusters/topologies/test_galera.py",
    "clusters/topologies/test_galera_pxc.py",
    "clusters/topologies/test_async_replication_replicas.py",
    "hosts/provisioners/container/test_provisioner_troubles.py",
    "clusters/test_cluster.py",
    "clusters/test_kept.py",
    "reporting/tables/test_matrix_run.py",
    "whole/test_leaks_containers.py",
    "workloads/test_sysbench.py",
    "hosts/provisioners/container/test_provisioner_engine_lost.py",
    "testbed/test_pool.py",
    "testbed/test_testbed_loads.py",
    "testbed/test_testbed.py",
    "whole/test_resume.py",
    "whole/test_kills.py",
    "hosts/provisioners/vm/test_provisioner_without_root.py",
    "workloads/tpcc/test_partitions.py",
    "workloads/tpcc/test_orders.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """The order of modules is that of ``LONG``, with pytest-xdist too. Ctrl-C and SIGHUP end background runs too."""
    gc.disable()  # until all tests are collected: they stay, so each look for garbage among them is for nothing
    config.option.loadscopereorder = False
    if hasattr(config, "workerinput") and [Path(one).resolve() for one in config.args] == [TESTS]:
        config.args = rotated(config.workerinput)
    if hasattr(config, "workerinput"):  # runs of pytest inside of tests have no properties, and its import takes .1 s
        os.environ.setdefault("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    # The tests start hundreds of processes. Each of them would compile the package again, and each TLS connection would
    # read this machine's CA certificates, which the control connection does not verify.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PROCESSES), os.environ.get("PYTHONPATH"))))
    os.environ.pop("GITHUB_ACTIONS", None)  # runs of pytest inside of tests are no steps of GitHub's
    os.environ.setdefault("SSL_CERT_FILE", os.devnull)
    # pytester gives runs a home of their own, in which matplotlib would look for the fonts of this machine each time.
    os.environ.setdefault("MPLCONFIGDIR", str(cache.root().with_name("matplotlib")))
    os.environ["DBCLUSTER_LEARN"] = (
        "0"  # servers of tests share the cores: the machine's own calibrations stay as they are
    )
    # A shell has what it starts with & ignore Ctrl-C, and nohup has it ignore SIGHUP; processes of tests inherit that.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def rotated(worker: Mapping[str, Any]) -> list[str]:
    """The directories of the tests. Each worker begins at another one, so none compiles what another one has compiled.

    Without it, all workers of a fresh checkout would compile each module at the same time.
    """
    names = sorted({path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")})
    first = len(names) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    return [str(TESTS / name) for name in (*names[first:], *names[:first])]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Modules that take long come first. In workers the others are in the order of their paths: see ``rotated``."""
    place, worker = {TESTS / name: number for number, name in enumerate(LONG)}, hasattr(config, "workerinput")
    items.sort(key=lambda item: (place.get(item.path, len(LONG)), item.path.parts if worker else ()))


def pytest_collection_finish() -> None:
    """Collected tests stay alive, so the garbage collector skips them. Runs inside tests start it several times."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # the usual 700 is a look for every few lines of a test
    gc.enable()


Bring = Callable[..., Cluster]


@pytest.fixture(scope="session", autouse=True)
def own_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineLock]:
    """The lock of a machine of the tests' own: rounds of others do not keep them waiting, and theirs nobody else."""
    own = MachineLock(tmp_path_factory.mktemp("machine") / "locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_lock, "this", lambda: own)
        yield own


@pytest.fixture(scope="session", autouse=True)
def packages_read_once() -> Iterator[None]:
    """Runs of pytest in this process share what they read of the installed packages: of each two or three times."""
    installed = tuple(metadata.distributions())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata, "distributions", lambda: installed)
        for name in ("entry_points", "files"):
            kept = functools.cached_property(getattr(metadata.Distribution, name).fget)
            kept.__set_name__(metadata.Distribution, name)
            patch.setattr(metadata.Distribution, name, kept)
        yield


@pytest.fixture(scope="session", autouse=True)
def packages_imported_once() -> Iterator[None]:
    """A run of pytest in this process forgets the modules that it imports, except for those of ``SHARED``."""
    restore = SysModulesSnapshot.restore

    def restore_others(snapshot: SysModulesSnapshot) -> None:
        shared = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in SHARED}
        restore(snapshot)
        sys.modules.update(shared)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SysModulesSnapshot, "restore", restore_others)
        yield


@pytest.fixture(scope="session", autouse=True)
def sparse_copies() -> Iterator[None]:
    """Servers of these tests start with holes where their redo log has zeros: 96 MB that no copy reads or writes.

    Templates of the cache have no holes. So nodes are copied from a copy of the template that has them.
    """
    copy_tree, shared, one_at_a_time = LocalHost.copy_tree, (cache.root() / "templates").resolve(), threading.Lock()
    holes = "--sparse=always"

    def copied(host: LocalHost, source: str, target: str, *, durable: bool = False) -> None:
        template = Path(source).parent
        if not durable and template.parent.resolve() == shared and holes in local_host.COPY:
            own = Path(directory, f"{template.name}-{template.stat().st_ino}")
            with one_at_a_time:
                if not own.exists():
                    copy_tree(host, source, f"{own}.new")
                    Path(f"{own}.new").rename(own)
            source = str(own)
        copy_tree(host, source, target, durable=durable)

    with tempfile.TemporaryDirectory(prefix="dbcluster-test-") as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_host, "COPY", (*local_host.COPY, holes))
        patch.setattr(LocalHost, "copy_tree", copied)
        yield


@pytest.fixture(scope="session")
def mariadb() -> Release:
    """The release that tests of real servers run on."""
    return find.find(MAIN_RELEASE)


@pytest.fixture(scope="session")
def mysql() -> Release:
    """The other vendor's release."""
    return find.find("mysql:9.7")


@pytest.fixture(scope="session")
def provisioner() -> Iterator[LocalProvisioner]:
    """Hosts of this machine; everything on them ends with the session."""
    local = LocalProvisioner()
    yield local
    local.close()


@contextlib.contextmanager
def bringing(provisioner: Provisioner, find_release: Callable[[Any], Release]) -> Iterator[Bring]:
    """``bring("galera", 3, release, wsrep_slave_threads="4")`` on a provisioner; the clusters are closed at the end."""
    made: list[Cluster] = []

    def bring(topology: str, nodes: int = 1, release: Any = MAIN_RELEASE, /, **options: str) -> Cluster:
        made.append(bring_up(ClusterSpec(topology, nodes=nodes), find_release(release), provisioner, options=options))
        return made[-1]

    yield bring
    for cluster in made:
        cluster.close()
        provisioner.give_back(cluster.hosts)


def found(release: str | Release) -> Release:
    """A release, or the one of this name."""
    return find.find(release) if isinstance(release, str) else release


@pytest.fixture(scope="session")
def bring_shared(provisioner: LocalProvisioner) -> Iterator[Bring]:
    """As ``bring``; the clusters live as long as the session. Each idle server of MySQL takes a hundredth of a core."""
    with bringing(provisioner, found) as bring:
        yield bring


@pytest.fixture(scope="module")
def bring(provisioner: LocalProvisioner) -> Iterator[Bring]:
    """``bring("galera", 3, wsrep_slave_threads="4")``: a cluster that is closed with its module at the latest."""
    with bringing(provisioner, found) as bring:
        yield bring


@pytest.fixture(scope="session")
def containers() -> Iterator[ContainerProvisioner]:
    """Containers of this machine's engine, which is named where it is missing."""
    if reason := engines.missing():
        pytest.skip(reason)
    made = ContainerProvisioner()
    yield made
    made.close()


@pytest.fixture(scope="session")
def imaged(containers: ContainerProvisioner) -> Callable[[str], Release]:
    """``imaged("mysql:9.7")``: the release in its image, which is named where it has not been made."""

    def imaged(name: str) -> Release:
        if reason := engines.no_image(name):
            pytest.skip(reason)
        return containers.supply(ReleaseName.parse(name), print)

    return imaged


@pytest.fixture(scope="module")
def contain(containers: ContainerProvisioner, imaged: Callable[[str], Release]) -> Iterator[Bring]:
    """``contain("galera", 3, "mariadb:10.11")``: as ``bring``, in containers."""
    with bringing(containers, imaged) as contain:
        yield contain


@pytest.fixture(scope="session")
def guests() -> Iterator[GuestProvisioner]:
    """Guests of this machine; what they need is named where it is missing."""
    if reason := no_guests():
        pytest.skip(reason)
    made = GuestProvisioner()
    yield made
    made.close()


@pytest.fixture(scope="session")
def guest(guests: GuestProvisioner) -> Iterator[Bring]:
    """``guest("galera", 3, "mariadb:10.11")``: as ``bring``, in guests, until the session ends."""
    with bringing(guests, found) as guest:
        yield guest


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[StandIns]:
    """Three stand-in hosts and one for loads; what they need is named where it is missing."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(count=3, load=1) as made:
        yield made


@pytest.fixture(scope="session")
def machines(elsewhere: StandIns) -> Iterator[SshProvisioner]:
    """Hosts on the machines of ``elsewhere``."""
    made = SshProvisioner(machines=elsewhere.servers, load_machines=elsewhere.loads, config=elsewhere.config)
    yield made
    made.close()


@pytest.fixture(scope="session")
def remote(machines: SshProvisioner) -> Iterator[Bring]:
    """``remote("galera", 3, "mariadb:10.11")``: as ``bring``, on machines that ssh reaches, until the session ends."""
    with bringing(machines, found) as remote:
        yield remote


@pytest.fixture
def briefly(bring: Bring) -> Iterator[Bring]:
    """As ``bring``; what it brought up ends with the test, because a server of MySQL takes half a GiB."""
    made: list[Cluster] = []

    def briefly(*shape: Any, **options: str) -> Cluster:
        made.append(bring(*shape, **options))
        return made[-1]

    yield briefly
    for cluster in made:
        cluster.close()


@pytest.fixture(scope="session")
def standalone(bring_shared: Bring) -> Cluster:
    """One server that tests share; they leave it as they found it."""
    return bring_shared("standalone")


@pytest.fixture(scope="session")
def galera2(bring_shared: Bring) -> Cluster:
    """Two Galera nodes that tests share; they leave them as they found them."""
    return bring_shared("galera", 2)


@pytest.fixture
def replicated() -> Cluster:
    """A primary and two replicas as loads see them, whose servers were never started."""
    spec = ClusterSpec("async_replication", nodes=3)
    ends = [Endpoint("127.0.0.1", 3305 + n, "root", "", nodes=(f"node{n}",)) for n in (1, 2, 3)]
    nodes: Any = [SimpleNamespace(name=one.nodes[0], endpoint=one) for one in ends]
    return Cluster(spec, topology("async_replication"), [], nodes, None)


@pytest.fixture
def pool(provisioner: LocalProvisioner, tmp_path: Path) -> Iterator[Pool]:
    """A pool of real servers without options of the run, closed afterwards."""
    made = Pool(Resolution(provisioner, fragments=tmp_path, below={}, progress=lambda line: None))
    yield made
    made.close()


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A directory like /tmp: root's, sticky, and writable for every user. Tests with other users need it."""
    if reason := users.missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="dbcluster-test-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o1777)
        yield Path(name)


@pytest.fixture(scope="session")
def home() -> Iterator[Home]:
    """The home of an ordinary user who may make user namespaces, with the releases that tests of guests need."""
    if reason := homes.missing() or no_guests():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="dbcluster-test-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        made = Home(Path(name), ["vm", "mariadb-10.11", "haproxy", "sysbench"])
        if "started without root" not in (said := made.guests()):
            pytest.skip(said)
        yield made


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """``called("ps")``: as ``dbcluster ps``, in this process; for commands that leave nothing running."""

    def called(*words: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        try:
            code = command.main(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, said.out, said.err)

    return called


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory of the test's own; what is left in it at the end is ended."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    yield tmp_path / "runs"
    for run in runs.list_runs():
        runs.end(run)


@pytest.fixture
def empty_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The templates of a cache that has none yet; it shares the fetched releases."""
    own = tmp_path / "cache" / "pytest-dbcluster"
    own.mkdir(parents=True)
    (own / "releases").symlink_to(cache.releases())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return own / "templates"


@pytest.fixture
def empty_references(empty_templates: Path, mariadb: Release, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The references of a cache that has none yet; it shares releases and templates."""
    with monkeypatch.context() as patch:
        patch.delenv("XDG_CACHE_HOME")
        shared = cache.root() / "templates"
    empty_templates.symlink_to(shared)
    return empty_templates.parent / "references"
