"""Bringing clusters up, what goes wrong then, and what a running one says of itself. Real servers throughout."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import types

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.errors import CommandFailed, NodeDied, NodeStopped, ProvisionError, Unsupported
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.hosts.provisioner import NO_DISKS
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up
from tests.support.facts import missing

ONE = ClusterSpec("standalone")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A separate run, so that tests can check that nothing is left behind."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    made = LocalProvisioner()
    yield made
    made.close()


@pytest.fixture
def template(own, mariadb):
    """Make the template first: with an empty cache, making it would take a port before the cluster does."""
    ready_template(mariadb, own, {}, print)


@pytest.fixture
def taken_port(own, monkeypatch):
    """The first port that the run chooses: another program listens there, as if it had come in the meantime."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = [taken.getsockname()[1]]
        take = own._run.ports.take
        monkeypatch.setattr(own._run.ports, "take", lambda: ports.pop() if ports else take())
        yield taken.getsockname()[1]


def left_of(provisioner):
    """The remaining processes and directories of a run."""
    from pytest_dbcluster.hosts.runs import Run

    processes = Run(provisioner.directory, 0, 0.0, kept=False).processes()
    return processes, [path for path in provisioner.directory.glob("*/*") if path.is_dir()]


@pytest.mark.usefixtures("template")
def test_a_taken_port_is_given_up_for_others(own, mariadb, taken_port):
    """If another program takes a port before the server starts, the whole start is repeated."""
    said = []
    cluster = bring_up(ClusterSpec("async_replication", nodes=2), mariadb, own, options={}, progress=said.append)

    assert cluster.problems() == []
    assert cluster.nodes[0].port != taken_port
    assert "another program took a port; trying other ports (attempt 1 of 3 failed)" in said
    cluster.close()


@pytest.mark.usefixtures("empty_templates", "taken_port")
def test_a_template_gives_a_taken_port_up_too(own, mariadb):
    """The template's server also retries with another port; a partly made directory is not reused."""
    said = []
    made = ready_template(mariadb, own, {}, said.append)

    assert made.data.is_dir()
    assert "another program took a port; trying other ports (attempt 1 of 3 failed)" in said
    assert left_of(own) == ([], [])


@pytest.mark.usefixtures("template")
def test_ports_that_are_always_taken_end_in_an_error(own, mariadb, monkeypatch):
    """After three attempts the error has the server's own message."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(own._run.ports, "take", lambda: taken.getsockname()[1])
        with pytest.raises(NodeDied, match="Address already in use"):
            bring_up(ONE, mariadb, own, options={})
    assert left_of(own) == ([], [])


def test_the_log_of_a_server_that_did_not_start_stays(own, mariadb, tmp_path):
    """The error log's last lines say why the server refuses an option, and the message names the copy of that log.

    The copy lies in the results: it is there after the cluster and its files are gone.
    """
    own.logs = KeptLogs(tmp_path / "logs", "test_it")
    with pytest.raises(NodeDied) as caught:
        bring_up(ONE, mariadb, own, options={"sql_mode": "NONSENSE"})

    kept = tmp_path / "logs" / "test_it" / "standalone1" / "node1" / "error.log"
    assert str(caught.value).startswith("node node1 ended with ")
    assert "Error while setting value 'NONSENSE' to 'sql_mode'" in str(caught.value)
    assert caught.value.log == str(kept)
    assert f"error log ({kept}):" in str(caught.value)
    assert "NONSENSE" in kept.read_text()
    assert "sql_mode = NONSENSE" in kept.with_name("my.cnf").read_text()
    assert left_of(own) == ([], [])


def test_a_value_that_the_server_changes_is_said(own, mariadb):
    """A server that silently rounds a value starts, and one line has both values."""
    said = []
    cluster = bring_up(ONE, mariadb, own, options={"key_cache_block_size": "1000"}, progress=said.append)
    cluster.close()
    own.give_back(cluster.hosts)

    assert said[-1].startswith("mariadb:10.11 was started with key_cache_block_size=1000 and runs with 512")
    assert left_of(own) == ([], [])


def test_a_data_directory_that_cannot_be_made_says_why(own, mariadb, empty_templates):
    """The same for options that are fixed when a template is made, such as a system tablespace that is too small."""
    with pytest.raises(ProvisionError) as caught:
        bring_up(ONE, mariadb, own, options={"innodb_data_file_path": "ibdata1:1M"})

    assert str(caught.value).startswith("could not make the data template of mariadb:10.11: ")
    assert "InnoDB" in str(caught.value)
    assert "tablespace" in str(caught.value).lower()
    assert left_of(own) == ([], [])
    assert [path for path in empty_templates.glob("*") if path.is_dir()] == []


@pytest.fixture
def small_disk(tmp_path, monkeypatch):
    """A file system of 4 MiB for the data of a run."""
    place = tmp_path / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=4m", "dbcluster-test", str(place)]
    if os.geteuid() != 0:
        pytest.skip("a small file system needs root to mount it")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(place))
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_named(small_disk, mariadb):
    """The error says that there is no space left and where; what had been copied is removed."""
    local = LocalProvisioner()
    try:
        with pytest.raises(ProvisionError, match=rf"cp .*{small_disk}.*No space left on device"):
            bring_up(ONE, mariadb, local, options={})
        assert left_of(local) == ([], [])
    finally:
        local.close()
    assert list(small_disk.glob("*")) == []


def test_a_disk_that_is_full_from_the_start_is_named(small_disk, mariadb):
    """The run's own file cannot be written either."""
    (small_disk / "filler").write_bytes(bytes(4 * 2**20))

    with pytest.raises(ProvisionError, match=r"No space left on device; set DBCLUSTER_DATA_DIR to another directory$"):
        LocalProvisioner().acquire(ONE)


def test_what_the_provisioner_lacks_is_said_before_anything_starts(own, mariadb, monkeypatch):
    """The error names the topology, its need, that this provisioner lacks it, and which one has it."""
    monkeypatch.setattr(
        "pytest_dbcluster.clusters.topologies.standalone.Standalone.needs", frozenset({"block-devices"})
    )

    with pytest.raises(Unsupported) as caught:
        bring_up(ONE, mariadb, own, options={})
    assert missing(caught.value, "standalone needs block-devices", "does not offer", NO_DISKS) == []


def test_a_load_on_a_stopped_server_ends_with_the_name_of_the_node(own, mariadb):
    """The load would wait for ever: its connection stays open. The end of the cluster does not wait for the server."""
    cluster = bring_up(ONE, mariadb, own, options={})
    (host,), (node,) = cluster.hosts, cluster.nodes
    node.process.signal(signal.SIGSTOP)
    with pytest.raises(CommandFailed, match="was ended by SIGKILL"), cluster.ending_loads([host]):
        host.run(["sleep", "600"], seconds=300)
    with pytest.raises(NodeStopped, match=r"^node node1 does not answer: a signal has stopped its server"):
        cluster.load_failure("the load ended", "")

    began = time.monotonic()
    node.stop(seconds=300)
    assert not node.running
    assert time.monotonic() - began < 100


def test_a_statement_to_a_stopped_server_ends_long_before_its_limit(own, mariadb):
    """With the name of the node: somebody looks at the process while the statement waits."""
    cluster = bring_up(ONE, mariadb, own, options={})
    (node,) = cluster.nodes
    node.process.signal(signal.SIGSTOP)
    wait.until(lambda: [] if node.process.is_stopped() else ["it runs"], "all its threads to stop", seconds=60)
    began = time.monotonic()
    with pytest.raises(NodeStopped, match="node1"):
        node.query("SELECT 1", 3600)
    with pytest.raises(NodeStopped, match="node1"):
        node.wait_answering(3600)

    assert time.monotonic() - began < 100
    cluster.close()
    assert not node.running


def test_a_statement_ends_with_the_supervisor(own, mariadb):
    """Whoever has started the servers is gone, and they with it: no answer comes."""
    cluster = bring_up(ONE, mariadb, own, options={})
    (node,) = cluster.nodes
    node.query("SELECT 1")
    own._run.client._process.kill()
    with pytest.raises(ProvisionError, match=r"the supervisor of the local servers .* is gone"):
        node.query("SELECT SLEEP(600)", 3600)


@pytest.mark.parametrize(
    ("lost", "said"),
    [(["", "guest node2 has ended"], "guest node2 has ended"), (["", ""], ""), (["gone", "gone"], "")],
)
def test_one_lost_host_among_others_is_named(lost, said):
    """All are lost at once when their supervisor dies, which ends a measurement."""
    hosts = [types.SimpleNamespace(why_lost=lambda why=why: why) for why in lost]

    assert Cluster.lost_host.fget(types.SimpleNamespace(hosts=hosts)) == said


def test_close_is_no_error_when_everything_is_gone_already(own, mariadb):
    """Closing is no error even after the supervisor and its servers were killed."""
    import psutil

    cluster = bring_up(ONE, mariadb, own, options={})
    supervisor = psutil.Process(cluster.nodes[0].process.pid).parent()
    supervisor.kill()
    wait.until(
        lambda: [] if not supervisor.is_running() or supervisor.status() == "zombie" else ["alive"], "x", seconds=5
    )

    cluster.close()
    cluster.close()
