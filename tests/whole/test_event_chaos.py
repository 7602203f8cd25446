"""Random events under TPC-C: after each of them the books balance, the cluster is whole, and nothing hangs."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_dbcluster.events import (
    Alter,
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
    SlowDisk,
    SwitchPrimary,
)
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.events import event_runner
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support import guests

MARIADB, MYSQL = ReleaseName("mariadb", "10.11"), ReleaseName("mysql", "9.7")
LOAD = TPCC(threads=4)
PAUSING = TPCC(threads=4, pause=0.05)  # the servers have CPU time left
HANG = 300  # seconds of one event, from which on it counts as one that hangs
PARTS, EACH = int(os.environ.get("DBCLUSTER_CHAOS", "20")), 10
# A part whose events are in this file is not run again, so a run of hours can be continued.
DONE = Path(os.environ.get("DBCLUSTER_CHAOS_DONE", "reports/chaos/events.jsonl"))


MARIADB_GALERA = ClusterSpec("galera", nodes=3, proxy="haproxy", release=MARIADB)


def anywhere(coin):
    """An event that every topology can have."""
    return coin.choice([Kill("writer"), Pause("writer", coin.uniform(0.5, 12)), KillAll(), Nothing()])


def of_several(coin):
    """An event of a cluster of several nodes behind a proxy."""
    node = coin.choice(["writer", "other", "node1", "node2"])
    return coin.choice([Kill(node), Pause(node, coin.uniform(0.5, 12)), KillProxy(), anywhere(coin)])


def maintained(coin):
    """What people do to a cluster of several nodes while it serves."""
    rolling, large = Rolling(Restart(), drain=coin.random() < 0.5), LargeTransaction(coin.randint(1000, 30_000))
    return coin.choice([rolling, large, Alter("ALTER TABLE stock ADD INDEX by_quantity (s_quantity)")])


def of_galera(coin):
    """Also maintenance, and a node that joins."""
    return coin.choice([of_several(coin), of_several(coin), maintained(coin), Join(coin.choice(["IST", "SST"]))])


def of_group(coin):
    """Also a planned switch of the primary."""
    return coin.choice([of_several(coin), SwitchPrimary("node2", timeout=5)])


def of_replicas(coin):
    """Also a planned switch of the primary, its replacement after a kill, and maintenance."""
    return coin.choice([of_several(coin), SwitchPrimary(), Kill("writer", then=Promote()), maintained(coin)])


def of_disk(coin):
    """A slow disk."""
    return SlowDisk(coin.choice(["writer", "other"]), iops=coin.choice([50, 200]), seconds=coin.uniform(0.5, 12))


def of_guest(coin):
    """What only a host with a separate kernel and disk can have."""
    return coin.choice([PowerCut(), FillDisk("writer", coin.uniform(0.5, 12)), anywhere(coin)])


def of_pair(coin):
    """A standby takes over."""
    return coin.choice([FailOver(), Nothing()])


def of_network(coin):
    """An event of hosts that can be cut off from each other."""
    node, seconds = coin.choice(["writer", "other"]), coin.uniform(0.5, 12)
    return coin.choice([Isolate(node, seconds), LoseHost(node), Rtt(50, seconds)])


CLUSTERS = {
    "galera": (MARIADB_GALERA, of_galera),
    "group": (
        ClusterSpec("group_replication", nodes=3, proxy="haproxy", release=MYSQL).with_options(
            group_replication_member_expel_timeout=0
        ),
        of_group,
    ),
    "async": (ClusterSpec("async_replication", nodes=3, proxy="haproxy", release=MARIADB), of_replicas),
    "semisync": (ClusterSpec("semisync", nodes=3, proxy="haproxy", release=MARIADB), of_replicas),
    "standalone": (ClusterSpec("standalone", release=MARIADB), anywhere),
    "apart": (MARIADB_GALERA.with_needs(rtt=0).named("apart"), of_network),
    "limited": (MARIADB_GALERA.with_needs(iops=20_000).named("limited"), of_disk),
    "guest": (ClusterSpec("standalone", release=MARIADB), of_guest),
    "pair": (ClusterSpec("drbd", nodes=2, proxy="haproxy", release=MARIADB).with_needs(disk="1G", rtt=0.01), of_pair),
}
IN_GUESTS = {"guest", "pair"}
MOST_VOID = 2  # of the events of a part
PROMISE_NOTHING = {"async"}  # a lost primary may take acknowledged orders with it


@pytest.fixture(scope="module")
def pool(provisioner, tmp_path_factory) -> Iterator[Pool]:
    """Clusters of local processes; all of them have ended afterwards."""
    fragments = tmp_path_factory.mktemp("fragments")
    made = Pool(Resolution(provisioner, fragments=fragments, below={}, progress=lambda line: None))
    yield made
    made.close()
    assert [thread.name for thread in threading.enumerate() if thread.name == "dbcluster-load"] == []


@pytest.fixture(scope="module")
def pool_of(pool, request, tmp_path_factory):
    """The pool of a kind of clusters: guests start when the first of them is drawn."""
    others = []

    def of(name):
        if name in IN_GUESTS and not others:
            provisioner = request.getfixturevalue("guests")
            others.append(
                Pool(
                    Resolution(
                        provisioner, fragments=tmp_path_factory.mktemp("guests"), below={}, progress=lambda line: None
                    )
                )
            )
        return others[0] if name in IN_GUESTS else pool

    yield of
    for made in others:
        made.close()


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


def happen(pool, name, event, seed, load=LOAD):
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
    """Cluster, event, node and moment are drawn; a cluster serves several events of its part."""
    if part in parts_before():
        pytest.skip(f"part {part} is in {DONE}")
    coin, figures = random.Random(part), []
    for number in range(EACH):
        name = coin.choice([name for name in CLUSTERS if name not in IN_GUESTS or not guests.missing()])
        event = CLUSTERS[name][1](coin)
        print(f"event {number + 1} of part {part}: {event} on {name}", flush=True)
        figures.append(happen(pool_of(name), name, event, seed=part * EACH + number))
        print(figures[-1], flush=True)
    assert sum(bool(one["void"]) for one in figures) <= MOST_VOID, figures
    DONE.parent.mkdir(parents=True, exist_ok=True)
    with DONE.open("a") as file:
        file.write(json.dumps({"part": part, "events": figures}) + "\n")
