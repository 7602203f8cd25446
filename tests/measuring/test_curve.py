"""Curves: a load at several values of a field, with a claim at each of them."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import ClaimFailed, ConfigError, Inconclusive
from pytest_dbcluster.measuring import curve
from pytest_dbcluster.measuring.curve import Curve, Drawn, Point, ReleaseCurve
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from tests.support import golden
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy

SLAP = MySQLSlap("write", queries=64)


@dataclasses.dataclass(frozen=True)
class Load:
    """A load that has threads."""

    threads: int = 1

    def __str__(self):
        return f"load of {self.threads}"


def sweep(*faster, sd=0.05, **rules):
    """A curve whose second variant is so many times as fast at 1, 2, 4, ... threads."""
    made = []
    for place, ratio in enumerate(faster):
        source = FakeSource(("one", "other"), noisy(1.0, 1 / ratio, sd=sd), load=f"load of {2**place}")
        made.append(Point(2**place, Measurement(source, Rules(**{"seed": 7, **rules}))))
    return Curve(Load(), "threads", made)


def test_a_test_claims_at_each_value():
    """The value comes first, then a series for each cluster."""
    seen = []
    for threads, one, other in sweep(2.0, 3.0):
        assert other.beats(one)
        seen.append((threads, one.name, other.name))

    assert seen == [(1, "one", "other"), (2, "one", "other")]


def test_a_curve_draws_nothing_by_itself():
    """Neither when it is declared nor when it is walked along."""
    made = sweep(2.0, 3.0)
    series = [one for _, *several in made for one in several]

    assert [len(one.rounds) for one in series] == [0] * 4


def test_every_point_is_asked_before_the_first_answer_counts():
    """One that fails in the middle loses no other; the text has its message, and counts all."""
    made = sweep(2.0, 0.5, 3.0)
    every = made.every(lambda one, other: other.beats(one))
    assert repr(every) == "<every threads of load: 1: holds, 2: refuted, 4: holds>"

    with pytest.raises(ClaimFailed) as caught:
        bool(every)
    head, first, *_ = str(caught.value).splitlines()
    assert missing(head, "load at 3 values of threads", "2 hold", "1 refuted") == []
    assert first.startswith("threads=2: REFUTED: other is not faster than one; measured ")
    assert all(answer.read for point in made.points for answer in point.measurement.claims.answers)


def test_a_curve_that_holds_everywhere_is_true():
    """And only that."""
    assert bool(sweep(2.0, 3.0).every(lambda one, other: other.beats(one))) is True


def test_an_open_point_opens_the_curve():
    """It is neither a pass nor a failure."""
    every = sweep(9.0, 1.0, sd=0.2, cap=12).every(lambda one, other: other.beats(one))

    with pytest.raises(
        Inconclusive, match=r"(?s)^load at 2 values of threads: 1 holds, 1 inconclusive\nthreads=2: INC"
    ):
        bool(every)


def test_a_failure_weighs_more_than_an_open_point():
    """The failed one is shown first."""
    every = sweep(1.0, 0.5, cap=12).every(lambda one, other: other.beats(one))

    with pytest.raises(ClaimFailed, match=r"(?s)\nthreads=2: REFUTED: .*\nthreads=1: INCONCLUSIVE: "):
        bool(every)


def test_a_point_that_was_not_drawn_opens_the_curve_and_loses_no_other():
    """The run's time was used before it: a claim that failed at another point still fails."""
    made = sweep(0.5, 3.0, run_over=lambda: "no time" if made.points[0].measurement.pairs >= 12 else "")
    every = made.every(lambda one, other: other.beats(one))
    assert repr(every) == "<every threads of load: 1: refuted, 2: inconclusive>"

    with pytest.raises(ClaimFailed) as caught:
        bool(every)
    head, first, *_, last = str(caught.value).splitlines()
    assert missing(head, "load at 2 values of threads", "1 refuted", "1 inconclusive") == []
    assert first.startswith("threads=1: REFUTED: ")
    assert missing(last, "threads=2: load of 2: ", "no time", "nothing was drawn") == []

    made = sweep(3.0, 3.0, run_over=lambda: "no time" if made.points[0].measurement.pairs >= 12 else "")
    with pytest.raises(Inconclusive, match=r"^load at 2 values of threads: 1 holds, 1 inconclusive\nthreads=2: load"):
        bool(made.every(lambda one, other: other.beats(one)))


def test_what_is_shown_beside_opens_nothing():
    """A comparison that claims nothing is true at each point."""
    assert sweep(1.0, 1.0, sd=0.3).every(lambda one, other: other.against(one))


def test_every_takes_a_claim():
    """A lambda that asserts, or that returns whether it held, has lost what is to be shown."""
    with pytest.raises(ConfigError, match=r"^curve.every accepts a function that returns one claim, .* returned None$"):
        sweep(2.0).every(lambda one, other: None)


def test_drawing_claims_nothing():
    """As many rounds at each point as were asked for; what a claim has drawn is among them."""
    made = sweep(2.0, 3.0)
    for threads, one, other in made:
        if threads == 1:
            other.beats(one)
    made.draw(3)

    assert [point.measurement.pairs for point in made.points] == [12, 3]
    assert [point.measurement.source.checks for point in made.points] == [1, 1]
    assert [len(point.measurement.claims.answers) for point in made.points] == [1, 0]


@pytest.mark.parametrize(("asked", "drawn"), [(1, 1), (3, 3), (4, 4), (5, 8), (13, 13)])
def test_drawing_takes_whole_openings_from_four_rounds_on(asked, drawn):
    """Fewer rounds are drawn one by one, in a random order that is drawn anew for each of them."""
    made = sweep(2.0)
    made.draw(asked)

    assert made.points[0].measurement.pairs == drawn


def alike(made, seconds=1.0):
    """The curve with rounds of given seconds, at points that run on the same clusters and data set."""
    for point in made.points:
        source = point.measurement.source
        source.round_seconds = seconds
        source.continues = lambda other: True
    return made


def warm_ups(made):
    """The number of warm-up rounds at each point."""
    return [sum(block < 0 for _, block, _ in point.measurement.source.rounds) for point in made.points]


def test_clusters_that_are_warm_are_not_warmed_up_again():
    """The next point differs in the load alone. Without given seconds its warm-up is needed to choose them."""
    made = alike(sweep(2.0, 3.0, 4.0))
    made.draw(3)
    assert [number > 0 for number in warm_ups(made)] == [True, False, False]

    made = alike(sweep(2.0, 3.0), seconds=None)
    made.draw(3)
    assert [number > 0 for number in warm_ups(made)] == [True, True]

    made = sweep(2.0, 3.0)
    made.draw(3)
    assert [number > 0 for number in warm_ups(made)] == [True, True]


def test_clusters_are_checked_once_where_all_points_run_on_them():
    """After the last point, which has what all of them have left. Else after each."""
    made = alike(sweep(2.0, 3.0, 4.0))
    made.draw(3)

    assert [point.measurement.source.checks for point in made.points] == [0, 0, 1]


def test_each_point_is_told_when_it_is_drawn():
    """With all points before it, so that whoever saves the curve then has them all."""
    made = sweep(2.0, 3.0)
    told = []
    made.point_drawn = lambda drawn: told.append([point.measurement.pairs for point in drawn.points])
    made.draw(2)

    assert told == [[2, 0], [2, 2]]


def test_a_point_that_an_earlier_run_has_drawn_is_not_drawn_again():
    """Also where that run was killed at a later point. A point with too few rounds is drawn again, from its start."""
    before = sweep(2.0, 3.0, 4.0)
    before.draw(3)
    rounds = [[series.rounds for series in series_of(point.measurement)] for point in before.points]
    made = sweep(2.0, 3.0, 4.0)
    made.earlier = Drawn(0, [rounds[0], [of_variant[:2] for of_variant in rounds[1]], [(), ()]])
    made.draw(3)

    assert made.kept == [1]
    assert [len(point.measurement.source.rounds) > 0 for point in made.points] == [False, True, True]
    assert [[len(series.rounds) for series in both] for _, *both in made] == [[3, 3]] * 3
    assert made.drawn == 3


def test_what_its_budget_has_ended_counts_as_drawn():
    """Where the whole curve was drawn by a run that asked for as much."""
    before = sweep(2.0)
    before.draw(3)
    rounds = [[series.rounds[:2] for series in series_of(point.measurement)] for point in before.points]
    made = sweep(2.0)
    made.earlier = Drawn(3, rounds)
    made.draw(3)

    assert made.untouched


def test_a_curve_is_shown_relative_to_one_of_its_variants():
    """The name of the variant is noted; another one is an error that lists those there are."""
    made = sweep(2.0)
    made.draw(1, relative_to="other")
    assert made.baseline == "other"

    with pytest.raises(ConfigError, match=r"unknown variant of the curve 'none'; known: one, other"):
        sweep(2.0).draw(1, relative_to="none")


@pytest.mark.parametrize("blocks", [0, -1, 1.5, True])
def test_drawing_takes_a_number_of_blocks(blocks):
    """One or more."""
    with pytest.raises(ConfigError, match=r"it draws 1 round of each variant or more at each point$"):
        sweep(2.0).draw(blocks)


@pytest.mark.parametrize("name", ["threads", "concurrency"])
def test_the_number_of_clients_has_two_names(name):
    """A load has the one or the other, and a sweep finds it."""
    assert curve.loads(Load(), {name: (1, 4)}) == ("threads", [(1, Load(1)), (4, Load(4))])
    field, loads = curve.loads(SLAP, {name: (1, 4)})

    assert field == "concurrency"
    assert [load.concurrency for _, load in loads] == [1, 4]


def test_a_sweep_can_go_over_any_field():
    """By its name."""
    assert [load.rows for _, load in curve.loads(SLAP, {"rows": [100, 1000]})[1]] == [100, 1000]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "measure.sweep(load, on=[...], threads=(1, 4, 16)) accepts one field, got none"),
        (
            {"rows": [1], "queries": [1]},
            "measure.sweep(load, on=[...], threads=(1, 4, 16)) accepts one field, got rows,",
        ),
        ({"row": [1]}, "unknown field of mysqlslap write c50 'row'; known: mode, concurrency, "),
        ({"rows": []}, "measure.sweep(..., rows=[]) accepts a list of values, each value once"),
        ({"rows": 5}, "measure.sweep(..., rows=5) accepts a list of values, each value once"),
        ({"rows": (5, 5)}, "measure.sweep(..., rows=(5, 5)) accepts a list of values, each value once"),
        ({"concurrency": (1, 0)}, "mysqlslap concurrency=0: it accepts 1 or more"),
    ],
)
def test_a_wrong_sweep_is_refused_before_anything_starts(given, words):
    """The error says what it takes."""
    with pytest.raises(ConfigError) as caught:
        curve.loads(SLAP, given)
    assert str(caught.value).startswith(words)


@dataclasses.dataclass(frozen=True)
class Shop:
    """A workload with two variables."""

    variables: tuple[tuple[str, int], ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "variables", tuple(dict(self.variables).items()))

    def names_in(self, field):
        """The keys of ``variables``."""
        return ("customers", "products") if field == "variables" else None


def test_a_sweep_can_go_over_one_variable_of_a_workload():
    """The curve has the name of the variable; other given variables keep their values."""
    field, loads = curve.loads(Shop({"products": 7}), {"variables": {"customers": (1000, 100000)}})

    assert field == "customers"
    assert [value for value, _ in loads] == [1000, 100000]
    assert [dict(load.variables) for _, load in loads] == [
        {"products": 7, "customers": 1000},
        {"products": 7, "customers": 100000},
    ]


@pytest.mark.parametrize(
    ("load", "given", "words"),
    [
        (Shop(), {"customrs": (1, 2)}, "unknown key of variables of Shop(variables=()) 'customrs'; known: customers, "),
        (Shop(), {"customers": 5}, "measure.sweep(..., customers=5) accepts a list of values, each value once"),
        (Shop(), {}, 'measure.sweep(..., variables={"key": (1, 2)}) accepts one key, got none'),
        (Shop(), {"a": (1,), "b": (1,)}, "accepts one key, got a, b"),
    ],
)
def test_a_wrong_sweep_over_variables_is_refused(load, given, words):
    """A mistyped variable would change nothing."""
    with pytest.raises(ConfigError) as caught:
        curve.loads(load, {"variables": given})
    assert words in str(caught.value)


def test_a_field_without_keys_has_no_sweep_over_one():
    """Only a workload that names the keys of a field has one."""
    with pytest.raises(ConfigError, match="accepts a list of values"):
        curve.loads(SLAP, {"rows": {"a": (1, 2)}})


def test_points_whose_loads_are_called_alike_say_their_value():
    """Rows are not part of a name, so claims about two tables would be told apart by nothing."""
    field, several = curve.loads(SLAP, {"rows": (100, 1000)})
    assert curve.names(field, several) == ["mysqlslap write c50 rows=100", "mysqlslap write c50 rows=1000"]

    field, several = curve.loads(SLAP, {"concurrency": (1, 4)})
    assert curve.names(field, several) == ["mysqlslap write c1", "mysqlslap write c4"]


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (["mysqlslap write c1", "mysqlslap write c4"], "mysqlslap write"),
        (["mysqlslap write c50 rows=1", "mysqlslap write c50 rows=5"], "mysqlslap write c50"),
        (["sysbench x t4 at 70 % to all", "sysbench x t4 at 50 % to all"], "sysbench x t4 to all"),
        (["tpcc w2 t4", "tpcc w2 t4 at 100/s"], "tpcc w2 t4"),
        (["tpcc w2 t4"], "tpcc w2 t4"),
        (["t1", "t4"], "Load"),
        (["Load(threads=1, rows=5)", "Load(threads=4, rows=5)"], "Load"),
    ],
)
def test_the_title_of_a_curve_is_what_its_points_share(names, title):
    """None of them is named in it; loads whose names begin with what is swept have that of their class."""
    points = [Point(n, Measurement(FakeSource(("a",), noisy(1.0), load=one), Rules(1))) for n, one in enumerate(names)]

    assert Curve(Load(), "threads", points).load == title


@pytest.mark.parametrize("load", ["load", None, MySQLSlap])
def test_only_a_workload_is_swept(load):
    """A name is none, nor is its class."""
    with pytest.raises(ConfigError) as caught:
        curve.loads(load, {"threads": (1, 2)})
    assert str(caught.value).endswith(f"accepts a workload, such as SysBench(), got {load!r}")


def test_values_that_have_no_hash_are_refused_as_others():
    """A list is no number of threads."""
    with pytest.raises(ConfigError, match=r"^mysqlslap concurrency=\[1\]: it accepts a whole number, 1 or more$"):
        curve.loads(SLAP, {"concurrency": ([1], [2])})


def test_every_without_a_claim_shows_how_it_is_written():
    """As every public call does."""
    with pytest.raises(ConfigError) as caught:
        sweep(2.0).every()
    assert "missing a required argument: 'claim'" in str(caught.value)
    assert str(caught.value).endswith("curve.every(lambda slow, fast: fast.beats(slow))")


@pytest.mark.parametrize("claim", [lambda one: one, lambda one, other, third: one, lambda: None])
def test_a_claim_takes_a_series_for_each_cluster(claim):
    """Else no point is measured."""
    made = sweep(2.0)
    with pytest.raises(
        ConfigError, match=r"^curve\.every accepts a function of 2 series, one for each cluster, such as "
    ):
        made.every(claim)
    assert made.points[0].measurement.pairs == 0


def test_golden_errors_of_sweeps():
    """They are those of the golden file."""
    nothing = sweep(2.0)
    golden.compare(
        "sweep_errors",
        {
            "no workload": golden.message_of(curve.loads, "load", {"threads": (1, 2)}),
            "no field": golden.message_of(curve.loads, SLAP, {}),
            "two fields": golden.message_of(curve.loads, SLAP, {"rows": (1, 2), "concurrency": (1, 2)}),
            "an unknown field": golden.message_of(curve.loads, SLAP, {"row": (1, 2)}),
            "a value twice": golden.message_of(curve.loads, SLAP, {"concurrency": (1, 1)}),
            "a single value": golden.message_of(curve.loads, SLAP, {"concurrency": 4}),
            "every without a claim": golden.message_of(nothing.every),
            "every that returns no answer": golden.message_of(nothing.every, lambda slow, fast: None),
            "no round": golden.message_of(nothing.draw, 0),
            "an unknown variant": golden.message_of(nothing.draw, relative_to="none"),
        },
    )


RELEASES = ("mariadb:10.5", "mariadb:10.11", "mariadb:11.8")


def over_releases(*means, names=("async",), sd=0.02, **rules):
    """A curve over three releases whose rounds take so many seconds, for each release the clusters in turn."""
    variants = tuple(f"{name}@{release}" for release in RELEASES for name in names)
    source = FakeSource(variants, noisy(*means, sd=sd), load="load of 1")
    return ReleaseCurve(Load(), Measurement(source, Rules(**{"seed": 7, **rules})), RELEASES, names)


def test_rounds_of_all_releases_alternate():
    """They are in one measurement, which is drawn once and checked once."""
    made = over_releases(1.0, 1.0, 1.0)
    told = []
    made.point_drawn = told.append
    made.draw(3)
    [measurement] = {id(point.measurement): point.measurement for point in made.points}.values()

    assert [(value, series.name) for value, series in made] == [(one, f"async@{one}") for one in RELEASES]
    assert [len(series.rounds) for _, series in made] == [3, 3, 3]
    blocks = [block for _, block, _ in measurement.source.rounds if block >= 0]
    assert blocks == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (measurement.source.checks, made.drawn, told) == (1, 3, [made])
    assert (made.field, made.reference, made.load) == ("release", "mariadb:11.8", "load of 1")


def test_a_claim_about_releases_is_asked_of_each_two_neighbours():
    """The older series comes first; an answer has the name of the newer release."""
    made = over_releases(1.0, 1.0, 3.0)
    every = made.every(lambda older, newer: newer.no_slower_than(older, by=0.5))

    assert repr(every) == "<every release of load of 1: mariadb:10.11: holds, mariadb:11.8: refuted>"
    with pytest.raises(ClaimFailed, match=r"\nrelease=mariadb:11.8: REFUTED: async@mariadb:11.8 "):
        bool(every)


def test_each_cluster_has_claims_about_its_releases():
    """Series of two clusters are not compared."""
    seen = []
    made = over_releases(1.0, 2.0, 1.0, 2.0, 1.0, 2.0, names=("one", "galera3"))
    made.every(lambda older, newer: seen.append((older.name, newer.name)) or newer.no_slower_than(older, by=0.5))

    assert seen == [
        ("one@mariadb:10.5", "one@mariadb:10.11"), ("galera3@mariadb:10.5", "galera3@mariadb:10.11"),
        ("one@mariadb:10.11", "one@mariadb:11.8"), ("galera3@mariadb:10.11", "galera3@mariadb:11.8"),
    ]  # fmt: skip


def test_what_an_earlier_run_drew_of_all_releases_is_kept():
    """Nothing is drawn again."""
    before = over_releases(1.0, 2.0, 3.0)
    before.draw(3)
    made = over_releases(1.0, 2.0, 3.0)
    made.earlier = Drawn(3, [[series.rounds] for _, series in before])
    made.draw(3)

    assert made.untouched
    assert made.kept == list(RELEASES)
    assert [series.rounds for _, series in made] == [series.rounds for _, series in before]


def test_a_curve_over_releases_has_its_reference():
    """Another one is refused, and so is a claim about one series."""
    made = over_releases(1.0, 1.0, 1.0)
    with pytest.raises(ConfigError, match=r"is shown relative to the newest, mariadb:11\.8$"):
        made.draw(relative_to="mariadb:10.5")
    with pytest.raises(ConfigError, match=r"accepts a function of 2 series, the older and the newer release"):
        made.every(lambda one: one)
