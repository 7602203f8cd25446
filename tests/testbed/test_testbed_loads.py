"""The real testbed with loads of their own kinds: in an open loop, of fixed time, or one for each variant."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import ConfigError, Inconclusive, SeriesVoid
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.rounds import open_loop
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.rounds.round_length import RoundLength
from pytest_dbcluster.testbed import comparability
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.support.facts import missing
from tests.support.fakes import Idle
from tests.support.testbeds import ONE, OTHER, TWO, WRITE, differing, source

POINTS = SysBench("oltp_point_select", size=1000, threads=1, seconds=0.1, rate="25 %")
CLOSED = ["run steps at None"] * 8  # of two variants: two blocks that warm up, and two that count


@pytest.fixture(autouse=True)
def few_blocks(monkeypatch):
    """Few rounds measure a capacity: it need not be precise."""
    monkeypatch.setattr(open_loop, "BLOCKS", (2, 2))


@dataclasses.dataclass(frozen=True)
class Steps(Idle):
    """A load that takes no time; what it was asked to do is written down. ``lock_wait_timeout`` sets its speed."""

    rate: float | str | None = None
    name: str = "steps"
    metric: str = "goodput"
    done: list[str] = dataclasses.field(default_factory=list, compare=False)
    writes = True
    tables: tuple[str, ...] = ()

    def __str__(self):
        return self.name

    def at_rate(self, rate):
        """The same load."""
        return dataclasses.replace(self, rate=rate)

    def prepare(self, setting):
        """Nothing to make."""
        self.done.append(f"prepare {self.name}")

    def reset(self, setting):
        """Nothing to undo."""

    def run(self, setting):
        """As fast as the variable says in a closed loop, and as asked in an open one."""
        speed = 1000 if setting.cluster.nodes[0].variables()["lock_wait_timeout"] == "40" else 800
        self.done.append(f"run {self.name} at {self.rate}")
        number = speed if self.rate is None else round(self.rate)
        ledger = Ledger({"step": LedgerEntry({1: number}, committed=number, latencies=Histogram.of([0.001] * number))})
        offered = number if self.rate else None
        return RunResult(1.0, number, number, good=number, ledger=ledger, rate=self.rate, offered=offered)

    def violations(self, cluster):
        """None, but it was asked."""
        self.done.append(f"violations of {self.name}")
        return []


def test_a_share_is_measured_before_the_first_round(shared):
    """All variants then run at the same rate, which is said; the tables are prepared once."""
    said, load = [], Steps("70 %")
    made = source(shared, load, ONE, OTHER, progress=said.append)
    rounds = [made.round(number, block=0, position=number) for number in (0, 1)]

    assert load.done[0] == "prepare steps"
    assert load.done[1:] == [*CLOSED, "run steps at 560.0", "run steps at 560.0"]
    assert [one.outcome.rate for one in rounds] == [560.0, 560.0]
    assert made.arrival_rate.capacities == {"standalone1": 800.0, "other": 1000.0}
    share = ("560/s", "70 % of the slowest variant's closed loop", "(standalone1 800/s, other 1000/s)")
    assert missing(said[-1], "steps: open loop: ", *share) == []


def test_a_share_is_lowered_for_all_variants(shared):
    """Once, and it is said with both rates; a rate in operations a second stays."""
    said, load = [], Steps("70 %")
    made = source(shared, load, ONE, OTHER, progress=said.append)
    made.round(0, block=0, position=0)

    assert made.lower_rate("standalone1 fell behind in 3 of 3 rounds", 500.0) is True
    assert said[-1].startswith(f"steps: {made.arrival_rate.line}; ")
    assert missing(said[-1], "all rounds", "again") == []
    assert [made.round(number, block=1, position=0).outcome.rate for number in (0, 1)] == [350.0, 350.0]
    assert made.lower_rate("again", 100.0) is False
    assert source(shared, Steps(500.0), ONE).lower_rate("why", 100.0) is False


def test_the_length_of_rounds_is_that_of_all_variants(shared):
    """Where the test leaves it open; the tables are not made again for it."""
    said, load = [], dataclasses.replace(POINTS, rate=None, seconds=None)
    made = source(shared, load, ONE, OTHER, progress=said.append)
    assert (made.round_seconds, made.free_length) == (None, True)
    made.set_length(RoundLength(0.2))
    rounds = [made.round(number, block=0, position=number) for number in (0, 1)]

    assert [0.19 < done.seconds < 0.9 for done in rounds] == [True, True]
    expected = "expected time of a claim: about 12 s (30 pairs)"
    assert f"{load}: rounds of 0.2 s, chosen from the warm-up; {expected}" in said
    assert sum(rounds[0].outcome.by_tenth) == rounds[0].outcome.good
    assert comparability.tables(load.with_seconds(0.2)) == comparability.tables(load)
    both = {"a": load, "b": dataclasses.replace(load, seconds=0.5)}
    assert source(shared, both, ONE, ONE).round_seconds == 0.5
    assert not source(shared, both, ONE, ONE).free_length
    assert not source(shared, WRITE, ONE).free_length


def test_a_rate_that_was_asked_for_is_run(shared):
    """Nothing has to be measured before."""
    load = Steps(500.0)
    made = source(shared, load, ONE)

    assert made.arrival_rate.rate == 500.0
    assert made.round(0, block=0, position=0).outcome.operations == 500
    assert [step for step in load.done if "run" in step] == ["run steps at 500.0"]


def test_the_share_of_a_rate_is_measured_for_the_first_claim_about_a_tail(shared):
    """Once, and shown; the load keeps its rate, and a claim about its speed needs none of it."""
    said, load = [], Steps(500)
    made = source(shared, load, ONE, OTHER, progress=said.append)
    made.permit("goodput")
    assert load.done == []
    made.permit("p95")
    made.permit("p99")
    made.round(0, block=0, position=0)

    assert [step for step in load.done if "run" in step] == [*CLOSED, "run steps at 500"]
    share = ("500/s, as requested", "62.5 % of the slowest variant's closed loop", "(standalone1 800/s, other 1000/s)")
    assert missing(said[-1], "steps: open loop: ", *share) == []
    assert said[-1] == f"steps: {made.arrival_rate.line}"


def test_a_rate_near_capacity_decides_nothing_about_a_tail(shared):
    """Its share is measured once, and claims stay open with it; one about speed does not, and one beside is shown."""
    load = Steps(600)
    first, second = series_of(Measurement(source(shared, load, ONE, OTHER), Rules(seed=1, cap=8)))
    reason = "600/s was measured to be 75 % of the slowest variant's capacity"

    for answer in (second.beats(first, metric="p95"), ordered(first, second, metric="p95")):
        assert answer.verdict.reason.startswith(reason)
        with pytest.raises(Inconclusive, match=reason):
            bool(answer)
    assert second.against(first, metric="p95")
    assert load.done.count("run steps at None") == len(CLOSED)
    assert second.same_as(first, within=0.1, metric="throughput")


def test_a_share_near_capacity_that_was_asked_for_is_an_error(pool):
    """Nothing has to be measured to know it."""
    first, second = series_of(Measurement(source(pool, Steps("90 %"), ONE, OTHER), Rules(seed=1)))

    with pytest.raises(ConfigError, match=r"^metric 'p95' of steps: at 90 % of the slowest variant's capacity, a tail"):
        second.beats(first, metric="p95")
    assert pool.clusters == []


def test_loads_are_compared_on_one_cluster(pool):
    """Each has its name and its own checks; what the one needs is prepared when its turn comes."""
    done = []
    loads = {name: Steps(name=f"load {name}", done=done) for name in ("one", "all")}
    made = source(pool, loads, ONE, ONE)
    for number in (0, 1, 1):
        made.round(number, block=0, position=0)
    made.check()

    assert (made.names, made.load, made.metric) == (["one", "all"], "load one and load all", "goodput")
    assert done == [
        "prepare load one", "run load one at None", "prepare load all", "run load all at None", "run load all at None",
        "violations of load one", "violations of load all",
    ]  # fmt: skip
    assert len(pool.clusters) == 1
    assert differing(made, 0, 1) == {}


def test_every_load_runs_on_every_cluster(pool):
    """Each pair has its name and its rounds, and variants of one cluster share it for all loads."""
    done = []
    loads = {name: Steps(name=f"load {name}", done=done) for name in ("few", "many")}
    made = source(pool, loads, ONE, OTHER, ONE, OTHER)
    rounds = [made.round(number, block=0, position=number) for number in (0, 1, 3, 2)]
    made.check()

    assert made.names == ["few on standalone1", "few on other", "many on standalone1", "many on other"]
    assert [(drawn.variant, drawn.outcome.operations) for drawn in rounds] == [
        ("few on standalone1", 800), ("few on other", 1000), ("many on other", 1000), ("many on standalone1", 800),
    ]  # fmt: skip
    assert [step for step in done if "run" in step] == ["run load few at None"] * 2 + ["run load many at None"] * 2
    assert len(pool.clusters) == 1


def test_a_load_is_prepared_where_it_runs(pool):
    """A cluster that starts with the data set of another load does not get its tables."""
    small = dataclasses.replace(POINTS, rate=None)
    loads = {"small": small, "large": dataclasses.replace(small, size=2000)}
    made = source(pool, loads, ONE, ONE)
    for number in (0, 1, 0):
        assert made.round(number, block=0, position=number).outcome.operations
    rows = {cluster.nodes[0].query(f"SELECT COUNT(*) FROM {small.tables[0]}")[0][0] for cluster in pool.clusters}

    assert rows == {1000, 2000}


def test_a_tool_that_drops_its_own_table_leaves_none(shared):
    """There is nothing to be compared after the published call of mysqlslap; in quick its table is kept."""
    load = dataclasses.replace(WRITE, iterations=1)
    made = source(shared, load, TWO, profile="paper")
    made.round(0, block=0, position=0)
    made.check()
    assert comparability.tables_to_check([load, POINTS], "paper") == POINTS.tables
    assert comparability.tables_to_check([load, load, POINTS], "quick") == (*load.tables, *POINTS.tables)


def test_tables_that_a_load_leaves_are_compared_between_nodes(shared):
    """In either profile: a row that one node alone has makes the series void."""
    load = dataclasses.replace(POINTS, rate=None)
    profiles = [source(shared, load, TWO, profile=profile) for profile in ("quick", "paper")]
    for made in profiles:
        made.round(0, block=0, position=0)
        made.check()
    cluster = shared.clusters[-1]
    cluster.nodes[1].query("SET SESSION wsrep_on = OFF")
    cluster.nodes[1].query(f"DELETE FROM {load.tables[0]} WHERE id = 1")

    for made in profiles:
        cluster.dirty = ""
        with pytest.raises(SeriesVoid, match=rf"table {load.tables[0]} differs between nodes: "):
            made.check()
    assert cluster.dirty


@pytest.mark.parametrize("metric", ["drained_throughput", "drained_goodput", "drain_seconds"])
def test_a_tool_that_repeats_by_itself_has_no_drain_of_its_own(pool, metric):
    """What drains after the published call is more than what it measured: refused before anything is started."""
    first, second = series_of(Measurement(source(pool, WRITE, ONE, OTHER, profile="paper"), Rules(seed=1)))
    speeds = lambda: second.beats(first, metric=metric), lambda: ordered(first, second, metric=metric)

    for claim in speeds if metric != "drain_seconds" else [lambda: second.lower(metric, than=first)]:
        with pytest.raises(ConfigError) as caught:
            claim()
        assert f"metric {metric!r} of mysqlslap write c2: in the profile paper" in str(caught.value)
    assert pool.clusters == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rate": 500.0}, "one and all cannot be compared: their rate differs (None, 500.0)"),
        ({"metric": "throughput"}, "one and all cannot be compared: their metric differs ('goodput', 'throughput')"),
    ],
)
def test_loads_that_mean_other_things_are_not_compared(pool, changes, words):
    """One figure of each is put into a ratio."""
    with pytest.raises(ConfigError) as caught:
        source(pool, {"a": Steps(name="one"), "b": Steps(name="all", **changes)}, ONE, ONE)
    assert str(caught.value).startswith(words)


def test_sysbench_runs_at_a_share_of_what_real_servers_can_do(shared):
    """Its latencies are claimed and shown in milliseconds, with rate and share, and with what the client took."""
    made = source(shared, POINTS, ONE, OTHER)
    first, second = series_of(Measurement(made, Rules(seed=1, cap=2)))
    answer = second.against(first, metric="p50")

    slowest = min(made.arrival_rate.capacities.values())
    assert slowest > 200
    assert all(one.outcome.rate == pytest.approx(slowest / 4) for one in (*first.rounds, *second.rounds))
    assert all(0 < value < 1e4 for value in first.values("p50"))
    for words in (
        "; medians other ",
        " ms\n  details:\n",
        "\n  open loop: ",
        "(from the intended start)",
        "\n  load generator: other 0.",
    ):
        assert words in answer.message
    assert answer.text == "other against standalone1 (p50)"
