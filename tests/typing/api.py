"""What a user's test looks like to mypy and to an editor: this file is checked, never run."""

from __future__ import annotations

from typing import assert_type

from pytest_dbcluster import (
    TPCC,
    Answer,
    CapacitySeries,
    ClusterSpec,
    Curve,
    Effects,
    EventSeries,
    HostNeeds,
    LuaScript,
    Measure,
    MySQLSlap,
    ReleaseName,
    Series,
    SQLFiles,
    SysBench,
    Winner,
    fades,
    ordered,
)
from pytest_dbcluster.events import Alter, Kill, Nothing, Pause, Restart, Rolling, SetOptions, Upgrade

GALERA = ClusterSpec("galera", nodes=3, release=ReleaseName.parse("mariadb:10.11"), needs=HostNeeds(cores=1))
FLUSH_2 = GALERA.with_options(innodb_flush_log_at_trx_commit=2)
AT_ONCE = ClusterSpec("galera", nodes=3, release="mariadb:11.8", options={"innodb_io_capacity": 200, "sql_mode": ""})


def test_claims(measure: Measure) -> None:
    """Each claim about two series gives an answer."""
    default, flush_2 = measure(MySQLSlap("write"), on=[GALERA, FLUSH_2])
    assert_type(default, Series)
    assert_type(flush_2.beats(default, by=0.1), Answer)
    assert_type(flush_2.lower("fsyncs_per_commit", than=default), Answer)
    assert_type(ordered(default, flush_2, step=0.05), Answer)

    assert flush_2.no_slower_than(default, by=0.05, metric="drained_throughput")


def test_race(measure: Measure) -> None:
    """A race gives its winner, and a claim about it."""
    winner = measure.race(SysBench(), on=[GALERA, FLUSH_2, AT_ONCE], by=0.05, metric="drained_goodput")
    assert_type(winner, Winner)
    assert_type(winner.is_(FLUSH_2), Answer)
    assert_type(winner.name, str)

    assert winner.is_("flush_2")


def test_workloads_by_name(measure: Measure) -> None:
    """Two workloads on one cluster are compared too."""
    everywhere, one = measure({name: TPCC(to=name) for name in ("all", "writer")}, on=[GALERA])

    assert one.lower("abort_share", than=everywhere)


def test_workloads_by_name_on_several_clusters(measure: Measure) -> None:
    """Each workload on each cluster is a series."""
    loads = {"few": TPCC(threads=4), "many": TPCC(threads=16)}
    few, few_flush_2, many, many_flush_2 = measure(loads, on=[GALERA, FLUSH_2])
    assert_type(many, Series)

    assert few_flush_2.beats(few)
    assert_type(fades((few, few_flush_2), (many, many_flush_2), by=0.1), Answer)
    assert many_flush_2.beats(many)


def test_events(measure: Measure) -> None:
    """One event on one cluster is a series; several of either are a list."""
    killed = measure.event(TPCC(threads=8), Kill("other"), on=GALERA, times=11)
    assert_type(killed, EventSeries)
    assert_type(killed.below("stall", 8), Answer)
    assert killed.loses_nothing()
    assert_type(killed.returned_by("IST"), Answer)

    usual, quick = measure.event(TPCC(threads=8), Kill("other"), on=[GALERA, FLUSH_2])
    assert_type(quick.shorter("stall", than=usual, seconds=2), Answer)
    paused, none = measure.event(TPCC(), {"pause": Pause("writer", 3), "none": Nothing()}, on=GALERA)
    assert none.shorter("stall", than=paused)
    upgraded = measure.event(TPCC(), Rolling(Upgrade("mariadb:11.8"), drain=True), on=GALERA)
    assert_type(upgraded.below("stall", 8), Answer)
    several = {
        "restart": Rolling(Restart()),
        "set": Rolling(SetOptions(sync_binlog=0)),
        "alter": Alter("ALTER TABLE t FORCE"),
    }
    assert_type(measure.event(TPCC(), several, on=GALERA), list[EventSeries])


def test_options(measure: Measure) -> None:
    """Each option has its effect; a pair that was named has one too."""
    options = {"sync_binlog": (1, 0), "innodb_io_capacity": (200, "2000")}
    pair = ("sync_binlog", "innodb_io_capacity")
    effects = measure.factorial(TPCC(), on=GALERA, options=options, pairs=[pair])
    assert_type(effects, Effects)
    assert_type(effects["sync_binlog"].beats(by=0.05), Answer)
    assert effects[pair].same_as(within=0.1)


def test_capacities(measure: Measure) -> None:
    """Capacities are compared like speeds, and one of them is claimed alone."""
    default, flush_2 = measure.capacity(SysBench(), on=[GALERA, FLUSH_2], p95=0.02)
    assert_type(default, CapacitySeries)
    assert_type(flush_2.beats(default, by=0.1), Answer)
    assert_type(flush_2.meets(p95=0.02, at=2000), Answer)
    assert flush_2.meets(at=2000, times=11)


def test_own_sql(measure: Measure) -> None:
    """Weights and variables replace those of the directory."""
    orders = SQLFiles("shop", transactions=["order.sql@3", "browse.sql"], variables={"customers": 5, "name": "Ann"})
    everywhere, one = measure({"all": orders, "writer": SQLFiles("shop", to="writer", rate="70 %")}, on=[GALERA])

    assert one.no_slower_than(everywhere, by=0.1, metric="p95")


def test_own_lua(measure: Measure) -> None:
    """Options have the types of the script."""
    mine = LuaScript("bench/mine.lua", options={"scale": 1, "use_fk": False, "words": ["a", "b"]}, restore=True)
    default, flush_2 = measure(mine, on=[GALERA, FLUSH_2])

    assert flush_2.beats(default)


def test_curves(measure: Measure) -> None:
    """A sweep is a curve; its points are values with a series for each cluster."""
    curve = measure.sweep(SysBench("oltp_read_only"), on=[GALERA, FLUSH_2], threads=(1, 4, 16))
    assert_type(curve, Curve)

    assert curve.every(lambda one, other: other.same_as(one, within=0.1))
