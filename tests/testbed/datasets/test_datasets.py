"""Data sets: populated once on one server, then what every topology starts from; what is kept, and how long."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import stat
import types
from pathlib import Path

import pytest

from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProvisioner
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.testbed.datasets import DataSet, directory_of, surplus
from pytest_dbcluster.testbed.testbed import Testbed
from tests.support.facts import missing
from tests.support.fakes import Idle
from tests.testbed.datasets.words import COUNT, Words

MARIADB, MYSQL = ReleaseName("mariadb", "10.11"), ReleaseName("mysql", "9.7")
ONE = ClusterSpec("standalone", release=MARIADB)
SUM = "SELECT COUNT(*), SUM(id), SUM(CRC32(word)) FROM kept.words"


def started(pool, spec, load):
    """The cluster of a spec that starts with the tables of a load."""
    (running,) = pool.running([pool.resolution.resolve(spec).with_data_set_of(load)])
    return running.cluster


def populated(said):
    """How often a data set was populated."""
    return sum(line.startswith("populating ") and "later runs" in line for line in said)


@pytest.mark.parametrize(
    "spec",
    [
        ONE,
        ClusterSpec("galera", nodes=2, release=MARIADB),
        pytest.param(ClusterSpec("async_replication", nodes=2, release=MARIADB), marks=pytest.mark.thorough),
        pytest.param(ClusterSpec("group_replication", nodes=2, release=MYSQL), marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_every_node_of_every_topology_starts_with_the_tables(pool, spec, said):
    """No node is sent them by another, and none has a transaction of its own; what is written then is everywhere."""
    load = Words()
    cluster = started(pool, spec, load)

    assert {node.query(SUM)[0] for node in cluster.nodes} == {cluster.nodes[0].query(SUM)[0]}
    assert cluster.nodes[0].query(SUM)[0][:2] == (COUNT, COUNT * (COUNT - 1) // 2)
    logs = "".join(Path(node.log).read_text() for node in cluster.nodes)
    assert "SST" not in logs.replace("wsrep_sst", "")
    assert "clone" not in logs.lower()
    cluster.writers[0].query("UPDATE kept.words SET word = 'changed' WHERE id = 7")
    cluster.check(load.tables)
    assert any(f"with data set {load.data_set}" in line for line in said)


def test_a_second_cluster_is_not_populated(pool, keep, said):
    """It starts from what was kept; loads with an equal data set share one cluster, others and empty ones do not."""
    keep(Words())
    said.clear()
    one = started(pool, ONE, Words())
    same = started(pool, ONE, Words(clients=4))
    empty = started(pool, ONE, object())

    assert populated(said) == 0
    assert one is same
    assert empty is not one
    assert empty.nodes[0].query("SHOW DATABASES LIKE 'kept'") == []


def test_a_damaged_data_set_is_populated_again(keep, said):
    """A truncated file is named, and the next cluster starts from a whole data set."""
    kept = keep(Words()).data
    said.clear()
    os.truncate(kept / "ibdata1", 1)
    again = keep(Words()).data

    assert again == kept
    assert (kept / "ibdata1").stat().st_size > 1
    assert populated(said) == 1
    assert any(line.startswith(f"{kept.parent} is damaged: data/ibdata1 has 1 byte instead of ") for line in said)


def test_a_testbed_starts_from_what_is_kept(pool):
    """The load is prepared there all the same, and finds its tables."""
    load = Words()
    Testbed(load, [pool.resolution.resolve(ONE)], pool, "quick", print).round(0, block=0, position=0)

    assert load.done[-1] == "prepare"
    assert load.done.count("populate") <= 1
    assert pool.clusters[0].nodes[0].query(SUM)[0][0] == COUNT


def test_what_is_kept_has_statistics_and_a_small_log(keep):
    """The size is that of an empty server and its tables; only its owner can read it, and it says what it holds."""
    made = keep(Words())
    (entry,) = [one for one in datasets.datasets() if one.name == f"{COUNT} words" and "mariadb" in one.release]

    assert entry.path == made.data.parent
    assert stat.S_IMODE(entry.path.stat().st_mode) == 0o700
    assert entry.password not in repr(entry)
    assert entry.size == cache.size(made.data) < 130e6
    assert not list(made.data.glob("*binlog*"))


def test_another_scale_shape_or_release_is_kept_apart(mariadb, mysql, provisioner, keep):
    """An option that has no part in how a table lies on disk makes no difference, nor does the load's own."""
    first, second = (ready_template(release, provisioner, {}, print) for release in (mariadb, mysql))
    page = ready_template(mariadb, provisioner, {}, print)
    page = dataclasses.replace(page, data=Path("/mariadb-of-8K-pages/data"))
    places = [
        directory_of(Words(), mariadb, first, {}),
        directory_of(Words(10), mariadb, first, {}),
        directory_of(Words(), mariadb, first, {"innodb_compression_default": "ON"}),
        directory_of(Words(), mysql, second, {}),
        directory_of(Words(), mariadb, page, {}),
    ]

    assert len(set(places)) == len(places)
    assert directory_of(Words(clients=9), mariadb, first, {"lock_wait_timeout": "40"}) == places[0]


def test_an_option_that_shapes_tables_needs_servers_of_its_own(pool, keep):
    """A switch would change nothing about tables that are there."""
    variant = pool.resolution.resolve(ONE.with_options(innodb_compression_default="ON", lock_wait_timeout=40))
    with_tables = variant.with_data_set_of(Words())

    assert variant.static == ()
    assert (with_tables.static, with_tables.dynamic) == (
        (("innodb_compression_default", "ON"),),
        (("lock_wait_timeout", "40"),),
    )
    assert variant.with_data_set_of(object()) is variant


def test_a_disk_without_room_for_the_copies_is_named_before_a_server_starts(pool, keep, monkeypatch, said):
    """The copies end with their servers, so a place is all they need."""
    keep(Words())
    said.clear()
    usage = types.SimpleNamespace(free=5_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)

    with pytest.raises(Unsupported) as caught:
        started(pool, ONE, Words())
    assert str(caught.value).startswith("no room on the disk of /")
    assert " for 1 temporary copy of data sets: 5 MiB free, " in str(caught.value)
    assert said == []


def test_each_machine_needs_room_for_the_copies_of_its_nodes(tmp_path):
    """The host of the load generator is none of them; its own disk does not matter, and the hosts are given back."""

    class Elsewhere(FakeProvisioner):
        def acquire(self, spec):
            hosts = super().acquire(spec)
            for number, host in enumerate(hosts):
                host.machine, host.free = f"10.0.0.{number % 2}", 10**9 * (number + 1)
            return hosts

    provisioner, client = Elsewhere(), FakeHost("client")
    client.machine, client.free = "10.0.0.9", 0
    spec = ClusterSpec("galera", nodes=3)
    with datasets.disks(provisioner, client, [(spec, 100), (ClusterSpec("standalone"), 50)]) as found:
        assert [(disk.host.free_bytes(), disk.copies, disk.needed) for disk in found] == [
            (10**9, 3, 250),
            (2 * 10**9, 1, 100),
        ]
        assert str(found[1]) == "the disk of /fake/1/node2 on 10.0.0.1"
        assert len(provisioner.hosts) == 4
    assert provisioner.hosts == []


def test_one_that_was_not_used_for_long_goes_when_another_is_made(keep, said, own_data_sets):
    """It is told which, and why."""
    place = own_data_sets / "old"
    place.mkdir(parents=True)
    old = {
        "holds": "tpcc of 900 warehouses",
        "release": "mariadb:10.11 10.11.19",
        "size": 10**15,
        "password": "never told",
    }
    (place / datasets.FILE).write_text(json.dumps(old))
    os.utime(place / datasets.FILE, (1e9, 1e9))
    keep(Words(17))

    assert not place.exists()
    assert said[-1].startswith("removed tpcc of 900 warehouses of mariadb:10.11 10.11.19 (1000000.0 GB), used ")
    assert "may use a 4th of the disk" in said[-1]


@pytest.fixture
def surplus_one(tmp_path, monkeypatch):
    """A directory of data sets with one that is to make room, and how it is asked to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(datasets, "datasets_directory", lambda: tmp_path / "stored")
    place = datasets.datasets_directory() / "old"
    (place / "data").mkdir(parents=True)
    said = {"holds": "words", "release": "mariadb:10.11", "size": 10**15, "password": "never told"}
    (place / datasets.FILE).write_text(json.dumps(said))
    os.utime(place / datasets.FILE, (1e9, 1e9))
    return place


def test_one_that_somebody_holds_makes_no_room(surplus_one, said):
    """Its lock is held by whoever starts from it; there is another day."""
    with cache.lock(datasets.lock_name(surplus_one), progress=print):
        datasets._make_room(Path("newest"), said.append)
    kept = surplus_one.exists()
    datasets._make_room(Path("newest"), said.append)

    assert (kept, surplus_one.exists(), len(said)) == (True, False, 1)


def test_one_that_was_used_meanwhile_makes_no_room(surplus_one, said, monkeypatch):
    """Another process has started from it after it was looked at."""

    def used(*asked):
        found = surplus(*asked)
        os.utime(surplus_one / datasets.FILE)
        return found

    monkeypatch.setattr(datasets, "surplus", used)
    datasets._make_room(Path("newest"), said.append)

    assert surplus_one.exists()
    assert said == []


def test_one_whose_removal_is_interrupted_is_none(surplus_one, said, monkeypatch):
    """Nobody starts from its half; the next one that makes room removes the rest."""

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            datasets._make_room(Path("newest"), said.append)

    assert datasets.read_dataset(surplus_one) is None
    assert datasets.datasets() == []
    datasets._make_room(Path("newest"), said.append)
    assert list(surplus_one.parent.iterdir()) == []


def test_what_was_populated_counts_although_there_is_no_room_to_be_made(surplus_one, said, monkeypatch):
    """Of what cannot be removed each is told, and the next one is tried; an hour's work is not thrown away for it."""
    other = surplus_one.with_name("older")
    shutil.copytree(surplus_one, other)
    os.utime(other / datasets.FILE, (9e8, 9e8))
    lock = cache.root() / "locks" / f"{datasets.lock_name(other)}.lock"
    lock.mkdir(parents=True)  # which even root cannot write
    datasets._make_room(Path("newest"), said.append)

    assert (other.exists(), surplus_one.exists(), len(said)) == (True, False, 2)
    assert said[0].startswith(
        f"could not remove old data sets in {datasets.datasets_directory()}: cannot take the lock {lock}"
    )
    assert said[1].startswith("removed words of mariadb:10.11 ")

    def fail(place):
        raise OSError(errno.ESTALE, "Stale file handle", str(place))

    monkeypatch.setattr(cache, "sweep", lambda parent: {parent / ".removed-mysql-1-a1": "6 GB are left of mysql-1"})
    monkeypatch.setattr(shutil, "disk_usage", fail)
    datasets._make_room(Path("newest"), said.append)
    assert said[2] == "6 GB are left of mysql-1"
    assert "Stale file handle" in said[3]


def test_populating_ends_well_although_there_is_no_room_to_be_made(keep, said, own_data_sets, monkeypatch):
    """What it made is what clusters start from."""

    def fail(parent):
        raise ProvisionError("no room today")

    monkeypatch.setattr(cache, "sweep", fail)
    made = keep(Words(18))

    assert made.data.is_dir()
    assert missing(said[-1], "could not remove", f"data sets in {own_data_sets}: no room today") == []


def entry(name, size, used):
    """One that was used so many hours ago."""
    return DataSet(Path("/stored") / name, name, "mariadb:10.11", size, 1e9 - 3600 * used, "")


def test_those_used_longest_ago_make_room(said):
    """Until the rest takes a quarter of the disk; the newest stays, and so does what was used within the hour."""
    known = [entry("new", 50, 0.1), entry("old", 10, 50), entry("older", 10, 90), entry("busy", 60, 0.5)]
    newest = known[0].path

    assert [one.name for one in surplus(known, newest, 350, 1e9)] == ["older"]
    assert [one.name for one in surplus(known, newest, 0, 1e9)] == ["older", "old"]
    assert surplus(known, newest, 1000, 1e9) == []
    assert surplus(known[:1], newest, 0, 1e9) == []


CACHED = """SELECT COUNT(DISTINCT page_number) FROM information_schema.innodb_buffer_page
WHERE table_name = '`kept`.`words`' AND index_name = 'PRIMARY'"""


def test_reading_whole_tables_fills_the_cache_of_a_server(pool):
    """After a start it has none of the pages that only rounds read; afterwards it has them all."""
    (node,) = started(pool, ONE, load := Words(rows=20_000)).nodes
    ((before,),) = node.query(CACHED)
    said = []
    datasets.read_whole([types.SimpleNamespace(nodes=[node], spec=ONE)], load.tables, said.append)
    ((after,),) = node.query(CACHED)

    ((leaves,),) = node.query(
        "SELECT stat_value FROM mysql.innodb_index_stats WHERE table_name = 'words' AND stat_name = 'n_leaf_pages'"
    )
    assert before < leaves / 2
    assert after >= leaves
    (line,) = said
    assert missing(line, "reading all data", ONE, "caches") == []


SHARED = ONE.with_options(lock_wait_timeout=40).named("shared")  # a running server can be switched to it
OWN = ONE.with_options(innodb_log_buffer_size="32M").named("own")


@pytest.mark.parametrize(
    ("specs", "read"),
    [([OWN, ONE, SHARED], ["own and standalone1"]), ([ONE, OWN], []), ([ONE, SHARED], [])],
    ids=["one of its own, two share", "each of its own", "all share"],
)
def test_a_cluster_with_more_variants_is_not_the_warmer_one(pool, said, specs, read):
    """Where some clusters run more variants than others, all read all data once, at once, before the first round."""
    on = [pool.resolution.resolve(spec) for spec in specs]
    made = Testbed(Words(), on, pool, "quick", said.append)
    for block in range(2):
        for number in range(len(on)):
            made.round(number, block=block, position=number)

    lines = [line for line in said if line.startswith("reading all data of ")]
    assert len(lines) == len(read)
    assert missing("\n".join(lines), *read) == []


def test_testbeds_continue_each_other_where_the_load_alone_differs(pool, said):
    """On the same clusters with the same data set; not with other tables or servers, nor without a data set."""

    def made(load, *specs, **more):
        return Testbed(load, [pool.resolution.resolve(spec) for spec in specs], pool, "quick", said.append, **more)

    first = made(Words(), ONE, SHARED)
    assert made(Words(clients=4), ONE, SHARED).continues(first)
    assert not made(Words(rows=COUNT + 1), ONE, SHARED).continues(first)
    assert not made(Words(), ONE, OWN).continues(first)
    assert not made(Words(), ONE, SHARED, instances=2).continues(first)
    assert not made(Idle(), ONE, SHARED).continues(made(Idle(), ONE, SHARED))
