"""Loaded databases: filled once on a lone server, then what every topology starts from."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import stat
import subprocess
import sys
import types
from pathlib import Path

import pytest

from pytest_dbcluster import cache, filling, runs, store
from pytest_dbcluster.cluster import ready_template
from pytest_dbcluster.errors import ConfigError, Unsupported, WorkloadError
from pytest_dbcluster.laboratory import ClusterLaboratory
from pytest_dbcluster.pool import Pool
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.store import Entry, place_of, stored, surplus
from pytest_dbcluster.workload import Outcome

MARIADB, MYSQL = ReleaseName("mariadb", "10.11"), ReleaseName("mysql", "9.7")
ONE = ClusterSpec("standalone", release=MARIADB)
SUM = "SELECT COUNT(*), SUM(id), SUM(CRC32(word)) FROM kept.words"
COUNT = 1000
ROOT = Path(__file__).parent.parent


@dataclasses.dataclass(frozen=True)
class Words:
    """A table of so many rows. ``done`` is what was asked of it; ``clients`` makes no difference to the table."""

    rows: int = COUNT
    clients: int = 1
    error: BaseException | None = None
    wrong: tuple[str, ...] = ()
    done: list[str] = dataclasses.field(default_factory=list, compare=False)
    writes: bool = False
    tables: tuple[str, ...] = ("kept.words",)

    @property
    def store(self):
        """Its scale."""
        return f"{self.rows} words"

    def fill(self, setting):
        """Make the table, or raise ``error`` in the middle of it."""
        self.done.append("fill")
        node = setting.cluster.writers[0]
        node.query("CREATE DATABASE kept")
        node.query("CREATE TABLE kept.words (id INT PRIMARY KEY, word VARCHAR(40))")
        setting.progress("filling in the words")
        if self.error:
            raise self.error
        values = ",".join(f"({n}, 'word {n}')" for n in range(self.rows))
        node.query(f"INSERT INTO kept.words VALUES {values}")

    def prepare(self, setting):
        """The table is there."""
        self.done.append("prepare")
        assert setting.cluster.writers[0].query("SELECT COUNT(*) FROM kept.words") == [(self.rows,)]

    def violations(self, cluster):
        """What ``wrong`` says."""
        return list(self.wrong)

    def run(self, setting):
        """Takes no time."""
        return Outcome(0.001, 1)


@pytest.fixture(scope="module")
def own_store(tmp_path_factory):
    """A place of stored databases that has none."""
    own = tmp_path_factory.mktemp("cache") / "stored"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "directory", lambda: own)
        yield own


@pytest.fixture
def said():
    """What was told."""
    return []


@pytest.fixture
def pool(own_store, provisioner, tmp_path, said):
    """A pool of real servers, closed afterwards."""
    made = Pool(provisioner, fragments=tmp_path, below={}, progress=said.append)
    yield made
    made.close()


@pytest.fixture
def keep(own_store, provisioner, mariadb, said):
    """``keep(load)``: its tables, filled unless they are there."""
    client = provisioner.acquire(ClusterSpec("standalone", name="client"))[0]
    yield lambda load, **options: stored(load, mariadb, provisioner, client, options, said.append)
    provisioner.release([client])


def started(pool, spec, load):
    """The cluster of a spec that starts with the tables of a load."""
    (running,) = pool.running([pool.variant(spec).holding(load)])
    return running.cluster


def filled(said):
    """How often a server was filled."""
    return sum(line.startswith("filling ") and "once" in line for line in said)


@pytest.mark.parametrize(
    "spec",
    [
        ONE,
        ClusterSpec("galera", nodes=3, release=MARIADB),
        ClusterSpec("async_replication", nodes=2, release=MARIADB),
        ClusterSpec("group_replication", nodes=2, release=MYSQL),
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
    assert any(f"holding {load.store}" in line for line in said)


def test_a_second_cluster_is_not_filled(pool, keep, said):
    """It starts from what was kept; loads with an equal store share one cluster, others and empty ones do not."""
    keep(Words())
    said.clear()
    one = started(pool, ONE, Words())
    same = started(pool, ONE, Words(clients=4))
    empty = started(pool, ONE, object())

    assert filled(said) == 0
    assert one is same
    assert empty is not one
    assert empty.nodes[0].query("SHOW DATABASES LIKE 'kept'") == []


def test_a_laboratory_starts_from_what_is_kept(pool):
    """The load is prepared there all the same, and finds its tables."""
    load = Words()
    ClusterLaboratory(load, [pool.variant(ONE)], pool, "quick", print).round(0, block=0, position=0)

    assert load.done[-1] == "prepare"
    assert load.done.count("fill") <= 1
    assert pool.clusters[0].nodes[0].query(SUM)[0][0] == COUNT


def test_what_is_kept_has_statistics_and_a_small_log(keep):
    """The size is that of an empty server and its tables; only its owner can read it, and it says what it holds."""
    made = keep(Words())
    (entry,) = [one for one in store.entries() if one.holds == f"{COUNT} words" and "mariadb" in one.release]

    assert entry.place == made.data.parent
    assert stat.S_IMODE(entry.place.stat().st_mode) == 0o700
    assert entry.password not in repr(entry)
    assert entry.size == cache.size(made.data) < 130e6
    assert not list(made.data.glob("*binlog*"))


def test_another_scale_shape_or_release_is_kept_apart(mariadb, mysql, provisioner, keep):
    """An option that has no part in how a table lies on disk makes no difference, nor does the load's own."""
    first, second = (ready_template(release, provisioner, {}, print) for release in (mariadb, mysql))
    page = ready_template(mariadb, provisioner, {}, print)
    page = dataclasses.replace(page, data=Path("/mariadb-of-8K-pages/data"))
    places = [
        place_of(Words(), mariadb, first, {}),
        place_of(Words(10), mariadb, first, {}),
        place_of(Words(), mariadb, first, {"innodb_compression_default": "ON"}),
        place_of(Words(), mysql, second, {}),
        place_of(Words(), mariadb, page, {}),
    ]

    assert len(set(places)) == len(places)
    assert place_of(Words(clients=9), mariadb, first, {"lock_wait_timeout": "40"}) == places[0]


def test_an_option_that_shapes_tables_needs_servers_of_its_own(pool, keep):
    """A switch would change nothing about tables that are there."""
    variant = pool.variant(ONE.with_options(innodb_compression_default="ON", lock_wait_timeout=40))
    holding = variant.holding(Words())

    assert variant.static == ()
    assert (holding.static, holding.dynamic) == (
        (("innodb_compression_default", "ON"),),
        (("lock_wait_timeout", "40"),),
    )
    assert variant.holding(object()) is variant


PROGRAM = """\
import sys, time
from pathlib import Path
from pytest_dbcluster import release, store
from pytest_dbcluster.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.store import stored
from tests.test_store import Words

class Waiting(Words):
    store = "words of two"
    def fill(self, setting):
        while not Path(sys.argv[1]).exists():
            time.sleep(0.02)
        super().fill(setting)

store.directory = lambda: Path(sys.argv[2])
hosts = LocalProvisioner()
try:
    client = hosts.acquire(ClusterSpec("standalone", name="client"))[0]
    tell = lambda line: print(line, flush=True)
    print(stored(Waiting(), release.find("mariadb:10.11"), hosts, client, {}, tell).data)
finally:
    hosts.close()
"""


def test_of_two_processes_one_fills_and_the_other_waits(own_store, tmp_path):
    """Both start from the same data, and the second says what it waits for."""
    go = tmp_path / "go"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(go), str(own_store)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(2)
    ]
    first = sorted(process.stdout.readline() for process in both)
    go.touch()
    ends = [process.communicate(timeout=60)[0].splitlines()[-1] for process in both]

    assert first[0].startswith("filling words of two into a lone mariadb:10.11 ")
    assert first[1].startswith("waiting for another process that fills words of two into ")
    assert ends[0] == ends[1]
    assert Path(ends[0]).is_dir()


def test_a_fill_that_fails_leaves_nothing(keep, said, own_store, provisioner):
    """The error names load and release before its own words; the next one fills from the beginning."""
    with pytest.raises(WorkloadError) as caught:
        keep(Words(11, error=WorkloadError("sysbench said no")))

    assert str(caught.value) == "could not fill 11 words into mariadb:10.11: sysbench said no"
    assert not any(entry.holds == "11 words" for entry in store.entries())
    assert [path.name for path in own_store.glob(".*")] == []
    assert list(provisioner.directory.glob("*-filling/*")) == []
    assert keep(Words(11)).data.is_dir()


def test_ctrl_c_while_it_is_filled_leaves_nothing(keep, own_store, provisioner):
    """No server, no data, and no lock: the next one fills at once."""
    with pytest.raises(KeyboardInterrupt):
        keep(Words(16, error=KeyboardInterrupt()))

    assert not any(entry.holds == "16 words" for entry in store.entries())
    assert [path.name for path in own_store.glob(".*")] == []
    assert list(provisioner.directory.glob("*-filling/*")) == []
    left = runs.Run(provisioner.directory, 0, 0.0, kept=False).processes()
    assert [one.pid for one in left if "-filling/" in " ".join(one.cmdline())] == []


def test_what_the_load_itself_finds_wrong_is_not_kept(keep):
    """A tool may end well although it has filled the half."""
    with pytest.raises(WorkloadError, match=r"fails its own check: 3 of 4 words are there; no index$"):
        keep(Words(14, wrong=("3 of 4 words are there", "no index")))

    assert not any(entry.holds == "14 words" for entry in store.entries())


def test_what_a_server_logged_an_error_about_is_not_kept():
    """As it does of a table that is full, to a tool that does not look."""
    cluster = types.SimpleNamespace(logged=lambda: ["node1 logged: [ERROR] The table 'words' is full"])

    with pytest.raises(WorkloadError, match=r"^errors while it was filled: node1 logged: .* is full$"):
        filling.check(Words(), cluster)


def test_a_disk_that_is_too_small_for_what_the_load_expects_is_named(keep, said):
    """Before a server starts, when the load knows."""

    class Large(Words):
        stored_bytes = 10**18

    with pytest.raises(
        Unsupported, match=r"^no room on the disk of /.* to fill 15 words: \d.* GB free, 1000000000.. GB"
    ):
        keep(Large(15))
    assert "ready" not in "".join(said)


def test_a_full_disk_is_named(keep, monkeypatch):
    """With what had been written by then, what is left, and two ways out."""

    class Filling(Words):
        def fill(self, setting):
            monkeypatch.setattr(shutil, "disk_usage", lambda place: types.SimpleNamespace(free=5_000_000))
            super().fill(setting)

    with pytest.raises(WorkloadError) as caught:
        keep(Filling(12, error=WorkloadError("The table 'words' is full")))
    assert "words' is full\nthe disk of /" in str(caught.value)
    assert " is full: 5 MB are left, and the server's data had grown to 1" in str(caught.value)
    assert str(caught.value).endswith("or take another disk with DBCLUSTER_DATA_DIR")


def test_a_cache_on_another_disk_needs_room_too(tmp_path, monkeypatch):
    """What was filled for an hour is not thrown away because it cannot be kept."""
    shared = Path("/dev/shm")
    if shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("/dev/shm and the temporary directory are one file system")
    (tmp_path / "data").mkdir()
    client, made = types.SimpleNamespace(directory=str(shared)), types.SimpleNamespace(data=tmp_path / "data")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "small"))
    free = {str(shared): 10**9}
    usage = lambda place: types.SimpleNamespace(free=free.get(str(place), 5_000_000))  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)

    class Large(Words):
        stored_bytes = 10**8

    with pytest.raises(Unsupported) as caught:
        filling._free(Large(), made, types.SimpleNamespace(client=client))
    assert str(caught.value).startswith(f"no room in the cache {tmp_path}/small/pytest-dbcluster to keep ")
    assert ": 5 MB free, 100 MB needed; " in str(caught.value)
    assert str(caught.value).endswith("or take another disk with XDG_CACHE_HOME")


def test_wrong_input_stays_wrong_input(keep):
    """What the load refuses is not taken for a failure of the server."""
    with pytest.raises(ConfigError, match=r"^warehouses=0 is refused$"):
        keep(Words(13, error=ConfigError("warehouses=0 is refused")))


def test_a_disk_without_room_for_the_copies_is_named_before_a_server_starts(pool, keep, monkeypatch, said):
    """The copies end with their servers, so a place is all they need."""
    keep(Words())
    said.clear()
    usage = types.SimpleNamespace(free=5_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)

    with pytest.raises(Unsupported) as caught:
        started(pool, ONE, Words())
    assert str(caught.value).startswith("no room on the disk of /")
    assert " for 1 copies of loaded tables, which go with their servers: 5 MiB free, " in str(caught.value)
    assert said == []


def test_one_that_was_not_used_for_long_goes_when_another_is_filled(keep, said, own_store):
    """It is told which, and why."""
    place = own_store / "old"
    place.mkdir(parents=True)
    old = {
        "holds": "tpcc of 900 warehouses",
        "release": "mariadb:10.11 10.11.19",
        "size": 10**15,
        "password": "never told",
    }
    (place / store.FILE).write_text(json.dumps(old))
    os.utime(place / store.FILE, (1e9, 1e9))
    keep(Words(17))

    assert not place.exists()
    assert said[-1].startswith("removed tpcc of 900 warehouses of mariadb:10.11 10.11.19 (1000000.0 GB), used ")
    assert said[-1].endswith(" may take a 4th of the disk, and go by when they were used last")


def entry(name, size, used):
    """One that was used so many hours ago."""
    return Entry(Path("/stored") / name, name, "mariadb:10.11", size, 1e9 - 3600 * used, "")


def test_those_used_longest_ago_make_room(said):
    """Until the rest takes a quarter of the disk; the newest stays, and so does what was used within the hour."""
    known = [entry("new", 50, 0.1), entry("old", 10, 50), entry("older", 10, 90), entry("busy", 60, 0.5)]
    newest = known[0].place

    assert [one.holds for one in surplus(known, newest, 350, 1e9)] == ["older"]
    assert [one.holds for one in surplus(known, newest, 0, 1e9)] == ["older", "old"]
    assert surplus(known, newest, 1000, 1e9) == []
    assert surplus(known[:1], newest, 0, 1e9) == []
