"""Series of an event: which repetitions a claim draws, and what is refused."""

from __future__ import annotations

import re

import pytest

from pytest_dbcluster import reasons
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.errors import ClaimFailed, ConfigError, Inconclusive, SeriesVoid
from pytest_dbcluster.measuring.event_series import plan
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.rounds.outages.outage import Returned
from tests.support import golden
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measurement
from tests.support.outages import outage, series

STALLS = (6.04, 6.26, 6.1, 6.2, 6.08, 6.15, 6.12, 6.11, 6.09, 6.22, 6.18)


def stalls(*values, **changes):
    """The repetitions of one variant have these stalls."""
    return lambda variant, number: outage(values[number], **changes)


def ends(commits):
    """What a kill costs whose load commits so often in each tenth of a second of its end; usual are 21 commits."""
    return outage(speed_after=100 * commits / 21)


def drawn(one):
    """(variant, block, position) of each repetition."""
    return one.measurement.source.rounds


def test_a_claim_lets_the_event_happen_as_often_as_planned():
    """No repetition comes before it, and there is no warm-up."""
    [galera] = series("galera3", times=11, outages=stalls(*STALLS))
    assert drawn(galera) == []
    answer = galera.below("stall", 8)

    assert bool(answer)
    assert drawn(galera) == [(0, block, 0) for block in range(11)]
    assert (answer.verdict.pairs, answer.verdict.ratio) == (11, 6.12)
    assert galera.values("stall") == list(STALLS)
    assert [one.node for one in galera.outages] == ["node3"] * 11


def test_claims_share_the_repetitions():
    """The second and the third claim draw nothing."""
    [galera] = series("galera3", times=6)
    first, second, third = galera.below("stall", 8), galera.below("read_stall", 1), galera.loses_nothing()

    assert first
    assert second
    assert third
    assert len(drawn(galera)) == 6
    assert galera.measurement.source.checks == 1


def test_two_variants_run_in_random_order_in_blocks_of_seven():
    """Each block has seven repetitions of each."""
    usual, quick = series("usual", "quick", times=14, outages=lambda variant, number: outage(6.0 - 3 * variant))
    assert quick.shorter("stall", than=usual, seconds=2)
    order = [variant for variant, _, _ in drawn(quick)]

    assert sorted(order) == [0] * 7 + [1] * 7
    assert order not in (sorted(order), sorted(order, reverse=True), [0, 1] * 7, [1, 0] * 7)


def test_another_block_follows_if_the_first_does_not_decide():
    """The last planned look leaves an open claim inconclusive."""
    usual, quick = series("usual", "quick", times=14, outages=lambda variant, number: outage(6.0 + 0.1 * (number % 3)))
    answer = quick.shorter("stall", than=usual, seconds=0)

    assert answer.verdict.outcome is Outcome.INCONCLUSIVE
    assert answer.verdict.pairs == 14
    with pytest.raises(Inconclusive, match="the interval of 14 repetitions contains the bound of the claim"):
        bool(answer)


def test_a_claim_about_one_of_two_variants_needs_no_other():
    """Its repetitions run among those of the other one."""
    usual, quick = series("usual", "quick", times=7)

    assert usual.below("stall", 8)
    assert len(drawn(quick)) == 14


def test_a_loss_ends_the_repetitions():
    """The claim is refuted, and the message has the numbers."""
    [galera] = series("galera3", times=6, outages=lambda variant, number: outage(lost=2 * (number == 1)))
    answer = galera.loses_nothing()

    assert len(drawn(galera)) == 2
    with pytest.raises(ClaimFailed, match=r"REFUTED: galera3 loses acknowledged [^$]*lost of galera3: 0, 2"):
        bool(answer)


def test_a_node_that_needs_a_full_copy_is_named():
    """The values are the ways back, and the claim ends at the first other one."""
    ways = ("IST", "SST", "IST")
    [galera] = series("galera3", times=6, outages=lambda variant, number: outage(returned=Returned(5.0, ways[number])))
    answer = galera.returned_by("IST")

    assert len(drawn(galera)) == 2
    assert answer.text == 'galera3.returned_by("IST")'
    assert missing(answer.message, "REFUTED: the node of galera3 does not always return by IST") == []
    assert missing(answer.message, "repetition 2: node3 SST", "returned_by of galera3: node3 IST, node3 SST") == []
    assert galera.values("returned") == [5.0, 5.0]


def test_seconds_until_a_node_is_back_are_a_duration():
    """They come from the same repetitions; a repetition in which no node left has none."""
    [galera] = series("galera3", times=6)
    [paused] = series("paused", times=6, outages=lambda variant, number: outage(returned=None))

    assert galera.below("returned", 8)
    for claim in (lambda: paused.below("returned", 8), lambda: paused.returned_by("IST")):
        with pytest.raises(ConfigError, match="a repetition has no such value: no node left the cluster"):
            claim()


def test_a_budget_ends_the_repetitions():
    """A block that would exceed it does not begin; the claim is inconclusive, and says what it needs."""
    [galera] = series("galera3", times=6, event_budget=50.0)
    answer = galera.below("stall", 8)

    assert len(drawn(galera)) == 2
    assert answer.verdict.outcome is Outcome.INCONCLUSIVE
    said = "budget of 50 s for events (--db-event-budget): 2 repetitions took 40 s, the next block of 1 needs 20 s"
    assert missing(answer.message, said, "it needs a larger --db-event-budget") == []
    assert [one.name for one in reasons.find(answer.verdict.reason)] == ["event-budget-used"]


def test_a_loss_within_the_budget_refutes():
    """A claim that its repetitions decide needs no other ones."""
    [galera] = series("galera3", times=6, event_budget=25.0, outages=lambda variant, number: outage(lost=1))

    assert galera.loses_nothing().verdict.outcome is Outcome.FAILS


def test_a_budget_below_the_first_block_draws_nothing():
    """The expected seconds count before the first repetition, of a whole block for two variants."""
    usual, quick = series("usual", "quick", event_budget=349.0, usual_seconds=25.0)
    with pytest.raises(Inconclusive, match=r"the next block of 14 needs 350 s; nothing was drawn"):
        quick.shorter("stall", than=usual)
    assert drawn(quick) == []


@pytest.mark.parametrize("metric", ["below_half", "missing"])
def test_the_rate_of_a_load_is_compared_with_a_control(metric):
    """Alone it says nothing, and the message says how to measure a control."""
    kill, none = series("kill", "none", outages=lambda variant, number: outage(6.0 - 5.9 * variant))
    with pytest.raises(ConfigError, match=rf"it needs a control .*none\.shorter\('{metric}', than=event\)"):
        kill.below(metric, 8)

    assert none.shorter(metric, than=kill, seconds=2)


def test_what_is_missing_until_the_load_ends_is_a_lower_bound():
    """It never makes a claim hold."""
    kill, none = series("kill", "none", outages=lambda variant, number: outage(6.0 - 5.9 * variant, back_at=None))

    assert none.shorter("missing", than=kill).verdict.outcome is Outcome.INCONCLUSIVE


LEFT = "after the event kill other the cluster galera3 did not become whole: node3 not ready after 300 s"


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.below("stall", 8),
        lambda one: one.below("returned", 8),
        lambda one: one.loses_nothing(),
        lambda one: one.returned_by("IST"),
    ],
    ids=["below", "returned", "loses_nothing", "returned_by"],
)
def test_nothing_holds_beside_a_cluster_that_did_not_become_whole(ask):
    """That repetition has no figures, and it may be the worst one."""
    [galera] = series("galera3", times=11, voids=("", LEFT))
    verdict = ask(galera).verdict

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "1 repetition beside it had no end: after the event kill other" in verdict.reason
    assert "repetition-without-end" in [one.name for one in reasons.find(verdict.reason)]


def test_a_claim_fails_beside_a_cluster_that_did_not_become_whole():
    """More losses would not help it."""
    [galera] = series("galera3", times=11, voids=("", LEFT), outages=lambda *_: outage(lost=1))

    assert galera.loses_nothing().verdict.outcome is Outcome.FAILS


@pytest.mark.parametrize("apart", [True, False])
def test_two_clusters_that_serve_all_repetitions_are_said(apart):
    """Equal clusters may differ by an unknown amount. A claim about one variant has no such line."""
    usual, quick = series("usual", "quick", times=14, outages=lambda variant, number: outage(6.0 - 3 * variant))
    known = ClusterDifference(0.05, "assumed") if apart else None
    usual.measurement.source.cluster_difference = lambda *numbers, metric: known
    said = "it is unknown by how much equal clusters differ in stall"

    assert (said in quick.shorter("stall", than=usual).message) is apart
    assert said not in quick.below("stall", 8).message


def test_a_void_repetition_is_drawn_again():
    """Its place in a block stays."""
    [galera] = series("galera3", times=6, voids=("", "the event is not proven: it still runs"))
    answer = galera.below("stall", 8)

    assert answer
    assert len(drawn(galera)) == 7
    assert "the event is not proven" in answer.message
    with pytest.raises(SeriesVoid, match="void in the first 1 pairs: galera3: gone"):
        series("galera3", times=6, voids=("gone",) * 9)[0].below("stall", 8)


def test_a_censored_stall_is_said():
    """It has a sign, and a line says what it means."""
    [galera] = series("galera3", times=6, outages=lambda variant, number: outage(9.0, censored=number == 5))
    message = galera.below("stall", 8).message

    assert missing(message, "> 9.00; largest 9.00", "1 value of galera3 lasted until the load ended") == []


def test_the_speed_after_an_event_is_compared_with_that_of_a_control():
    """A difference to the control below the margin is none; without a control the usual rate would grow stale."""
    kill, none = series("kill", "none", outages=lambda variant, number: ends(19 + 2 * variant + 0.1 * number))

    assert kill.no_slower_than(none, by=0.2)
    assert sorted(kill.values("speed_after"))[0] == pytest.approx(100 * 19 / 21)
    with pytest.raises(ClaimFailed, match="after the event kill is not less than 2 % slower than none"):
        bool(kill.no_slower_than(none, by=0.02))


def test_a_comparison_is_no_claim():
    """It is true whatever it shows, and has the interval of ``shorter``."""
    usual, quick = series("usual", "quick", outages=lambda variant, number: outage(STALLS[number] - 3 * variant))
    answer = usual.against(quick)

    assert bool(answer)
    assert not answer.asserted
    assert answer.verdict.outcome is Outcome.HOLDS
    assert answer.verdict.high < -2.7
    assert missing(answer.message, "DIFFER: stall of quick less that of usual is not 0 s", "claimed nothing") == []


def test_golden_messages():
    """They are those of the golden file."""
    [galera] = series("galera3", times=11, outages=stalls(*STALLS))
    [lossy] = series("galera3", times=6, outages=lambda variant, number: outage(lost=2 * (number == 1)))
    [near] = series("galera3", times=6, outages=stalls(*STALLS))
    usual, quick = series("usual", "quick", outages=lambda variant, number: outage(STALLS[number] - 3 * variant))
    killed, none = series("kill", "none", outages=lambda variant, number: ends(19 + 2 * variant + 0.1 * number))
    answers = {
        "below": galera.below("stall", 8),
        "below, 95 %": near.below("stall", 8),
        "below, refuted": galera.below("stall", 5),
        "below, open": galera.below("stall", 6.11),
        "nothing is lost": galera.loses_nothing(),
        "something is lost": lossy.loses_nothing(),
        "every node returns by IST": galera.returned_by("IST"),
        "a node returns by SST": lossy.returned_by("SST"),
        "shorter": quick.shorter("stall", than=usual, seconds=2),
        "shorter, refuted": usual.shorter("stall", than=quick),
        "against": quick.against(usual),
        "no slower after it": killed.no_slower_than(none, by=0.2),
    }

    golden.compare("events", {name: answer.message for name, answer in answers.items()})


WRONG = {
    "an unknown duration": (lambda one, other: one.below("stal", 8), ("unknown duration 'stal'", "stall")),
    "a speed": (lambda one, other: one.below("goodput", 8), ("'goodput'", "without_commit")),
    "no bound": (lambda one, other: one.below("stall"), ("usage: galera.below(",)),
    "a bound of 0": (lambda one, other: one.below("stall", 0), ("seconds=0", "0 < seconds < inf")),
    "a share in per cent": (lambda one, other: one.below("stall", 8, share=90), ("share=90", "nine of ten events")),
    "a margin by": (lambda one, other: one.shorter("stall", than=other, by=2), ("write seconds= in place of by=",)),
    "itself": (lambda one, other: one.shorter("stall", than=one), ("is compared with itself",)),
    "a comparison with itself": (lambda one, other: one.against(one), ("is compared with itself",)),
    "a comparison of speeds": (lambda one, other: one.against(other, "speed_after"), ("unknown duration", "stall")),
    "a margin in per cent": (lambda one, other: one.no_slower_than(other, by=10), ("by=10", "0 < by < 1", "0.1")),
    "no margin": (lambda one, other: one.no_slower_than(other), ("usage: killed.no_slower_than(",)),
    "a number": (lambda one, other: one.shorter("stall", than=6.0), ("were not measured together",)),
    "too few for nine of ten": (lambda one, other: one.below("stall", 8, share=0.9), ("times=7", "times=36")),
    "an unknown way back": (lambda one, other: one.returned_by("IS"), ("unknown way back 'IS'; known: IST, SST",)),
    "values before a claim": (lambda one, other: one.values("stall"), ("has not happened yet",)),
    "an unknown value": (lambda one, other: one.values("p95"), ("unknown metric of an event 'p95'",)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_refused(name):
    """Before the event happens."""
    call, facts = WRONG[name]
    one, other = series("one", "other", times=7)
    with pytest.raises(ConfigError) as caught:
        call(one, other)

    assert missing(caught.value, *facts) == []
    assert drawn(one) == []


def test_a_workload_without_books_loses_nothing_that_anybody_knows():
    """The message names a workload that knows it."""
    [one] = series("one", times=6, keeps_books=False)
    with pytest.raises(ConfigError, match=r"keeps no books.*needs TPCC"):
        one.loses_nothing()


def test_a_topology_that_does_not_say_how_a_node_comes_back_is_refused():
    """The message names those that do."""
    [one] = series("one", times=6, ways=())
    with pytest.raises(ConfigError, match="returned_by needs one that does, such as galera"):
        one.returned_by("IST")


@pytest.mark.parametrize(("variants", "times"), [(1, 0), (1, "6"), (1, True), (2, 6), (2, 11), (3, 8)])
def test_times_is_a_number_of_whole_blocks(variants, times):
    """A single variant may have any number."""
    with pytest.raises(ConfigError, match=re.escape(f"times={times!r}")):
        plan(variants, times)
    assert plan(1, 5).openings == 0
    assert plan(2, 14).openings == 2


def test_a_series_of_rounds_has_no_claims_about_events():
    """They need repetitions."""
    slow, _ = series_of(measurement(FakeSource(("slow", "fast"), noisy(1.0, 0.5))))
    for name in ("below", "shorter", "loses_nothing", "returned_by"):
        with pytest.raises(AttributeError, match=f"a series has no '{name}'"):
            getattr(slow, name)
