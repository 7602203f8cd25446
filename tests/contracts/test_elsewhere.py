"""A host's paths are opened on the host alone: whole rounds on hosts whose files this machine does not have."""

from __future__ import annotations

import dataclasses
import os

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.kept_logs import KeptLogs
from pytest_dbcluster.rounds import load_generator
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.support import elsewhere
from tests.support.testbeds import ONE, TWO, WRITE, source
from tests.testbed.datasets.words import COUNT, Words


@pytest.fixture(scope="module")
def far():
    """Hosts of other machines; why there can be none is named."""
    if reason := elsewhere.missing():
        pytest.skip(reason)
    made = elsewhere.FarProvisioner()
    yield made
    made.close()


@pytest.fixture
def pool(far, tmp_path):
    """A pool of servers on such hosts, closed afterwards."""
    made = Pool(Resolution(far, fragments=tmp_path, below={}, progress=lambda line: None))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def untouched(far):
    """Nobody may open a path of a host on this machine."""
    with elsewhere.opened() as found:
        yield
    assert found == []


def test_whoever_opens_a_hosts_path_here_is_found():
    """The file does not have to exist."""
    path = f"{elsewhere.ROOT}/dbcluster/error.log"
    with elsewhere.opened() as found:
        assert not os.path.exists(path)  # noqa: PTH110  (a look alone is no event)
        with pytest.raises(FileNotFoundError):
            open(path)  # noqa: PTH123, SIM115

    assert found == [f"open {path}"]


def test_a_program_sees_neither_our_files_nor_what_was_not_brought(far, mariadb):
    """It sees its own directory, and the trees that were brought."""
    (host,) = far.acquire(ONE)
    look = ["sh", "-c", f"ls {mariadb.bin.parent.parent} 2>/dev/null; pwd; ls -A {elsewhere.CHECKOUT}"]

    assert host.run(look).stdout.splitlines() == [host.directory]
    host.bring(mariadb.bin.parent)
    assert host.run(look).stdout.splitlines() == [mariadb.bin.parent.name, host.directory]
    far.give_back([host])


def test_a_lone_server_and_its_loads_run_there(pool):
    """The load generator's programs and cores are those of its host; CPU is that of the machines there."""
    made = source(pool, WRITE, ONE)
    done = made.round(0, block=0, position=0)
    made.check()

    assert done.void == ""
    assert done.outcome.commits == 20
    assert done.samples[load_generator.CORES] == 99.0
    assert {"cpu_node1", "cpu_all", "iowait", "cpu_client"} <= set(done.samples)
    assert not {"steal", "network_bytes"} & set(done.samples)  # the hosts do not count these
    other = source(pool, SysBench("oltp_read_write", size=100, threads=2, seconds=0.2), ONE)
    assert other.round(0, block=0, position=0).outcome.commits > 0


def test_nodes_behind_a_proxy_run_there(pool):
    """The release, the proxy and its health server come along; every node has all rows after the drain."""
    made = source(pool, WRITE, dataclasses.replace(TWO, proxy="haproxy"))
    done = made.round(0, block=0, position=0)
    made.check()

    assert (done.void, done.settled) == ("", True)
    assert {"cpu_node1", "cpu_node2", "drain_seconds"} <= {*done.samples, *done.counters}


def test_data_sets_are_made_there_and_kept_here(pool, tmp_path, monkeypatch):
    """The next cluster starts from a copy."""
    monkeypatch.setattr(datasets, "datasets_directory", lambda: tmp_path / "stored")
    (running,) = pool.running([pool.resolution.resolve(ONE).with_data_set_of(Words())])

    assert running.cluster.nodes[0].query("SELECT COUNT(*) FROM kept.words") == [(COUNT,)]
    assert len(datasets.datasets()) == 1


def test_logs_of_what_failed_there_are_kept_here(pool, far, tmp_path):
    """The message names the copies."""
    far.logs = KeptLogs(tmp_path / "logs")
    with pytest.raises(ProvisionError, match=rf"{tmp_path}/logs/run/"):
        pool.running([pool.resolution.resolve(ONE.with_options(innodb_temp_data_file_path="nonsense"))])

    assert list((tmp_path / "logs").rglob("error.log"))
