"""Random events under TPC-C: after each of them the books balance, the cluster is whole, and nothing hangs."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster.events import (
    Alter,
    Backup,
    FailOver,
    FillDisk,
    Isolate,
    Join,
    Kill,
    KillAll,
    KillProxy,
    LargeTransaction,
    LoseHost,
    Nothing,
    Pause,
    PowerCut,
    Promote,
    Restart,
    Rolling,
    Rtt,
    SetOptions,
    SlowDisk,
    SwitchPrimary,
    Upgrade,
)
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system.machine_lock import Turns
from pytest_dbcluster.testbed.events import event_runner
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support import guests

MARIADB, MYSQL = ReleaseName("mariadb", "10.11"), ReleaseName("mysql", "9.7")
PAUSING = TPCC(threads=4, pause=0.05)  # the servers have CPU time left, also for other parts at the same time
HANG = 300  # seconds of one event, from which on it counts as one that hangs
PARTS, EACH = int(os.environ.get("DBCLUSTER_CHAOS", "20")), 10
# A part whose events are in this file is not run again, so a run of hours can be continued.
DONE = Path(os.environ.get("DBCLUSTER_CHAOS_DONE", "reports/chaos/events.jsonl"))


MARIADB_GALERA = ClusterSpec("galera", nodes=3, proxy="haproxy", release=MARIADB)


INDEX, COLUMN = "ALTER TABLE stock ADD INDEX by_quantity (s_quantity)", "ALTER TABLE stock ADD COLUMN s_note CHAR(9)"


def anywhere(coin):
    """An event that every topology can have."""
    return coin.choice([Kill("writer"), Pause("writer", coin.uniform(0.5, 12)), KillAll(), Nothing()])


def of_several(coin):
    """An event of a cluster of several nodes behind a proxy."""
    node = coin.choice(["writer", "other", "node1", "node2"])
    kill = Kill(node, restart=coin.choice([None, "after eviction"]))
    return coin.choice([kill, Pause(node, coin.uniform(0.5, 12)), KillProxy(), anywhere(coin)])


def maintained(coin):
    """What people do to a cluster of several nodes while it serves."""
    drain = coin.random() < 0.5
    rolling = Rolling(coin.choice([Restart(), SetOptions(innodb_io_capacity=500)]), drain=drain)
    change = coin.choice([Alter(INDEX), Alter(COLUMN, method="COPY"), Alter(COLUMN, method="INSTANT")])
    backup = Backup("mysqldump", coin.choice(["writer", "other"]))
    return coin.choice([rolling, LargeTransaction(coin.randint(1000, 30_000)), change, backup])


def of_galera(coin):
    """Also a node that joins, and what only Galera or MariaDB has."""
    change = Alter(INDEX, method=coin.choice(["TOI", "RSU", "pt-osc"]))
    upgrade, backup = Rolling(Upgrade("mariadb:11.8"), drain=True), Backup("mariabackup", "other")
    join = Join(coin.choice(["IST", "SST"]))
    return coin.choice(
        [of_several(coin), of_several(coin), maintained(coin), change, join, coin.choice([upgrade, backup])]
    )


def of_group(coin):
    """Also a planned switch of the primary, and what only a group has."""
    join, backup = Join(coin.choice(["incremental", "clone"])), Backup("clone", "other")
    return coin.choice([of_several(coin), SwitchPrimary("node2", timeout=5), maintained(coin), join, backup])


def of_replicas(coin):
    """Also a planned switch of the primary, its replacement after a kill, and a replica that joins."""
    return coin.choice(
        [of_several(coin), SwitchPrimary(), Kill("writer", then=Promote()), maintained(coin), Join("GTID")]
    )


def of_disk(coin):
    """A slow disk."""
    return SlowDisk(coin.choice(["writer", "other"]), iops=coin.choice([50, 200]), seconds=coin.uniform(0.5, 12))


def of_guest(coin):
    """What only a host with a separate kernel and disk can have."""
    return coin.choice([PowerCut(), FillDisk("writer", coin.uniform(0.5, 12)), anywhere(coin)])


def of_guests(coin):
    """The same on a cluster, of which one host may lose its power alone."""
    node = coin.choice(["writer", "other"])
    return coin.choice([PowerCut(), PowerCut(node), FillDisk(node, coin.uniform(0.5, 12))])


def of_pair(coin):
    """A standby takes over."""
    return coin.choice([FailOver(), Nothing()])


def of_network(coin):
    """An event of hosts that can be cut off from each other."""
    node, seconds = coin.choice(["writer", "other"]), coin.uniform(0.5, 12)
    return coin.choice([Isolate(node, seconds), Isolate(node, seconds, clients=True), LoseHost(node), Rtt(50, seconds)])


def of_far_replicas(coin):
    """The same, and a replica that takes over from a lost host. Without it the load would have no server."""
    event = of_network(coin)
    return LoseHost("writer", then=Promote()) if event == LoseHost("writer") else event


GROUP = ClusterSpec("group_replication", nodes=3, proxy="haproxy", release=MYSQL).with_options(
    group_replication_member_expel_timeout=0
)
ASYNC = ClusterSpec("async_replication", nodes=3, proxy="haproxy", release=MARIADB)
SEMISYNC = ClusterSpec("semisync", nodes=3, proxy="haproxy", release=MARIADB)
IN_GUEST = {"memory": "1G", "disk": "2G"}
CLUSTERS = {
    "galera": (MARIADB_GALERA, of_galera),
    "group": (GROUP, of_group),
    "async": (ASYNC, of_replicas),
    "semisync": (SEMISYNC, of_replicas),
    "standalone": (ClusterSpec("standalone", release=MARIADB), anywhere),
    "galera apart": (MARIADB_GALERA.with_needs(rtt=0).named("galera_apart"), of_network),
    "group apart": (GROUP.with_needs(rtt=0).named("group_apart"), of_network),
    "semisync apart": (SEMISYNC.with_needs(rtt=0).named("semisync_apart"), of_far_replicas),
    "limited": (MARIADB_GALERA.with_needs(iops=20_000).named("limited"), of_disk),
    "guest": (ClusterSpec("standalone", release=MARIADB), of_guest),
    "guests": (MARIADB_GALERA.with_needs(**IN_GUEST, rtt=0).named("guests"), of_guests),
    "pair": (ClusterSpec("drbd", nodes=2, proxy="haproxy", release=MARIADB).with_needs(disk="1G", rtt=0.01), of_pair),
}
IN_GUESTS = {"guest", "guests", "pair"}
KINDS = 4  # of clusters in a part
MOST_VOID = 2  # of the events of a part
PROMISE_NOTHING = {"async"}  # a lost primary may take acknowledged orders with it


@contextlib.contextmanager
def pool_on(provisioner, tmp_path_factory) -> Iterator[Pool]:
    """Clusters of these hosts, which take turns with nobody: no repetition here is a measurement.

    All of them have ended afterwards.
    """
    fragments = tmp_path_factory.mktemp("fragments")
    made = Pool(Resolution(provisioner, fragments=fragments, below={}, progress=lambda line: None))
    made.turns = Turns(None)
    before = programs(provisioner)
    yield made
    made.close()
    left = programs(provisioner).items() - before.items()
    assert not left
    assert [
        thread for thread in threading.enumerate() if thread.name.startswith(("dbcluster-load", "dbcluster-w"))
    ] == []


def programs(provisioner):
    """The servers, proxies and kernels of clusters by number, as the kernel of this machine lists them.

    The guest of the load serves all clusters until the provisioner closes.
    """
    found = {}
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or [""]
        mine = any(f"/{provisioner.run_id}/" in word and "-client/" not in word for word in words)
        if mine and Path(words[0]).name in ("mariadbd", "mysqld", "haproxy", "linux"):
            found[process.pid] = " ".join(words)[:200]
    return found


@pytest.fixture(scope="module")
def pool(provisioner, tmp_path_factory) -> Iterator[Pool]:
    """Clusters of local processes."""
    with pool_on(provisioner, tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="module")
def pool_of(pool, request, tmp_path_factory):
    """The pool of a kind of clusters: guests start when the first of them is drawn."""
    with contextlib.ExitStack() as ends:

        @functools.cache
        def in_guests():
            return ends.enter_context(pool_on(request.getfixturevalue("guests"), tmp_path_factory))

        yield lambda name: in_guests() if name in IN_GUESTS else pool


@contextlib.contextmanager
def watchdog(what):
    """Raise TimeoutError in the block if it takes longer than HANG seconds."""

    def bark(number, frame):
        raise TimeoutError(f"{what} hangs for {HANG} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(HANG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def happen(pool, name, event, seed, load):
    """Let one event happen, and check what it left. Returns its figures."""
    spec, _ = CLUSTERS[name]
    made = EventTestbed(load, event, [pool.resolution.resolve(spec)], pool, "quick", lambda line: None, seed=seed)
    with watchdog(f"{event} on {spec}"):
        done = made.round(0, block=seed, position=0)
        made.check()
    figures = {"cluster": name, "event": str(event), "seed": seed, "void": done.void}
    assert not re.search("did not become whole|before the event ", done.void), figures
    if done.outage and not done.void:
        found = done.outage
        assert found.books.invented == 0, (figures, found)
        assert found.books.lost == 0 or name in PROMISE_NOTHING, (figures, found)
        assert found.books.acknowledged > 0, (figures, found)
        figures |= {"stall": round(found.stall, 3), "lost": found.books.lost, "unknown": found.unknown}
    return figures


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("standalone", Kill("writer")),
        ("standalone", Pause("writer", 0.7)),
        ("async", Kill("writer")),
        ("async", Kill("other")),
        ("galera", Pause("writer", 1.5)),
    ],
    ids=str,
)
def test_a_short_event_loses_no_order(pool, monkeypatch, name, event):
    """Each order is looked for in the tables of the whole cluster."""
    monkeypatch.setattr(event_runner, "BASELINE_SECONDS", 2.0)
    monkeypatch.setattr(event_runner, "JITTER_SECONDS", 1.0)

    assert happen(pool, name, event, seed=1, load=PAUSING)["void"] == ""


def parts_before():
    """The numbers of the parts in DONE."""
    with contextlib.suppress(FileNotFoundError):
        return {json.loads(line)["part"] for line in DONE.read_text().splitlines()}
    return set()


@pytest.mark.chaos
@pytest.mark.parametrize("part", range(PARTS))
def test_no_random_event_loses_an_order_or_hangs(pool_of, part):
    """Clusters, events, nodes and moments are drawn; a cluster serves several events of its part."""
    if part in parts_before():
        pytest.skip(f"part {part} is in {DONE}")
    coin, figures = random.Random(part), []
    kinds = coin.sample([name for name in CLUSTERS if name not in IN_GUESTS or not guests.missing()], KINDS)
    for number, name in enumerate(sorted(coin.choices(kinds, k=EACH))):
        event = CLUSTERS[name][1](coin)
        print(f"event {number + 1} of part {part}: {event} on {name}", flush=True)
        figures.append(happen(pool_of(name), name, event, seed=part * EACH + number, load=PAUSING))
        print(figures[-1], flush=True)
    assert sum(bool(one["void"]) for one in figures) <= MOST_VOID, figures
    DONE.parent.mkdir(parents=True, exist_ok=True)
    with DONE.open("a") as file:
        file.write(json.dumps({"part": part, "events": figures}) + "\n")
