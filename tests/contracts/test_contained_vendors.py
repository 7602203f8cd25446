"""Servers in the layouts of vendors' images and tarballs, in containers: they run, and workloads run beside them."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections import Counter
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxy import query_through
from pytest_dbcluster.clusters.servers import data_template
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.releases.portable import portable_copy
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.workload import Setting
from tests.support import engines, vendor_images, vendor_layouts
from tests.support.clusters import bring_up

LOADS = [
    MySQLSlap("mixed", concurrency=4, queries=40, quick_queries=40, rows=300),
    SysBench("oltp_insert", table_count=1, size=100, threads=2, seconds=0.1),
]
# Image -> (release, files, fixture of the fetched server, plugin directory, whether it has mysqlslap)
IMAGES = {
    "mysql": ("mysql:9.7", vendor_images.mysql_rpms, "mysql", "/usr/lib64/mysql/plugin/", False),
    "percona": ("percona:9.7", vendor_images.percona_rpms, "mysql", "/usr/lib64/mysql/plugin/", True),
    "mysql-tarball": ("mysql:9.7", vendor_images.mysql_tarball, "mysql", "/usr/local/mysql/lib/plugin/", True),
    "mariadb": ("mariadb:10.11", vendor_images.mariadb_packages, "mariadb", "/usr/lib/mysql/plugin/", True),
}
BARE = "mariadb-bare"
ALL = {**IMAGES, BARE: ("mariadb:10.11", vendor_images.mariadb_without_transfers, "mariadb")}

pytestmark = pytest.mark.skipif(bool(engines.missing()), reason=engines.missing() or "an engine answers")


@pytest.fixture(scope="module", autouse=True)
def own_templates(tmp_path_factory):
    """Templates of images that exist only here are not kept in the cache; layouts of the same MySQL share one."""
    own, directory_of = tmp_path_factory.mktemp("templates"), data_template.directory_of

    def shared(release, initial):
        alike = dataclasses.replace(release, image="", bin=Path()) if release.product == "mysql" else release
        return own / directory_of(alike, initial).name

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_template, "directory_of", shared)
        yield


@pytest.fixture(scope="module")
def answering():
    """The engine."""
    with contextlib.closing(engine.connect()) as made:
        yield made


@pytest.fixture(scope="module")
def images(answering, request):
    """``images("mysql")``: the tag of an image in a vendor's layout, which is removed afterwards."""
    made = {}

    def images(name):
        if name not in made:
            _, files, server, *_ = ALL[name]
            release = request.getfixturevalue(server)
            made[name] = vendor_images.make(answering, f"{name}:layout", files(release), release)
        return made[name]

    yield images
    for tag in made.values():
        answering.client.images.remove(tag, force=True)


@pytest.fixture
def containers():
    """``containers(chosen)``: containers with these images, ended afterwards."""
    made = []

    def containers(**how):
        made.append(ContainerProvisioner(**how))
        return made[-1]

    yield containers
    for provisioner in made:
        provisioner.close()


def run_loads(cluster, provisioner, release):
    """Run each load once in a container of its own; returns the operations of each."""
    (client,) = provisioner.acquire(ClusterSpec("standalone", release=release.release_name, name="client"))
    assert client.address not in {host.address for host in cluster.hosts}
    setting, operations = Setting(cluster, client, release, "quick", lambda line: None), []
    for load in LOADS:
        assert load.lacks(release) == ""
        load.prepare(setting)
        operations.append(load.run(setting).operations)
        load.clean(setting)
    return operations


def check(name, tag, cluster, provisioner, release):
    """The servers run with their own files, not by the image's entry point; loads run in another container of it."""
    release_name, _, _, plugins, has_slap = IMAGES[name]
    version, found = cluster.nodes[0].query("SELECT @@version, @@plugin_dir")[0]
    first = cluster.hosts[0].run(["sh", "-c", "cat /proc/1/cmdline"]).stdout

    assert (version.startswith(release.version), found) == (True, plugins)
    assert "docker-entrypoint" not in first
    assert bool(release.path_of("mysqlslap")) == has_slap
    assert all(operations > 0 for operations in run_loads(cluster, provisioner, release))
    assert list(provisioner.environment) == [f"image {release_name}"]
    assert provisioner.environment[f"image {release_name}"].startswith(f"{tag}, sha256:")


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in IMAGES if name != "mysql"])
def test_an_image_of_another_vendor_runs(name, images, containers):
    """As MySQL's image does, which the next test has: a server with its own files, and loads beside it."""
    provisioner = containers(chosen={IMAGES[name][0]: images(name)})
    release = provisioner.supply(ReleaseName.parse(IMAGES[name][0]), print)
    cluster = bring_up(ClusterSpec("standalone", release=release.release_name), release, provisioner, options={})

    check(name, images(name), cluster, provisioner, release)
    cluster.close()


def test_an_image_of_a_vendor_runs_behind_a_router_of_the_cache(images, containers):
    """Its servers have their own files. The image has neither mysqlslap nor a router: both come from the cache.

    Routes lead to the primary and to the other member; the router's container is of the same image.
    """
    provisioner = containers(chosen={"mysql:9.7": images("mysql")})
    release = provisioner.supply(ReleaseName("mysql", "9.7"), print)
    spec = ClusterSpec("group_replication", nodes=2, proxy="mysql_router", release=release.release_name)
    cluster = bring_up(spec, release, provisioner, options={})
    landed = [
        Counter(query_through("test", endpoint, "SELECT @@hostname")[0][0] for _ in range(4))
        for endpoint in (cluster.proxy.writer(), cluster.proxy.reader())
    ]

    assert release.path_of("mysqlrouter") is None
    assert landed == [{"node1": 4}, {"node2": 4}]
    check("mysql", images("mysql"), cluster, provisioner, release)
    cluster.close()


@pytest.mark.thorough
def test_an_image_without_a_backup_program_transfers_state_with_that_of_the_cache(images, containers):
    """A node of Galera that has lost its data gets them again; the programs come from the same series."""
    provisioner = containers(chosen={"mariadb:10.11": images(BARE)})
    release = provisioner.supply(ReleaseName("mariadb", "10.11"), print)
    spec = ClusterSpec("galera", nodes=2, release=release.release_name)
    cluster = bring_up(spec, release, provisioner, options={})
    donor, joiner = cluster.nodes
    donor.query("CREATE DATABASE kept")
    donor.query("CREATE TABLE kept.t (id INT PRIMARY KEY)")
    donor.query("INSERT INTO kept.t VALUES (1), (2)")
    joiner.stop()
    joiner.host.run(["sh", "-c", f"rm -rf {joiner.data}/* {joiner.data}/.[!.]*"])
    offset = joiner.log_size()
    cluster.topology.rejoin(joiner, cluster.nodes)
    wait.until(cluster.problems, "the cluster", seconds=120)

    assert "mariadb-backup" in release.lacks_for_transfers
    assert cluster.topology.how_joined(joiner.log_text(offset)) == "SST"
    assert joiner.query("SELECT id FROM kept.t") == [(1,), (2,)]
    cluster.close()


@pytest.fixture(scope="module")
def tarball(mysql, tmp_path_factory):
    """The fetched server of MySQL in the layout of the vendor's tarball; its copy in the cache ends with it."""
    place = tmp_path_factory.mktemp("unpacked") / "mysql-9.7.4-linux-glibc2.28-x86_64"
    yield vendor_layouts.mysql_tarball(mysql, place)
    shutil.rmtree(portable_copy.entry_of("mysql", place), ignore_errors=True)


def test_a_release_in_a_directory_runs(tarball, containers):
    """Its copy in the cache has its libraries, and the image has only a shell and tools."""
    provisioner, lines = containers(), []
    name = ReleaseName("mysql", "9.7", str(tarball))
    release = provisioner.supply(name, lines.append)
    cluster = bring_up(ClusterSpec("standalone", release=name), release, provisioner, options={})
    tarball.rename(away := tarball.with_name("away"))

    assert release.release_name == name
    assert release.bin.is_relative_to(cache.releases())
    assert cluster.nodes[0].query("SELECT @@version")[0][0].startswith("9.7.")
    assert Path(cluster.nodes[0].query("SELECT @@plugin_dir")[0][0]).is_relative_to(release.bin.parent)
    assert all(operations > 0 for operations in run_loads(cluster, provisioner, release))
    assert lines[0] == f"copying {tarball} with its libraries, for hosts that have another system"
    assert provisioner.environment == {}
    cluster.close()
    away.rename(tarball)


def test_other_containers_of_a_run_keep_their_image(tarball, containers):
    """A run may compare a server in an image with another server in a directory; clients follow their server."""
    if reason := engines.no_image("mariadb:10.11"):
        pytest.skip(reason)
    provisioner = containers()
    copied = provisioner.supply(ReleaseName("mysql", "9.7", str(tarball)), print)
    imaged = provisioner.supply(ReleaseName("mariadb", "10.11"), print)
    hosts = [provisioner.acquire(ClusterSpec("standalone", release=one.release_name))[0] for one in (copied, imaged)]

    assert copied.image != imaged.image
    assert [host.container.image.id for host in hosts] == [copied.image, imaged.image]
    assert dataclasses.replace(copied, directory="").release_name == ReleaseName("mysql", "9.7")
