"""Servers on machines where we are an ordinary user, and on one that only another machine reaches."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import NodeDied
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from tests.support import stand_ins
from tests.support.clusters import bring_up
from tests.support.stand_ins import PLAIN, StandIns, client_config

pytestmark = [
    pytest.mark.remote,
    pytest.mark.skipif(bool(stand_ins.missing()), reason=stand_ins.missing() or "there can be stand-in hosts"),
]


@contextlib.contextmanager
def cluster_on(machines, spec, config):
    """A cluster on these machines, which ends with the block."""
    hosts = SshProvisioner(machines=machines, config=config)
    try:
        made = bring_up(spec, find.find("mariadb:10.11"), hosts, options={})
        yield made
        made.close()
    finally:
        hosts.close()


def written_everywhere(cluster):
    """Write a row on the first node, and return what each node has of it once the cluster is settled."""
    node = cluster.writers[0]
    node.query("CREATE DATABASE own")
    node.query("CREATE TABLE own.words (id INT PRIMARY KEY, word VARCHAR(20))")
    node.query("INSERT INTO own.words VALUES (1, 'arrived')")
    assert cluster.settle(60), cluster.backlog()
    return [node.query("SELECT word FROM own.words") for node in cluster.nodes]


def written_again(cluster):
    """Kill the last node, start it again, and return what each node then has of a new word."""
    victim = cluster.nodes[-1]
    victim.kill()
    with pytest.raises(NodeDied):
        cluster.problems()
    cluster.topology.rejoin(victim, cluster.nodes)
    wait.until(cluster.problems, "the cluster", seconds=60)
    cluster.writers[0].query("UPDATE own.words SET word = 'again'")
    assert cluster.settle(60), cluster.backlog()
    return [node.query("SELECT word FROM own.words") for node in cluster.nodes]


@pytest.fixture(scope="module")
def three():
    """Three hosts, on each of which is a user who is not root."""
    with StandIns(count=3) as made:
        yield made


@pytest.mark.parametrize("spec", [ClusterSpec("standalone"), ClusterSpec("galera", nodes=3)], ids=str)
def test_an_ordinary_user_has_servers(three, spec):
    """They run as this user, in a directory of his; nothing of them is left, and no lock that keeps others out."""
    names = three.servers[: spec.nodes]
    with cluster_on([f"{PLAIN}@{name}" for name in names], spec, three.config) as cluster:
        assert written_everywhere(cluster) == [[("arrived",)]] * spec.nodes
        for node in cluster.nodes:
            assert not node.host.root
            assert node.host.directory.startswith("/var/tmp/pytest-dbcluster-1000/")
            owners = node.host.run(["sh", "-c", f"stat -c %u /proc/{node.process.inside} {node.data}"]).stdout
            assert owners == "1000\n1000\n"
        assert written_again(cluster) == [[("again",)]] * spec.nodes
    for name in names:
        left = (three[name].root / "var/tmp/pytest-dbcluster-1000").iterdir()
        assert {path.name for path in left} <= {"programs"}
        assert not [words for words in three[name].processes().values() if "mariadbd" in words]
    with cluster_on(names, spec, three.config) as cluster:
        assert [node.host.root for node in cluster.nodes] == [True] * spec.nodes


def test_an_ordinary_user_without_namespaces_has_servers(three):
    """The kernel permits none to him: his programs are known by a mark, and end with their host all the same."""
    host = three["host1"]
    host.write("usr-local-unshare", "#!/bin/sh\nexit 1\n", mode=0o755)
    host.configure("SetEnv PATH=/tmp/first:/usr/local/bin:/usr/bin:/bin")
    (host.root / "tmp/first").mkdir()
    (host.root / "usr-local-unshare").rename(host.root / "tmp/first/unshare")
    try:
        with cluster_on([f"{PLAIN}@host1"], ClusterSpec("standalone"), three.config) as cluster:
            assert written_everywhere(cluster) == [[("arrived",)]]
            (node,) = cluster.nodes
            assert node.process.inside > 10  # in the host's own namespace there are fewer
            assert node.process.cpu_seconds() > 0
            assert written_again(cluster) == [[("again",)]]
        assert not [words for words in host.processes().values() if "mariadbd" in words]
    finally:
        host.configure()


def test_a_machine_behind_another_one_is_reached_by_a_jump(tmp_path):
    """With ProxyJump in ssh's configuration alone: this machine does not reach the address of the second one."""
    with StandIns(count=2, private=True) as hosts:
        second = dataclasses.replace(hosts["host2"], address=hosts["host2"].private_address)
        known = hosts.directory / "known_hosts"
        known.write_text(known.read_text() + f"{second.address} {second.host_key}\n")
        config = tmp_path / "config"
        key = hosts.directory / "key"
        config.write_text(
            client_config(hosts["host1"], key, known) + client_config(second, key, known) + "    ProxyJump host1\n"
        )
        with cluster_on(["host2"], ClusterSpec("standalone"), config) as cluster:
            assert written_everywhere(cluster) == [[("arrived",)]]
            host = cluster.nodes[0].host
            assert host.address == second.private_address
            assert host.run(["hostname"]).stdout == "host2\n"
        assert not [words for words in hosts["host2"].processes().values() if "mariadbd" in words]
        assert [path.name for path in (hosts["host2"].root / "var/tmp").iterdir()] != []
        assert list((hosts["host1"].root / "var/tmp").iterdir()) == []
