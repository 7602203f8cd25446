"""What tests of workloads share: hosts for loads, and one warehouse of TPC-C, loaded once for each release."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import filelock
import pytest

from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.workloads.tpcc.workload import TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.support.clusters import bring_up

Loaded = Callable[..., Setting]


@pytest.fixture(scope="module")
def client(provisioner: LocalProvisioner) -> Iterator[Host]:
    """A host for the load."""
    host = provisioner.acquire(ClusterSpec("standalone", name="client"))[0]
    yield host
    provisioner.give_back([host])


@pytest.fixture(scope="module")
def others(provisioner: LocalProvisioner) -> Iterator[tuple[Host, ...]]:
    """Two more hosts for the load."""
    hosts = provisioner.acquire(ClusterSpec("galera", nodes=2, name="clients"))
    yield tuple(hosts)
    provisioner.give_back(hosts)


@pytest.fixture
def said() -> list[str]:
    """The lines of progress of a load."""
    return []


@pytest.fixture(scope="session")
def tpcc_templates(
    provisioner: LocalProvisioner, mariadb: Release, mysql: Release, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Any]]:
    """``tpcc_templates("mysql")``: the data of one warehouse, loaded with two threads on MariaDB and three on MySQL.

    The workers of a run share it: one loads, the others wait for that.
    """
    several = "PYTEST_XDIST_WORKER" in os.environ
    shared = tmp_path_factory.getbasetemp().parent / "tpcc" if several else tmp_path_factory.mktemp("tpcc")
    own, user = shared / "stored", shared / f"user-{os.getpid()}"
    with filelock.FileLock(shared.with_suffix(".lock")):
        shared.mkdir(exist_ok=True)
        user.touch()
    client = provisioner.acquire(ClusterSpec("standalone", name="client"))[0]
    made: dict[str, Any] = {}

    def template(vendor: str) -> Any:
        if vendor not in made:
            release = {"mariadb": mariadb, "mysql": mysql}[vendor]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(datasets, "datasets_directory", lambda: own)
                patch.setattr(os, "cpu_count", lambda: {"mariadb": 2, "mysql": 3}[vendor])
                made[vendor] = datasets.dataset_template(TPCC(), release, provisioner, client, {}, lambda line: None)
        return made[vendor]

    yield template
    provisioner.give_back([client])
    with filelock.FileLock(shared.with_suffix(".lock")):
        user.unlink()
        if not list(shared.glob("user-*")):  # each is a third of a GB, and pytest keeps the files of three runs
            shutil.rmtree(own, ignore_errors=True)


@pytest.fixture(scope="module")
def loaded(
    provisioner: LocalProvisioner, mariadb: Release, mysql: Release, tpcc_templates: Callable[[str], Any]
) -> Iterator[Loaded]:
    """``loaded("mysql", "standalone")``: the setting of a cluster with one fresh warehouse, shared by a module."""
    client = provisioner.acquire(ClusterSpec("standalone", name="client"))[0]
    made: dict[tuple[Any, ...], Cluster] = {}

    def loaded(vendor: str, topology: str = "standalone", nodes: int = 1) -> Setting:
        release, key = {"mariadb": mariadb, "mysql": mysql}[vendor], (vendor, topology, nodes)
        if key not in made:
            spec = ClusterSpec(topology, nodes=nodes)
            made[key] = bring_up(spec, release, provisioner, options={}, start=tpcc_templates(vendor))
        return Setting(made[key], client, release, "quick", lambda line: None)

    yield loaded
    for cluster in made.values():
        cluster.close()
        provisioner.give_back(cluster.hosts)
    provisioner.give_back([client])
