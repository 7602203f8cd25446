"""Galera on Percona XtraDB Cluster: options, order of starts and statements, and clusters of a stand-in.

No program of PXC was run for these tests.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers import galera_options
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.galera import Galera, recover_position
from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.resolution import Resolution, check_release
from tests.support import golden, pxc_stand_in
from tests.support.clusters import bring_up
from tests.support.facts import missing
from tests.support.sockets import beyond_this_machine, port_watch

PROVIDER = Path("/usr/lib/galera4/libgalera_smm.so")
FILES = frozenset({"/usr/sbin/mysqld"})
PXC = Release("pxc:8.4", "pxc", "8.4.6", Path("/usr/sbin"), wsrep_provider=PROVIDER, files=FILES)


def node_of(number, release=PXC):
    """A node on a host that does nothing."""
    host = FakeHost(f"node{number}", directory=f"/fake/node{number}")
    host.next_port += 10 * number
    return Node(f"node{number}", host, release, 3306, "secret")


def my_cnf(node, options=()):
    """The lines of the node's my.cnf."""
    galera = Galera()
    galera._name = "dbcluster_1"
    node.configure(galera.options(node, [node, node_of(2)]), dict(options))
    return node.host.files[f"{node.host.directory}/my.cnf"].decode()


def test_a_node_starts_with_a_my_cnf_of_pxc():
    """No option that PXC 8 lacks, such as wsrep_on and wsrep_sst_auth; strict mode and encryption are stated."""
    text = my_cnf(node_of(1))

    assert "wsrep_on" not in text
    assert "wsrep_sst_auth" not in text
    golden.compare("galera_pxc", {"my.cnf of a node of pxc:8.4": text})


@pytest.mark.parametrize("on", ["ON", "1"])
def test_a_spec_may_encrypt_the_traffic(on):
    """The spec's option replaces ours; the script of a transfer reads it from the my.cnf, too."""
    text = my_cnf(node_of(1), {"pxc_encrypt_cluster_traffic": on, "pxc_strict_mode": "PERMISSIVE"})

    assert text.count("pxc_") == 3
    assert f"pxc_encrypt_cluster_traffic = {on}\n" in text
    assert "pxc_strict_mode = PERMISSIVE\n" in text


def test_all_variants_have_the_same_settings():
    """A run says once which settings are ours, with those that the spec sets left out; MariaDB has none."""
    mariadb = Release("mariadb:10.11", "mariadb", "10.11.19", Path("/nonexistent"))
    line = Galera().remark(PXC, {})

    assert missing(line, "pxc:8.4", "untried", "pxc_encrypt_cluster_traffic=OFF", "pxc_strict_mode=ENFORCING") == []
    assert "pxc_encrypt" not in Galera().remark(PXC, {"pxc_encrypt_cluster_traffic": "OFF"})
    assert Galera().remark(mariadb, {}) == ""


def test_one_node_is_bootstrapped_and_more_restore_one_component():
    """As with MariaDB: PXC has the same provider, with the same gvwstate.dat."""
    one, nodes = node_of(1), [node_of(number) for number in (1, 2, 3)]
    Galera().form([one])
    Galera().form(nodes)

    assert one.host.spawned[0][-1] == "--wsrep-new-cluster"
    assert all("view_id" in node.host.files[f"{node.data}/gvwstate.dat"].decode() for node in nodes)
    assert all("--wsrep-new-cluster" not in node.host.spawned[0] for node in nodes)


def test_a_position_is_read_with_notes_in_the_log():
    """PXC writes it as a note, in the format of MySQL's log, and a log has no notes by default."""
    node = node_of(1)
    node.host.files[f"{node.data}/grastate.dat"] = b"GALERA saved state\n"
    line = "2026-01-01T00:00:00.000000Z 0 [Note] [MY-000000] [WSREP] Recovered position: 8bcf4a34-aa:17\n"
    node.host.files["/fake/node1/recover.log"] = line.encode()

    assert recover_position(node) == ["--wsrep-start-position=8bcf4a34-aa:17"]
    assert node.host.commands[-1][-3:] == [
        "--wsrep-recover", "--log-error=/fake/node1/recover.log", "--log-error-verbosity=3",
    ]  # fmt: skip


def test_percona_server_is_no_cluster():
    """Even with a Galera library beside it."""
    percona = Release("percona:8.4", "percona", "8.4.6", Path("/x"), wsrep_provider=PROVIDER, source="/opt/x")

    with pytest.raises(Unsupported) as caught:
        check_release(percona, Galera(), None)
    assert missing(caught.value, "percona:8.4 (/opt/x)", "cannot set up the state transfers of percona") == []


@pytest.fixture(scope="module")
def stand_in(mariadb, tmp_path_factory):
    """The stand-in as a release in a directory."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl, which makes the certificates of the stand-in")
    directory = tmp_path_factory.mktemp("pxc")
    with pytest.MonkeyPatch.context() as patch, pxc_stand_in.statements():
        patch.setenv("XDG_CACHE_HOME", str(directory / "cache"))
        yield find.find(f"pxc:8.4={pxc_stand_in.lay_out(directory / 'root', mariadb)}")


@pytest.fixture(scope="module")
def start(stand_in):
    """``start(nodes, **options)``: a cluster of the stand-in."""
    local, made = LocalProvisioner(), []

    def start(nodes, **options):
        made.append(bring_up(ClusterSpec("galera", nodes=nodes), stand_in, local, options=options))
        return made[-1]

    yield start
    for cluster in made:
        cluster.close()
    local.close()


@pytest.fixture(scope="module")
def cluster(start):
    """Three nodes with a table of one row."""
    made = start(3)
    for statement in ("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"):
        made.nodes[0].query(statement)
    return made


def test_the_stand_in_is_found_as_pxc(stand_in):
    """In Percona's layout, with the version that the program prints."""
    assert (stand_in.product, stand_in.version) == ("pxc", "8.4.6")
    assert stand_in.wsrep_provider.parent.name == "galera4"


def test_a_run_notes_our_settings(stand_in, tmp_path):
    """The line is among those that the run shows and keeps at its end; an option of the spec is not in it."""
    local = LocalProvisioner()
    resolution = Resolution(local, fragments=tmp_path, below=None, progress=lambda line: None)
    spec = ClusterSpec("galera", nodes=3, release=ReleaseName.parse(f"pxc:8.4={stand_in.source}"))
    variant = resolution.resolve(spec.with_options(pxc_encrypt_cluster_traffic="ON"), switched=False)
    local.close()

    assert variant.options == {"pxc_encrypt_cluster_traffic": "ON"}
    (line,) = resolution.overridden
    assert missing(line, "pxc:8.4", "untried", "pxc_strict_mode=ENFORCING") == []
    assert "pxc_encrypt_cluster_traffic" not in line


def test_nodes_form_a_cluster_in_words_of_pxc(cluster):
    """Each is Synced, with the usual timers and without encryption; a row reaches all nodes, and tables are equal."""
    assert cluster.settle(60)
    cluster.check(["d.t"])
    assert cluster.problems() == []
    for node in cluster.nodes:
        _, options = galera_options.spread(node.variables())
        health = cluster.topology.health(node, cluster.nodes)
        assert node.query("SELECT a FROM d.t") == [(1,)]
        assert options["evs.keepalive_period"] == "PT1S"
        assert options.get("socket.ssl", "NO") == "NO"
        assert health.writer.items() <= node.pairs(health.statement).items()


def test_only_our_accounts_and_those_of_pxc_are_in_the_template(cluster):
    """The first start without Galera makes ours; root is dropped, and the role of state transfers stays."""
    users = {user for (user,) in cluster.nodes[0].query("SELECT user FROM mysql.user")}

    assert {"dbcluster", "dbcluster_load", "mysql.pxc.sst.role"} <= users
    assert "root" not in users


def test_a_killed_node_joins_from_its_position(cluster):
    """The server is asked for the position first, then PXC's script runs, and the node gets what it has missed."""
    first, *_, last = cluster.nodes
    last.kill()
    first.query("CREATE DATABASE missed")
    cluster.topology.rejoin(last, cluster.nodes)
    wait.until(cluster.problems, "the cluster", seconds=90, poll=0.2)

    assert last.query("SHOW DATABASES LIKE 'missed'") == [("missed",)]
    assert "Recovered position" in last.host.pull(f"{last.host.directory}/recover.log").decode()
    assert "wsrep_sst_xtrabackup-v2 --role 'joiner'" in last.host.pull(last.log).decode()


@pytest.mark.thorough
def test_a_node_without_data_runs_the_script_of_pxc(cluster):
    """The script is found in PATH, with XtraBackup beside it, and listens on no address but the node's."""
    *_, last = cluster.nodes
    port = int(last.query("SELECT @@wsrep_sst_receive_address")[0][0].rpartition(":")[2])
    last.stop()
    shutil.rmtree(last.data)
    Path(last.data).mkdir()
    offset, watch = len(last.host.pull(last.log)), port_watch([last.host], port)
    cluster.topology.rejoin(last, cluster.nodes)

    def problems():
        watch()
        return cluster.problems()

    wait.until(problems, "the cluster", seconds=90, poll=0.2)

    assert last.query("SELECT a FROM d.t") == [(1,)]
    assert "socat" in {port.program for port in watch()}
    assert beyond_this_machine(watch()) == set()
    assert "wsrep_sst_xtrabackup-v2 --role 'joiner'" in last.host.pull(last.log, offset=offset).decode()


def test_nodes_with_encrypted_traffic_have_one_certificate(start):
    """All start from one data directory, so they trust each other."""
    encrypted = start(2, pxc_encrypt_cluster_traffic="ON")

    assert encrypted.problems() == []
    for node in encrypted.nodes:
        assert "socket.ssl = YES" in node.variables()["wsrep_provider_options"]
    certificates = {(Path(node.data) / "server-cert.pem").read_text() for node in encrypted.nodes}
    assert len(certificates) == 1


def test_one_node_is_a_cluster(start):
    """It is bootstrapped."""
    alone = start(1)

    assert alone.nodes[0].status("wsrep_cluster_size") == {"wsrep_cluster_size": "1"}
