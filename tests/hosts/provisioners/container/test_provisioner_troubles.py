"""Servers in containers that run out of memory or of disk, are cut off, stall, and are ended in the middle of it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import subprocess

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import NodeDied, ProvisionError
from pytest_dbcluster.hosts import local_host
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support import engines
from tests.support.clusters import bring_up

pytestmark = pytest.mark.skipif(bool(engines.missing()), reason=engines.missing() or "an engine answers")


FULL = "failed with error 28|No space left on device|The table 't' is full"


def left(containers):
    """What the run has in its engine and, but for its network, should not have."""
    with contextlib.closing(engine.connect()) as answering:
        return [name for name in engines.ours(answering, containers.run_id) if name.count("-") > 1]


def test_a_server_without_memory_names_the_limit(containers, imaged, tmp_path, monkeypatch):
    """It dies of SIGKILL, which says nothing; the kernel counts it. Its log is kept, nothing else of the cluster is."""
    monkeypatch.setattr(containers, "logs", KeptLogs(tmp_path / "logs", "test_it"))
    before = left(containers)
    release = imaged("mariadb:10.11")
    spec = ClusterSpec("standalone", release=release.release_name).with_needs(memory="48M")

    with pytest.raises(
        NodeDied, match=r"^node node1 was ended by SIGKILL: the host's memory limit of 48 MiB was rea"
    ) as caught:
        bring_up(spec, release, containers, options={})

    [kept] = (tmp_path / "logs").rglob("error.log")
    assert caught.value.log == str(kept)
    assert kept.stat().st_size
    assert left(containers) == before


# A mount namespace would hide the disk from the engine, which mounts what containers share.
SMALL_DISK = """\
truncate -s 190M disk && mkfs.ext4 -q -m 0 disk && mkdir small && mount -o loop disk small
"""


@pytest.fixture
def small_disk(tmp_path):
    """A directory on a file system of its own, in which a server has place and its tables have not."""
    if os.geteuid() != 0:
        pytest.skip("a file system of one's own takes root")
    made = subprocess.run(["sh", "-c", SMALL_DISK], cwd=tmp_path, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no small file system here: {made.stderr}")
    yield tmp_path / "small"
    subprocess.run(["umount", tmp_path / "small"], check=True)


def fill(node):
    """Write 400 MB."""
    node.query("CREATE DATABASE full")
    node.query("CREATE TABLE full.t (id INT AUTO_INCREMENT PRIMARY KEY, words LONGTEXT)")
    for _ in range(40):
        node.query("INSERT INTO full.t (words) VALUES (REPEAT('0123456789', 1000000))")


def test_a_full_volume_is_named_and_leaves_nothing(small_disk, monkeypatch, imaged):
    """The words are the server's own, and the disk is empty afterwards."""
    release = imaged("mariadb:10.11")
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(small_disk))
    # A redo log with holes would meet the full disk first, and that ends the server.
    monkeypatch.setattr(local_host, "COPY", [word for word in local_host.COPY if not word.startswith("--sparse")])
    made = ContainerProvisioner()
    with contextlib.closing(made):
        (node,) = bring_up(ClusterSpec("standalone", release=release.release_name), release, made, options={}).nodes
        with pytest.raises((SQLError, ProvisionError), match=FULL):
            fill(node)

    assert [path.name for path in small_disk.iterdir() if path.name != "lost+found"] == []
    assert left(made) == []


@pytest.fixture(scope="module")
def galera3(contain):
    """Three nodes."""
    return contain("galera", 3, "mariadb:10.11")


@pytest.mark.thorough
def test_a_partitioned_node_comes_back(galera3):
    """The others stay primary and take writes; healed, it has what was written and the cluster is whole."""
    first, _, third = galera3.nodes

    def size(wanted):
        found = first.status("wsrep_cluster_%")
        return [] if (found["wsrep_cluster_size"], found["wsrep_cluster_status"]) == wanted else [str(found)]

    third.host.partition()
    wait.until(lambda: size(("2", "Primary")), "two nodes", seconds=30)
    first.query("CREATE DATABASE while_apart")

    third.host.heal()
    wait.until(galera3.problems, "three nodes", seconds=60)
    assert third.query("SHOW DATABASES LIKE 'while_apart'") == [("while_apart",)]


@pytest.mark.thorough
def test_a_paused_node_holds_up_the_others(galera3):
    """A writeset needs the word of every member, so a commit waits until the stalled one goes on or is given up."""
    wait.until(galera3.problems, "three nodes", seconds=60)
    first, _, third = galera3.nodes
    third.host.pause()
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            written = threads.submit(first.query, "CREATE DATABASE during_the_pause")
            with pytest.raises(TimeoutError):
                written.result(1)
            third.host.resume()
            assert written.result(30) == []
    finally:
        with contextlib.suppress(ProvisionError):
            third.host.resume()

    wait.until(galera3.problems, "three nodes", seconds=60)
    assert third.query("SHOW DATABASES LIKE 'during%'") == [("during_the_pause",)]
