"""Running clusters: built once, shared while they are equal, ended when others need their place."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import signal
import threading
import time
import types

import psutil
import pytest

from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.errors import ConfigError, NodeDied, ProvisionError, Unsupported
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.fake import FakeProvisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system.machine_lock import MachineLock, Turns
from pytest_dbcluster.testbed import pool as pools
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from tests.support.facts import missing

ONE = ClusterSpec("standalone", release=ReleaseName("mariadb", "10.11"))


@pytest.fixture
def said():
    """What the pool told."""
    return []


@pytest.fixture
def pool(provisioner, tmp_path, said):
    """A pool of real servers, closed afterwards; one option lies under every cluster."""
    (tmp_path / "site.cnf").write_text("[mysqld]\nmax_connections = 120\n")
    below = cnf_file.read(tmp_path / "site.cnf")
    made = Pool(Resolution(provisioner, fragments=tmp_path, below=below, progress=said.append))
    yield made
    made.close()


def running(pool, *specs, user=None):
    """The running clusters of these specs."""
    return [one.cluster for one in pool.running([pool.resolution.resolve(spec) for spec in specs], user)]


def test_a_proxy_without_its_program_is_said_before_anything_starts(pool, said, monkeypatch):
    """The plan of a comparison already finds out; a misspelt proxy comes before that."""
    monkeypatch.setattr("pytest_dbcluster.clusters.proxies.mysql_router.proxy.router", lambda release: None)

    with pytest.raises(Unsupported, match=r"^no mysqlrouter for mariadb:10\.11: not among its programs"):
        pool.resolution.resolve(dataclasses.replace(ONE, proxy="mysql_router"))
    with pytest.raises(
        ConfigError,
        match=r"^unknown proxy 'mysql_ruoter'; known: haproxy, maxscale, mysql_router, proxysql; did you mean",
    ):
        pool.resolution.resolve(dataclasses.replace(ONE, proxy="mysql_ruoter"))
    assert said == []


def test_equal_specs_share_one_cluster(pool, said):
    """So do those that differ in what a running server can change; it is started once."""
    one, other, switched = running(pool, ONE, ONE.named("again"), ONE.with_options(lock_wait_timeout=40))

    assert one is other is switched
    assert one.spec.short_name == "standalone1"
    assert sum(line.startswith("starting 1 x ") for line in said) == 1
    assert one.nodes[0].variables()["max_connections"] == "120"


def test_a_static_difference_needs_servers_of_its_own(pool):
    """Side by side, and both go on running."""
    one, other = running(pool, ONE, ONE.with_options(innodb_log_file_size="32M"))

    assert one is not other
    assert (one.problems(), other.problems()) == ([], [])


def test_a_dirty_cluster_is_not_used_again(pool):
    """It is ended, and a fresh one takes its place."""
    (old,) = running(pool, ONE)
    old.dirty = "a round ended early"
    (new,) = running(pool, ONE)

    assert new is not old
    assert not old.nodes[0].running
    assert new.problems() == []


class Measurement:
    """Asks a pool for clusters."""


def test_clusters_of_a_dead_supervisor_are_not_used_again(tmp_path, data):
    """Whoever has used them is told; cluster and client host of the next test are new, under another supervisor."""
    with contextlib.closing(LocalProvisioner()) as own:
        lost = Pool(Resolution(own, fragments=tmp_path, below={}, progress=lambda line: None))
        user, other = Measurement(), Measurement()
        (old,) = running(lost, ONE, user=user)
        client = lost.client(old.nodes[0].release)
        process = own._run.client._process  # ``client`` starts another one when this one has ended
        process.kill()
        process.wait(20)
        with pytest.raises(
            ProvisionError, match=r"^cluster standalone1: the supervisor of the local servers .* is gone"
        ):
            running(lost, ONE, user=user)
        (new,) = running(lost, ONE, user=other)

        assert new is not old
        assert new.problems() == []
        assert lost.client(old.nodes[0].release) is not client
        lost.close()


class Several(FakeProvisioner):
    """Two hosts for the load generator."""

    def clients(self, spec):
        """Those of two nodes."""
        return self.acquire(dataclasses.replace(spec, topology="galera", nodes=2))


def test_all_load_hosts_are_taken_anew_when_one_is_lost(tmp_path, mariadb, monkeypatch):
    """They serve the whole run before; the first one is the client. Those that are left are given back."""
    provisioner = Several()
    own = Pool(Resolution(provisioner, fragments=tmp_path, below={}, progress=lambda line: None))
    first = own.clients(mariadb)

    assert [host.name for host in first] == ["node1", "node2"]
    assert own.clients(mariadb) is first
    assert own.client(mariadb) is first[0]
    assert all(host.brought == [*mariadb.trees] for host in first)

    monkeypatch.setattr(first[1], "why_lost", lambda: "gone")
    second = own.clients(mariadb)

    assert not {*first} & {*second}
    assert provisioner.hosts == [first[1], *second]


def test_the_cluster_that_was_used_last_stays_longest(pool):
    """Two run side by side; a third ends the one that was not needed for longer."""
    first, second, third = (ONE.with_options(innodb_log_file_size=size) for size in ("16M", "32M", "48M"))
    (one,), (two,) = running(pool, first), running(pool, second)
    running(pool, first)
    (three,) = running(pool, third)

    assert [cluster.nodes[0].running for cluster in (one, two, three)] == [True, False, True]


def test_what_overrides_the_common_options_is_told_once(pool):
    """However often the spec is used."""
    for _ in range(2):
        pool.resolution.resolve(ONE.with_options(max_connections=99).named("few"))

    (line,) = pool.resolution.overridden
    assert missing(line, "few: ", "max_connections = 99 overrides 120", "--db-cnf") == []


def test_the_kind_of_a_router_is_told_once(tmp_path, provisioner, monkeypatch):
    """Whether its routes are static changes what is measured, and depends on what is installed."""
    monkeypatch.setattr("pytest_dbcluster.clusters.proxies.mysql_router.innodb_cluster.shell", lambda release: None)
    quiet = Pool(Resolution(provisioner, fragments=tmp_path, below={}, progress=print))
    group = ClusterSpec("group_replication", release=ReleaseName("mysql", "9.7"), proxy="mysql_router")
    for _ in range(2):
        quiet.resolution.resolve(group)

    (line,) = quiet.resolution.overridden
    assert missing(line, "mysqlrouter before mysql:9.7: static routes, because") == []


def test_closing_ends_every_cluster(pool):
    """A second time is no error."""
    clusters = running(pool, ONE)
    pool.close()
    pool.close()

    assert [cluster.nodes[0].running for cluster in clusters] == [False]


def test_closing_that_is_interrupted_leaves_no_connection_open(pool, monkeypatch):
    """Over ssh an open one would keep its machine's connection for seconds."""
    clusters = running(pool, ONE, ONE.with_options(innodb_sort_buffer_size=1 << 20))
    nodes = [node for cluster in clusters for node in cluster.nodes]
    for node in nodes:
        node.sql.query("SELECT 1")

    def interrupted(hosts):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pool.provisioner, "give_back", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.close()

    connected = [one for one in psutil.Process().net_connections() if one.status == psutil.CONN_ESTABLISHED]
    ports = {one.raddr.port for one in connected if one.raddr}
    assert not ports & {node.endpoint.port for node in nodes}


def test_wrong_names_are_refused_before_anything_is_fetched_or_started(tmp_path, monkeypatch):
    """Topology and proxy are checked first, then the options."""
    monkeypatch.setattr(find, "find", lambda *_, **__: pytest.fail("nothing is fetched for a wrong name"))
    pool = Pool(Resolution(FakeProvisioner(), fragments=tmp_path, below={}, progress=print))

    with pytest.raises(ConfigError, match=r"^unknown topology 'galara'; known: "):
        pool.resolution.resolve(ClusterSpec("galara", release=ONE.release))
    with pytest.raises(ConfigError, match=r"^unknown proxy 'haprox'; known: .*did you mean haproxy\?$"):
        pool.resolution.resolve(ClusterSpec("galera", proxy="haprox", release=ONE.release))


def test_a_spec_without_a_release_is_refused(pool):
    """The run gives every spec one; whoever calls the pool by hand has to."""
    with pytest.raises(ConfigError) as caught:
        pool.resolution.resolve(ClusterSpec("standalone"))

    assert missing(caught.value, "neither cluster standalone1 nor the run", "a release") == []


def test_too_little_memory_is_said_before_a_server_is_started(pool, monkeypatch, said):
    """It would end a server in the middle of a round."""
    variant = pool.resolution.resolve(ONE)
    memory = types.SimpleNamespace(available=10 * 2**20, total=2**34)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)

    with pytest.raises(Unsupported, match=r"memory for 1 more server: 10 MiB available, "):
        pool.running([variant])
    assert not any(line.startswith("starting") for line in said)


def test_clusters_of_one_comparison_start_side_by_side(pool, said, monkeypatch):
    """Neither waits for the other; each line says which of them it is about."""
    both_began = threading.Barrier(2, timeout=30)
    monkeypatch.setattr(pools, "bring_up", lambda *args, **named: both_began.wait() < 2 and bring_up(*args, **named))
    one, other = running(pool, ONE, ONE.with_options(innodb_log_file_size="32M"))

    assert (one.problems(), other.problems()) == ([], [])
    assert sorted(re.sub(r"\d+\.\d s", "N s", line) for line in said if "ready in" in line) == [
        "standalone of 1 with innodb_log_file_size=32M, max_connections=120 ready in N s",
        "standalone of 1 with max_connections=120 ready in N s",
    ]


def test_memory_has_to_hold_all_that_start_at_once(pool, monkeypatch, said):
    """Each alone would find room before the others have taken theirs."""
    both = [pool.resolution.resolve(ONE), pool.resolution.resolve(ONE.with_options(innodb_log_file_size="32M"))]
    memory = types.SimpleNamespace(available=600 * 2**20, total=2**34)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)

    with pytest.raises(Unsupported, match=r"memory for 2 more servers: 600 MiB available, "):
        pool.running(both)
    assert not any(line.startswith("starting") for line in said)


def test_nobody_is_admitted_before_the_servers_of_another_have_their_memory(pool, provisioner, tmp_path, monkeypatch):
    """Two workers that both saw the same free memory would both take it: the second one is told of what is left."""
    monkeypatch.setattr(pool, "turns", Turns(MachineLock(tmp_path / "machine")))
    second = Pool(Resolution(provisioner, fragments=tmp_path, below={}, progress=print))
    monkeypatch.setattr(second, "turns", Turns(MachineLock(tmp_path / "machine")))
    first, other = pool.resolution.resolve(ONE), second.resolution.resolve(ONE)
    one = dialect(first.release.product, first.release.version).memory
    memory = types.SimpleNamespace(available=one, total=2**34)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    seen = threading.Semaphore(0)
    asking = threading.Thread(target=lambda: seen.acquire(timeout=20) and failed.append(refused(second, other)))
    failed = []

    def start(*args, **named):
        seen.release()
        time.sleep(0.5)  # the other one asks now
        made = bring_up(*args, **named)
        memory.available = 0
        return made

    monkeypatch.setattr(pools, "bring_up", start)
    asking.start()
    pool.running([first])
    asking.join(60)

    assert failed == [0]


def refused(pool, variant):
    """The MiB that were left for these servers."""
    with pytest.raises(Unsupported) as caught:
        pool.running([variant])
    return int(re.search(r"(\d+) MiB available", str(caught.value))[1])


@pytest.fixture
def never_ready(monkeypatch, provisioner):
    """A Galera cluster of which something is always missing; nothing of it may be left. What is done while it waits."""
    deeds = []

    def problems(self, nodes):
        if deeds:
            deeds.pop()()
        return ["not yet"]

    monkeypatch.setattr("pytest_dbcluster.clusters.topologies.galera.Galera.problems", problems)
    yield deeds
    left = runs.Run(provisioner.directory, 0, 0.0, kept=False).processes()
    assert [one.pid for one in left if re.search("-never|/nowhere", " ".join(one.cmdline()))] == []


TWO = ClusterSpec("galera", nodes=2, release=ONE.release, name="never")


def test_a_cluster_that_does_not_start_ends_those_beside_it(pool, never_ready):
    """The error is its own, at once."""
    with pytest.raises(NodeDied, match="nonsense"):
        running(pool, TWO, ONE.with_options(innodb_temp_data_file_path="nonsense"))
    assert pool.clusters == []


def test_ctrl_c_ends_all_that_start_side_by_side(pool, never_ready):
    """It reaches the main thread, and through it the others."""
    never_ready.append(lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        running(pool, TWO, TWO.with_options(innodb_log_file_size="32M").named("never_32M"))
    assert pool.clusters == []
