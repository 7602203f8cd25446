"""Tests of pytest_dbcluster.testbed.calibrations."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import math
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.cluster_difference import upper
from pytest_dbcluster.cli.workload_option import workload_of
from pytest_dbcluster.hosts.provisioners.fake import FakeProvisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds import busy_machine, counters, metrics, round_length
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import calibrations
from pytest_dbcluster.testbed.calibrations import DEFAULTS, Calibration, CalibrationKey, Default
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.clusters import variant_of
from tests.support.command import ROOT
from tests.support.facts import missing
from tests.workloads.sql.directories import directory

RELEASE = Release("mariadb:10.11", "mariadb", "10.11.19", Path("/usr/bin"))
GALERA = variant_of(ClusterSpec("galera", nodes=3), RELEASE)
WRITE = MySQLSlap("write")
SHARED = frozenset({"shared-cores"})


def pairs(*values, metric="throughput", noise=0.002):
    """Pairs of clusters that differ so in a metric."""
    return tuple({metric: (value, noise)} for value in values)


PAIRS = pairs(*((-1) ** number * 0.01 for number in range(24)))


@pytest.fixture(autouse=True)
def learning(monkeypatch):
    """These tests calibrate, in caches of their own."""
    monkeypatch.delenv(calibrations.LEARN, raising=False)


@pytest.fixture
def here(monkeypatch, tmp_path):
    """The key of a cluster under a workload, in a cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibrations, "machine", lambda hosts: "2 x CPU, 24.0 GiB")
    return CalibrationKey("2 x CPU, 24.0 GiB", "local", "galera", 3, "mariadb:10.11", "", "mysqlslap:write")


@pytest.fixture
def local():
    """A provisioner of processes of this machine, which starts none."""
    made = LocalProvisioner()
    yield made
    made.close()


def test_a_calibration_replaces_the_default(here, local):
    """It says how many pairs of clusters it rests on, and when they were measured."""
    default = calibrations.of(GALERA, WRITE, local, "throughput")
    assert default.source.startswith("default, measured elsewhere: 12 pairs of clusters")
    assert default.command == (
        "dbcluster calibrate galera --nodes 3 --release mariadb:10.11 --workload mysqlslap:write"
    )
    Calibration(here, PAIRS, "2026-11-22").write()

    found = calibrations.of(GALERA, WRITE, local, "throughput")
    differences = Calibration(here, PAIRS).differences("throughput")
    assert found.log_ratio == pytest.approx(upper(differences, 0.002))
    assert (found.log_ratio < upper(differences), found.command) == (True, "")
    assert found.pairs == 24
    assert missing(found.source, "measured on 24 pairs of clusters", "2026-11-22") == []


@pytest.mark.parametrize(
    "other",
    [
        {"machine": "64 x CPU, 24.0 GiB"},
        {"provisioner": "container"},
        {"topology": "standalone"},
        {"nodes": 2},
        {"release": "mariadb:11.8"},
        {"proxy": "haproxy"},
        {"kind": "mysqlslap:read"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_calibration_of_anything_else_is_not_used(here, local, other):
    """Another machine may share the cache."""
    key = dataclasses.replace(here, **other)
    Calibration(key, PAIRS, "2026-11-22").write()

    assert calibrations.of(GALERA, WRITE, local, "throughput").pairs == DEFAULTS["mysqlslap"]["speed"].pairs
    assert calibrations.read(key).pairs == PAIRS


def test_seven_pairs_of_clusters_are_too_few(here, local):
    """They are kept, and the default holds until the eighth."""
    Calibration(here, PAIRS[:7], "2026-11-22").write()
    assert calibrations.of(GALERA, WRITE, local, "throughput").source.startswith("default, ")

    calibrations.add(here, PAIRS[7])
    found = calibrations.of(GALERA, WRITE, local, "throughput")
    assert (found.pairs, missing(found.source, "measured on 8 pairs of clusters")) == (8, [])


def test_one_calibration_has_every_metric(here, local):
    """Each with the pairs that have it; a metric that it lacks has its default."""
    both = [{"throughput": (0.01, 0.0), "fsyncs_per_commit": (0.2, 0.0)} for _ in range(9)]
    Calibration(here, (*PAIRS, *both), "2026-11-22").write()

    speed, fsyncs, bytes_ = (
        calibrations.of(GALERA, WRITE, local, metric) for metric in ("throughput", "fsyncs_per_commit", "log_bytes")
    )
    assert (speed.pairs, fsyncs.pairs) == (33, 9)
    assert speed.log_ratio < 0.05 < 0.2 <= fsyncs.log_ratio
    assert bytes_.source.startswith("default, ")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"format": 3}', '{"format": 3, "key": {}, "pairs": [{"p95": "x"}], "date": ""}'],
)
def test_a_file_that_is_no_calibration_counts_as_none(here, text):
    """A full disk, another version or another program left it."""
    here.path.parent.mkdir(parents=True)
    here.path.write_text(text)

    assert calibrations.read(here) == Calibration(here)


@pytest.mark.parametrize(
    "change", [{"pairs": [{"throughput": [math.inf, 0.0]}]}, {"pairs": [{"throughput": [0.1]}]}, {"format": 0}]
)
def test_a_calibration_that_is_damaged_counts_as_none(here, change):
    """It decides claims, so nothing in it is guessed."""
    Calibration(here, PAIRS, "2026-11-22").write()
    here.path.write_text(json.dumps(json.loads(here.path.read_text()) | change))

    assert calibrations.read(here) == Calibration(here)


def test_defaults_are_by_kind_of_workload_and_place():
    """The kind in full comes first, then the tool; hosts elsewhere have 10 %."""
    default = functools.partial(calibrations.default, metric="goodput")

    assert default("mysqlslap:write", SHARED) == DEFAULTS["mysqlslap"]["speed"].difference
    assert missing(default("other", SHARED).source, "default, assumed", "kind of workload") == []
    assert math.expm1(default("mysqlslap:write", frozenset()).log_ratio) == pytest.approx(0.10)
    assert missing(default("tpcc", frozenset()).source, "default, assumed", "hosts on other machines") == []


METRICS = (*metrics.NAMES, "goodput:new_order", "p95:new_order")


@pytest.mark.parametrize("offers", [SHARED, frozenset()], ids=["here", "elsewhere"])
@pytest.mark.parametrize("kind", [*sorted(DEFAULTS), "sysbench:oltp_read_write, open loop", "other"])
def test_every_metric_has_a_default(kind, offers):
    """Of each workload, here and elsewhere; a latency's is larger than that of throughput."""
    names = (*METRICS, *(name for name in counters.NAMES if not counters.not_across(name)))
    found = {name: calibrations.default(kind, offers, name).log_ratio for name in names}

    assert min(found.values()) > 0
    assert all(found[name] > found["throughput"] for name in metrics.QUANTILES)
    assert found["goodput:new_order"] == found["goodput"] == found["throughput"]
    assert found["p95:new_order"] == found["p95"]


def test_a_default_says_whether_it_was_measured():
    """With the date, and what it was measured on."""
    measured = Default(0.04, "2026-12-01", "3 nodes on 2 cores", 24).difference

    assert measured.pairs == 24
    source = ("24 pairs of clusters", "3 nodes on 2 cores", "2026-12-01")
    assert missing(measured.source, "default, measured elsewhere: ", *source) == []
    for default in [default for row in DEFAULTS.values() for default in row.values()]:
        assert default.difference.source.startswith("default, measured elsewhere: " if default.pairs else "default, as")


def test_kinds_of_workloads_are_named_as_on_the_command_line():
    """So that what the command measures is what a test looks up."""
    loads = (WRITE, SysBench("oltp_read_write"), TPCC(), TPCC(rate="70 %"))
    kinds = [calibrations.kind_of(load) for load in loads]

    assert kinds == ["mysqlslap:write", "sysbench:oltp_read_write", "tpcc", "tpcc, open loop"]


def test_the_command_of_a_key_calibrates_that_key(here):
    """With its options; a workload of one's own has none."""
    for kind, options in (
        ("tpcc, open loop", "--workload tpcc --open-loop"),
        ("mysqlslap:key", "--workload mysqlslap:key"),
    ):
        key = dataclasses.replace(here, kind=kind)
        assert key.command() == f"dbcluster calibrate galera --nodes 3 --release mariadb:10.11 {options}"
    behind = dataclasses.replace(here, proxy="haproxy", provisioner="container")
    assert behind.command().endswith(" --proxy haproxy --provisioner container")
    assert dataclasses.replace(here, kind="own:load").command() == ""


def test_a_calibration_is_of_the_content_of_files(tmp_path, monkeypatch, local):
    """A changed file needs another one; variables and threads do not. The command names the directory."""
    monkeypatch.chdir(tmp_path)
    path = directory(tmp_path / "bench" / "shop", {})
    whole, many = SQLFiles(path), SQLFiles(path, threads=64, variables={"items": 50})
    some = SQLFiles("bench/shop", transactions=["browse.sql@2"])
    kinds = [calibrations.kind_of(one) for one in (whole, many, some)]
    (path / "browse.sql").write_text("SELECT 1;")
    changed = SQLFiles(path)
    commands = [calibrations.of(GALERA, one, local, "throughput").command for one in (whole, some)]

    assert kinds == [f"sqlfiles:shop{given}@{whole.content_hash}" for given in ("", "", ":browse.sql@2")]
    assert calibrations.kind_of(changed) != kinds[0]
    assert [command.partition("--workload ")[2] for command in commands] == ["bench/shop/", "bench/shop/:browse.sql@2"]
    assert workload_of(whole.option, None).content_hash == changed.content_hash


def test_the_difference_in_the_latency_of_a_statement_is_measured_too():
    """Only in an open loop, as for transactions."""
    statements = {"order:7": Histogram.of([0.01] * 300)}
    ledger = Ledger({"order": LedgerEntry({1: 300}, committed=300, latencies=Histogram.of([0.1] * 300))})
    outcome = RunResult(1.0, 300, good=300, ledger=ledger, rate=300.0, statements=statements)
    rounds = [Round("a", number, 0, outcome, 1.0, 0.0) for number in range(8)]
    closed = [dataclasses.replace(one, outcome=dataclasses.replace(outcome, rate=None)) for one in rounds]

    assert calibrations.rounds_difference(rounds, rounds, "shop")["p95:order:7"] == (0.0, 0.0)
    assert "p95:order:7" not in calibrations.rounds_difference(closed, closed, "shop")


def compared(pool, *options, instances=None, **how):
    """A testbed of one server with each of these options; nothing is started."""
    specs = [ClusterSpec("standalone", release="mariadb:10.11", options=given) for given in options]
    return Testbed(WRITE, [pool.resolution.resolve(spec) for spec in specs], pool, "quick", print, instances=instances)


def test_variants_on_one_cluster_have_no_such_difference(pool):
    """A switch turns it from one to the other; an option that needs a start gives each its own."""
    shared = compared(pool, {}, {"lock_wait_timeout": "40"})
    apart = compared(pool, {}, {"innodb_autoinc_lock_mode": "2"})

    assert shared.cluster_difference(1, 0, metric="throughput") is None
    assert apart.cluster_difference(1, 0, metric="throughput").instances == 1
    assert pool.clusters == []


def test_instances_of_a_variant_share_the_difference(pool):
    """Their mean differs by less."""
    one, four = (compared(pool, {}, {"innodb_autoinc_lock_mode": "2"}, instances=number) for number in (1, 4))

    assert four.cluster_difference(1, 0, metric="throughput").bound == pytest.approx(
        one.cluster_difference(1, 0, metric="throughput").bound / 2
    )


def test_clusters_that_take_turns_have_no_such_difference(pool, monkeypatch):
    """Each turn starts a fresh cluster, so what clusters differ by is part of the interval."""
    monkeypatch.setattr(pool, "room_for_all", lambda variants: False)

    assert compared(pool, {}, {"innodb_autoinc_lock_mode": "2"}).cluster_difference(1, 0, metric="throughput") is None


def test_an_order_has_the_largest_difference_of_its_neighbours(pool):
    """One step on a shared cluster does not excuse the other."""
    three = compared(pool, {}, {"lock_wait_timeout": "40"}, {"innodb_autoinc_lock_mode": "2"})

    assert three.cluster_difference(0, 1, metric="throughput") is None
    assert three.cluster_difference(0, 1, 2, metric="throughput") == three.cluster_difference(1, 2, metric="throughput")


def test_a_calibration_is_of_the_machine_that_the_servers_run_on():
    """Of this one, unless the hosts name another: their figures say nothing about this machine."""

    class Elsewhere(FakeProvisioner):
        @property
        def environment(self):
            return {"cpu": "8 x Neoverse-N1", "memory": "32.0 GiB", "kernel": "6.12"}

    spec = ClusterSpec("galera", nodes=3)
    here, there = (
        CalibrationKey.of_spec(spec, "mariadb:10.11", WRITE, one) for one in (FakeProvisioner(), Elsewhere())
    )

    assert here.machine.startswith(f"{psutil.cpu_count()} x ")
    assert there.machine == "8 x Neoverse-N1, 32.0 GiB"


def drawn(speeds, rounds, instances, **fields):
    """Rounds of a variant whose instances are so fast, in blocks that use them in turn."""
    return [
        Round("a", block, 0, RunResult(1 / speeds[block % instances], 100, 100), 0.0, 0.0, **fields)
        for block in range(rounds)
    ]


@pytest.fixture
def given(here, local):
    """Two variants of Galera on clusters of their own, under writes."""
    apart = variant_of(ClusterSpec("galera", nodes=3).with_options(innodb_buffer_pool_size="1G"), RELEASE)
    other = dataclasses.replace(apart, static=(("innodb_buffer_pool_size", "1G"),))
    return calibrations.Setup([GALERA, other], [WRITE, WRITE], local)


def test_a_run_that_must_not_learn_adds_nothing(given, monkeypatch):
    """The calibrations of a machine stay those that were measured on purpose."""
    monkeypatch.setenv(calibrations.LEARN, "0")

    assert calibrations.learn([drawn((1.0, 1.1), 16, 2)] * 2, 2, given, set()) == 0


def test_instances_of_a_variant_add_their_difference(here, given):
    """Of each variant one pair; the rounds of an instance are those of the blocks that used it."""
    rounds = [drawn((1.0, 1.1), 16, 2), drawn((1.0, 0.9), 16, 2)]

    assert calibrations.learn(rounds, 2, given, set()) == 2
    found = calibrations.read(here)
    assert found.differences("throughput") == pytest.approx([math.log(1.1), math.log(0.9)])
    assert calibrations.read(here).difference("throughput") is None
    assert calibrations.of(GALERA, WRITE, given.provisioner, "throughput").source.startswith("default, ")


def test_a_cluster_is_in_one_pair(here, given):
    """Later measurements on the same clusters add none: pairs are independent. Four instances are two pairs."""
    used = set()

    assert calibrations.learn([drawn((1.0, 1.1, 1.2, 1.3), 32, 4)] * 2, 4, given, used) == 4
    assert calibrations.learn([drawn((1.0, 1.1), 16, 2)] * 2, 2, given, used) == 0
    assert calibrations.read(here).differences("throughput")[:2] == pytest.approx([math.log(1.1), math.log(1.3 / 1.2)])


def test_variants_that_share_their_clusters_add_one_pair(here, local):
    """They ran on the same two."""
    shared = calibrations.Setup([GALERA, GALERA], [WRITE, WRITE], local)

    assert calibrations.learn([drawn((1.0, 1.1), 16, 2)] * 2, 2, shared, set()) == 1


@pytest.mark.parametrize(("rounds", "instances"), [(15, 2), (16, 1), (0, 2)])
def test_few_rounds_and_a_single_instance_add_nothing(here, given, rounds, instances):
    """Less than two opening blocks of an instance say nothing about the noise of its rounds."""
    assert calibrations.learn([drawn((1.0, 1.1), rounds, instances)] * 2, instances, given, set()) == 0
    assert calibrations.read(here).pairs == ()


def test_a_cache_that_cannot_be_written_ends_no_test(here, given, monkeypatch):
    """The claims are answered already."""

    def full(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Calibration, "write", full)
    assert calibrations.learn([drawn((1.0, 1.1), 16, 2)] * 2, 2, given, set()) == 0


def test_a_calibration_keeps_the_latest_pairs(here):
    """What measurements add has a limit."""
    known = Calibration(here, pairs(*[0.01] * calibrations.MOST_PAIRS)).with_pair({"throughput": (0.5, 0.0)})

    assert len(known.pairs) == calibrations.MOST_PAIRS
    assert known.differences("throughput")[-1] == 0.5


def test_what_a_cluster_never_counted_has_no_difference():
    """Neither have statuses of a server, nor latencies of a closed loop; totals of counters are compared."""
    counted = [{"fsyncs": 10.0, "deadlocks": 0.0, "recv_queue_max": 3.0}, {"fsyncs": 11.0, "deadlocks": 2.0}]
    first, second = (drawn((1.0,), 8, 1, counters=values) for values in counted)
    found = calibrations.rounds_difference(first, second, "load")

    assert found["fsyncs"] == pytest.approx((math.log(1.1), 0.0))
    assert found["throughput"] == (0.0, 0.0)
    assert not found.keys() & {"deadlocks", "recv_queue_max", "p95"}


@pytest.mark.usefixtures("empty_references")
def test_real_instances_calibrate_by_themselves(pool, monkeypatch):
    """Two instances of each variant leave a pair of clusters for both, with all metrics; none on a busy machine."""
    monkeypatch.setattr(round_length, "STEPS", 20)  # no round has to repeat its statements for a precise time
    monkeypatch.setattr(calibrations, "LEAST_ROUNDS", 4)  # the pairs need not be precise either
    workload = MySQLSlap("write", concurrency=4, queries=40, rows=50, int_columns=1, char_columns=1)
    specs = [
        ClusterSpec("standalone", release="mariadb:10.11", options=given)
        for given in ({}, {"innodb_autoinc_lock_mode": "2"})
    ]
    variants = [pool.resolution.resolve(spec) for spec in specs]
    measurement = Measurement(Testbed(workload, variants, pool, "quick", print, instances=2), Rules(seed=1))
    while measurement.pairs < 8:
        measurement.drawing.draw((0, 1))
    measurement.drawing.check()

    def calibration_after(share):
        monkeypatch.setattr(busy_machine, "SHARE", share)
        measurement.end()
        return calibrations.read(CalibrationKey.of(variants[0], workload, pool.provisioner))

    assert calibration_after(0.0).pairs == ()
    known = calibration_after(99.0)
    assert len(known.pairs) == 2
    assert calibration_after(99.0) == known
    assert all({"throughput", "fsyncs_per_commit"} <= pair.keys() for pair in known.pairs)


MARGINS = {"no_slower_than": "by", "same_as": "within", "beats": "by", "scales": "at_least"}


def margins_of_the_suites():
    """Each claim about speed in the suites that has a margin: where it stands, and the claim."""
    for path in sorted((ROOT / "suites").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            option = MARGINS.get(node.func.attr)
            for keyword in node.keywords:
                if option and keyword.arg == option:
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    yield where, getattr(kinds, node.func.attr)(ast.literal_eval(keyword.value))


@pytest.mark.parametrize("kind", sorted(calibrations.DEFAULTS))
def test_every_margin_of_the_suites_lies_above_what_equal_clusters_can_differ_by(kind):
    """Also with one instance of each variant: no option that becomes static makes a claim of the suites impossible."""
    difference = calibrations.default(kind, frozenset({"shared-cores"}), "throughput")
    found = list(margins_of_the_suites())

    assert len(found) >= 8
    assert {where: why for where, made in found if (why := difference.refuses(made.kind, made.margins))} == {}
