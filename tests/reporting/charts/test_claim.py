"""The chart of a claim."""

import dataclasses
import importlib.util
import math
import re
import statistics
from xml.etree import ElementTree

import pytest

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.verdict import Terms, judge
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.charts import claim, colours, drawing
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from tests.support.facts import missing
from tests.support.records import beside, failed, record, rounds, undecided


def words(svg):
    """All text of a chart."""
    return [text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def with_zero_counter():
    """A claim that a counter is lower, which is zero with the candidate, and its true verdict."""
    made = record(kinds.lower(), metric="fsyncs_per_commit", pairs=17)
    zero = [dataclasses.replace(one, counters={"fsyncs_per_commit": 0.0}) for one in made.rounds["flush_2"]]
    made = dataclasses.replace(made, rounds={**made.rounds, "flush_2": tuple(zero)})
    found = judge(kinds.lower(), rounds_csv.pairs(made, "flush_2", "galera3"), Terms(out_of_budget="budget"))
    return dataclasses.replace(made, verdict=found)


def test_the_same_rounds_give_the_same_file():
    """A chart holds neither a date nor an identifier made by chance."""
    assert claim.svg(record()) == claim.svg(record())


def test_a_chart_has_the_size_of_a_page():
    """Its width is that of a report's page, in points of 72 an inch."""
    root = ElementTree.fromstring(claim.svg(record()))

    assert (root.get("width"), root.get("height")) == ("576pt", "331.2pt")


def test_a_chart_names_what_it_shows():
    """Claim, load, verdict, both variants, claimed and published ratio, interval and axes are text."""
    shown = words(claim.svg(record(published=1.5)))

    assert any(text.startswith("flush_2.beats(galera3), mysqlslap write c50: holds, 1.26x (") for text in shown)
    for text in ("galera3", "flush_2", "claim: 1.00x", "published: 1.50x", "99.9 % interval", "pairs of rounds"):
        assert text in shown
    assert "seconds since the first round began" in shown


def test_no_label_runs_out_of_the_chart():
    """The ratio of a counter has wide ticks, and two lines of text beside them."""
    made = record(kinds.lower(), metric="fsyncs_per_commit", faster=1.0)
    found = dataclasses.replace(made.verdict, ratio=0.0005, low=0.0001, high=0.001)
    root = ElementTree.fromstring(claim.svg(dataclasses.replace(made, verdict=found)))
    texts = {text.text: text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    places = [
        float(re.match(r"translate\(([-0-9.]+) ", texts[line].get("transform"))[1])
        for line in ("ratio flush_2", "/ galera3")
    ]

    assert min(places) > 8  # points: the height of its letters


def test_the_name_of_a_counter_is_as_long_as_its_axis():
    """A longer one is broken into two lines; it would run into the chart below."""
    made = record(kinds.lower(), metric="semisync_wait_us_per_commit")
    rounds_ = {
        name: tuple(dataclasses.replace(one, counters={made.metric: 9.0}) for one in many)
        for name, many in made.rounds.items()
    }
    shown = words(claim.svg(dataclasses.replace(made, rounds=rounds_)))

    assert {"semisync_wait", "_us_per_commit"} <= set(shown)


def test_a_million_is_no_power_in_the_corner():
    """Each tick has its own number; a factor above the axis is overlooked."""
    made = record()
    fast = [
        dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, operations=10**6))
        for one in made.rounds["flush_2"]
    ]
    shown = words(claim.svg(dataclasses.replace(made, rounds={**made.rounds, "flush_2": tuple(fast)})))

    assert {"0", "1 M", "2 M"} <= set(shown)
    assert not [text for text in shown if "1e" in text]


@pytest.mark.parametrize("void", [False, True])
def test_long_names_do_not_run_out_of_the_chart(void):
    """They are cut in the middle, beside the axis and in the legend; both ends are kept."""
    names = "a_candidate_with_a_rather_long_name_of_a_configuration", "the_default_configuration_of_the_whole_cluster"
    made = record(candidate=names[0], baseline=names[1])
    lost = tuple(dataclasses.replace(many[0], void="gone") for many in made.rounds.values())
    root = ElementTree.fromstring(
        claim.svg(dataclasses.replace(made, void_rounds=(lost,) if void else ()), titled=False)
    )
    texts = [text for text in root.iter("{http://www.w3.org/2000/svg}text") if "..." in (text.text or "")]
    begin = re.compile(r"(?:translate|rotate)\((?:-0 )?([-0-9.]+) ([-0-9.]+)")
    places = [tuple(map(float, begin.match(text.get("transform")).groups())) for text in texts]

    assert len(texts) == 4 + 2 * void  # legend and axis
    assert all(x > 10 and 0 < y < 331 for x, y in places)
    assert max(len(text.text) for text in texts) <= 46


def test_a_published_ratio_far_away_leaves_the_intervals_readable():
    """It is named with its direction; on the axis it would press all intervals into one line."""
    shown = words(claim.svg(record(published=50.0)))

    assert "published: 50.00x, above" in shown
    assert "2" in shown or "1.5" in shown
    assert "32" not in shown


def test_a_guard_shows_both_margins_and_the_interval_that_decides():
    """A guard has two edges, and holds by its 90 % interval."""
    shown = words(claim.svg(undecided(claim=kinds.same_as(0.1))))

    assert {"claim: 0.90x", "claim: 1.1111x", "90 % interval"} <= set(shown)


def test_a_comparison_claims_nothing():
    """A comparison that asserts nothing has a line at equal speed."""
    shown = words(claim.svg(beside()))

    assert "equal: 1.00" in shown
    assert not any(text.startswith("claim") for text in shown)


def test_a_counter_that_is_zero_has_its_ratio_and_its_interval():
    """The chart compares a counter as the claim did; a ratio of 0 is drawn at the lower end of its axis."""
    made = with_zero_counter()
    shown = words(claim.svg(made))
    [*_, last] = claim.looks(rounds_csv.pairs(made, "flush_2", "galera3"), made.verdict)

    assert made.verdict.outcome is claims.Outcome.HOLDS
    assert "fsyncs_per_commit" in shown
    assert "99.9 % interval" in shown
    assert "0" in shown
    assert "1/8" not in shown  # where the 0 is
    assert last.has_bounds


def test_pairs_with_an_infinite_ratio_are_drawn():
    """A counter of which the baseline counted nothing at all: they are beside the tick that says so."""
    made = with_zero_counter()
    made = dataclasses.replace(
        made,
        rounds={
            "flush_2": tuple(dataclasses.replace(one, variant="flush_2") for one in made.rounds["galera3"]),
            "galera3": tuple(dataclasses.replace(one, variant="galera3") for one in made.rounds["flush_2"]),
        },
    )
    found = judge(kinds.lower(), rounds_csv.pairs(made, "flush_2", "galera3"), Terms(out_of_budget="budget"))
    svg = claim.svg(dataclasses.replace(made, verdict=found))

    assert found.ratio == math.inf
    assert "∞" in words(svg)
    assert svg.count(f"fill: {colours.SOFT}; fill-opacity: 0.75") >= 14


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (0.2, math.inf)])
def test_an_interval_with_one_end_is_drawn_as_a_bar(low, high):
    """To the end of the axis; only an interval without ends is hollow."""
    made = record(kinds.lower(), metric="fsyncs_per_commit", pairs=17)
    found = dataclasses.replace(made.verdict, ratio=0.3, low=low, high=high)
    svg = claim.svg(dataclasses.replace(made, verdict=found))

    assert "99.9 % interval" in words(svg)
    assert svg.count("stroke-width: 3.2") == 1


def test_the_last_look_is_that_of_the_verdict():
    """A drawn interval never contradicts the verdict, also after pairs that no look has seen."""
    made = record(pairs=19)
    drawn = claim.looks(rounds_csv.pairs(made, "flush_2", "galera3"), made.verdict)

    assert [look.pairs for look in drawn] == [8, 12, 14, 17, 19]
    assert (drawn[-1].low, drawn[-1].ratio, drawn[-1].high) == (
        made.verdict.low,
        made.verdict.ratio,
        made.verdict.high,
    )
    assert [look.has_bounds for look in drawn[:2]] == [False, True]


def test_a_look_that_decides_at_once_has_a_bar():
    """The interval of the only look is as visible as any other: a thick upright line."""
    made = failed(pairs=12)
    svg = claim.svg(made)

    assert [look.has_bounds for look in claim.looks(rounds_csv.pairs(made, "flush_2", "galera3"), made.verdict)][-1]
    assert svg.count("stroke-width: 3.2") == 1


def test_without_an_interval_there_is_no_bar():
    """Few pairs prove nothing: the ratio is hollow, and the legend says that it has no interval."""
    svg = claim.svg(record(pairs=3))

    assert "ratio, no interval yet" in words(svg)
    assert "99.9 % interval" not in words(svg)
    assert "stroke-width: 3.2" not in svg


def test_a_guard_that_holds_is_not_hollow():
    """It holds by its 90 % interval; where the other one has no ends yet, the legend says so."""
    svg = claim.svg(record(kinds.no_slower_than(0.2), faster=1.02, sd=0.01, pairs=8))
    texts = words(svg)

    assert {"90 % interval", "ratio, no 99.9 % interval yet"} <= set(texts)
    assert svg.count(colours.PAPER) < claim.svg(record(kinds.beats(), faster=1.02, sd=0.01, pairs=8)).count(
        colours.PAPER
    )


def test_void_rounds_are_drawn_hollow():
    """A round that did not count is at its time too, and named."""
    made = record()
    void = dataclasses.replace(made.rounds["galera3"][2], void="node2 left the cluster")
    shown = words(claim.svg(dataclasses.replace(made, void_rounds=((void,),))))

    assert "galera3, void" in shown
    assert "flush_2, void" not in shown


def test_rounds_lie_at_their_time():
    """The axis has the seconds of the run, so that a pause between rounds is seen."""
    made = record()
    late = [dataclasses.replace(one, started=one.started + 5000) for one in made.rounds["flush_2"]]

    assert "5000" in words(claim.svg(dataclasses.replace(made, rounds={**made.rounds, "flush_2": tuple(late)})))


def test_an_order_shows_each_step():
    """Of three variants both neighbours have a ratio of their own."""
    made = record(pairs=14)
    three = {"fast": tuple(rounds("fast", [0.2] * 14, 1.0, 1)), **made.rounds}
    made = dataclasses.replace(made, rounds=three)
    steps = [rounds_csv.pairs(made, *step) for step in rounds_csv.steps(made)[::-1]]
    made = dataclasses.replace(made, verdict=judge(kinds.ordered(), steps, Terms(out_of_budget="budget")))

    assert {"fast / flush_2", "flush_2 / galera3"} <= set(words(claim.svg(made)))


@pytest.mark.parametrize("pairs", [1, 6, 160])
def test_any_number_of_pairs_can_be_drawn(pairs):
    """A chart can be drawn for one pair, and for the maximum number of pairs."""
    assert claim.svg(record(pairs=pairs))


def test_without_pairs_there_is_no_chart():
    """A claim without pairs has no chart."""
    made = record()
    none = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, pairs=0))

    assert claim.svg(none) is None


def test_without_matplotlib_there_is_no_chart(monkeypatch):
    """The chart is left out, and a sentence says how to get it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert claim.svg(record()) is None
    lacks = ("no charts", "no page", "matplotlib is not installed")
    assert missing(drawing.MISSING, *lacks, "pip install 'pytest-dbcluster[plots]'") == []


def test_a_tail_is_drawn_in_milliseconds_and_compared_as_a_speed():
    """The candidate waits 1.3 times less, so that its ratio is 1.3."""
    made = record(metric="p95")

    def with_tail(one):
        ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of([one.seconds / 100] * 300))})
        return dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, ledger=ledger))

    rounds_ = {name: [with_tail(one) for one in many] for name, many in made.rounds.items()}
    shown = words(claim.svg(dataclasses.replace(made, rounds=rounds_)))

    assert "p95, ms" in shown
    ratios = rounds_csv.pairs(dataclasses.replace(made, rounds=rounds_), "flush_2", "galera3").ratios
    assert math.exp(statistics.median(ratios)) == pytest.approx(1.3, rel=0.1)


def test_charts_of_one_page_share_no_identifier():
    """Every reference inside of a chart leads to the same chart, also when many stand in one page."""
    first, second = (set(re.findall(r'id="([^"]+)"', claim.svg(record(), name))) for name in ("one", "two"))

    assert first
    assert first & second == set()
