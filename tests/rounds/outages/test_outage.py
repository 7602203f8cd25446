"""What an event costs a load, from the times of its commits."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_dbcluster.rounds.outages import outage
from pytest_dbcluster.rounds.outages.load_times import LoadTimes, TimedErrors
from tests.support import outages

BEGAN = 1000.0


def commits(*stretches, every=20):
    """Milliseconds of a commit each 20 ms in these stretches of seconds."""
    return [ms for begin, end in stretches for ms in range(round(1000 * begin), round(1000 * end), every)]


def load(*stretches, seconds=20.0, reads=(), errors=(), every=20):
    """A load that commits in these stretches of seconds."""
    return LoadTimes(
        BEGAN,
        seconds,
        {"order": commits(*stretches, every=every), "look": list(reads)},
        frozenset({"look"}),
        tuple(errors),
    )


def test_the_stall_is_the_longest_gap_after_the_event():
    """It begins at the event if the last commit came before it."""
    found = outage.measure(load((0, 5), (11, 20)), BEGAN + 5.005)

    assert found.stall == pytest.approx(5.995)
    assert found.stall_at == pytest.approx(0.0)
    assert (found.event_at, found.censored) == (BEGAN + 5.005, False)
    assert found.committed == 250 + 450


def test_a_later_gap_may_be_the_stall():
    """A second pause, such as that of a return, counts too."""
    found = outage.measure(load((0, 6), (7, 10), (13, 20)), BEGAN + 6)

    assert found.stall == pytest.approx(3.02)
    assert found.stall_at == pytest.approx(3.98)


def test_time_without_a_commit_sums_the_long_gaps():
    """Usual gaps do not count."""
    found = outage.measure(load((0, 6), (7, 10), (13, 20)), BEGAN + 6)

    assert found.without_commit == pytest.approx(1.0 + 3.02)


def test_five_usual_gaps_are_no_time_without_a_commit():
    """A slow load commits every 300 ms, so a gap of .9 s says nothing about an event."""
    found = outage.measure(load((0, 6), (6.6, 20), every=300), BEGAN + 6)

    assert found.without_commit == 0.0


def test_gaps_before_the_event_do_not_count():
    """A stall of the load itself is in ``usual``."""
    found = outage.measure(load((0, 3), (5, 20)), BEGAN + 8)

    assert found.stall == pytest.approx(0.02)
    assert found.usual.longest_gap == pytest.approx(2.02)


def test_a_stall_at_the_end_of_the_load_is_censored():
    """Its value is a lower bound."""
    found = outage.measure(load((0, 5)), BEGAN + 5)

    assert (found.stall, found.censored) == (pytest.approx(15.0), True)


def test_the_usual_load_has_the_median_second_and_its_range():
    """Neither the first second nor the one of the event counts."""
    found = outage.measure(load((0, 2), (2.5, 5), (9, 20)), BEGAN + 4.7)

    assert (found.usual.rate, found.usual.low, found.usual.high) == (50.0, 25.0, 50.0)
    assert found.usual.gap == pytest.approx(0.02)


def test_a_load_that_committed_nothing_before_the_event_has_no_usual_rate():
    """The figures are nan, and the stall is still known."""
    found = outage.measure(load((4, 20)), BEGAN + 0.5)

    assert math.isnan(found.usual.rate)
    assert math.isnan(found.usual.gap)
    assert found.stall == pytest.approx(3.5)


def test_reads_have_a_stall_of_their_own():
    """A proxy may serve them from another node."""
    reads = commits((0, 6), (6.5, 20))
    found = outage.measure(load((0, 6), (10, 20), reads=reads), BEGAN + 6)

    assert (found.stall, found.read_stall) == (pytest.approx(4.0), pytest.approx(0.5))
    assert math.isnan(outage.measure(load((0, 20)), BEGAN + 6).read_stall)


def test_a_load_that_only_reads_has_no_stall_of_writes():
    """Its stall of reads is no lower bound, unless the load ends in it."""
    found = outage.measure(load(reads=commits((0, 5), (8, 20))), BEGAN + 5)
    ended = outage.measure(load(reads=commits((0, 5), (6, 12))), BEGAN + 5)

    assert math.isnan(found.stall)
    assert math.isnan(found.without_commit)
    assert not found.censored
    assert (found.read_stall, found.is_lower_bound("read_stall")) == (pytest.approx(3, abs=0.1), False)
    assert found.missing == pytest.approx(3, abs=0.2)
    assert found.usual.rate == pytest.approx(50, abs=1)
    assert (ended.read_stall, ended.is_lower_bound("read_stall")) == (pytest.approx(8, abs=0.1), True)


def test_reads_that_end_while_writes_go_on_bound_their_stall():
    """The writes say nothing about it."""
    found = outage.measure(load((0, 20), reads=commits((0, 5), (6, 12))), BEGAN + 5)

    assert not found.censored
    assert found.is_lower_bound("read_stall")


def test_errors_have_their_time_from_the_event():
    """Those before it have negative seconds."""
    errors = [TimedErrors(5.0, 2013, "node1", True, 2), TimedErrors(7.2, 1047, "node2", False, 9)]
    found = outage.measure(load((0, 20), errors=errors), BEGAN + 6)

    assert [(one.seconds, one.number, one.times) for one in found.errors] == [(-1.0, 2013, 2), (1.2, 1047, 9)]


def test_commits_by_tenth_are_placed_around_the_event():
    """The tenth 0 begins at the event, and all writing commits are in one of them."""
    found = outage.measure(load((0, 5), (6, 8), seconds=8.0), BEGAN + 5.05)

    assert found.first_tenth == -51
    assert len(found.commits_by_tenth) == 51 + 30
    assert sum(found.commits_by_tenth) == 350
    assert found.commits_by_tenth[51 : 51 + 9] == (0,) * 9
    assert found.commits_by_tenth[51 + 10] == 5


def test_a_stall_is_missing_in_full_and_below_half_all_the_time():
    """The rate is back when the load commits again."""
    found = outage.measure(load((0, 5), (11, 20)), BEGAN + 5)

    assert found.below_half == pytest.approx(6.0)
    assert found.missing == pytest.approx(6.0)
    assert found.back_at == pytest.approx(6.0, abs=0.1)
    assert not found.is_lower_bound("missing")


def test_a_slow_recovery_is_missing_in_part():
    """After 6 s without a commit, 2 s at half of the rate miss one more second; half of the rate is not below half."""
    slow = LoadTimes(BEGAN, 20.0, {"order": commits((0, 5)) + commits((11, 13), every=40) + commits((13, 20))})
    found = outage.measure(slow, BEGAN + 5)

    assert (found.back_at, found.missing) == (pytest.approx(8.0), pytest.approx(7.0))
    assert 6.0 <= found.below_half <= 7.5


def test_a_rate_that_is_not_back_bounds_what_is_missing():
    """The load ended before, so more may be missing."""
    slow = LoadTimes(BEGAN, 20.0, {"order": commits((0, 5)) + commits((11, 20), every=40)})
    found = outage.measure(slow, BEGAN + 5)

    assert found.back_at is None
    assert found.missing == pytest.approx(6.0 + 4.5, abs=0.1)
    assert (found.is_lower_bound("missing"), found.is_lower_bound("stall")) == (True, False)


def test_a_load_that_ends_slow_bounds_its_time_below_half():
    """It would have been slow for longer."""
    slow = LoadTimes(BEGAN, 20.0, {"order": commits((0, 5)) + commits((6, 20), every=60)})
    fast = LoadTimes(BEGAN, 20.0, {"order": commits((0, 5)) + commits((6, 12), every=60) + commits((12, 20))})

    assert outage.measure(slow, BEGAN + 5).is_lower_bound("below_half")
    assert not outage.measure(fast, BEGAN + 5).is_lower_bound("below_half")


def test_a_load_that_is_stopped_in_a_second_stall_bounds_its_stall():
    """The gap at its end is not the longest one, and could have become that."""
    times = load((0, 5), (30, 32), seconds=40.0)

    assert not outage.measure(times, BEGAN + 4).censored
    assert outage.measure(times, BEGAN + 4, recovered=False).censored
    assert not outage.measure(load((0, 5), (11, 20)), BEGAN + 4, recovered=False).censored


def test_a_thread_that_waits_when_the_load_is_stopped_is_no_stall():
    """All others stopped at once, so its seconds say nothing about the cluster."""
    times = load((0, 5), (7, 12), seconds=17.0)
    found = outage.measure(times, BEGAN + 5, stopped_at=BEGAN + 12)

    assert outage.measure(times, BEGAN + 5).censored
    assert (found.stall, found.censored) == (pytest.approx(2.05, abs=0.05), False)
    assert found.speed_after == pytest.approx(100, abs=10)
    assert found.observed_seconds == pytest.approx(7, abs=0.1)


def test_the_usual_load_may_end_before_the_event():
    """A node that is already gone slows the load down."""
    times = load((0, 5), (8, 20))

    assert outage.measure(times, BEGAN + 8).usual.low == 0
    assert outage.measure(times, BEGAN + 8, usual_until=BEGAN + 5).usual.low > 0


def test_the_speed_after_is_that_of_the_last_two_seconds():
    """In per cent of the usual rate; an event that was shorter ago has only the seconds since then."""
    slow = LoadTimes(BEGAN, 20.0, {"order": commits((0, 5)) + commits((11, 20), every=40)})
    ends = outage.measure(slow, BEGAN + 5)
    late = outage.measure(load((0, 20)), BEGAN + 19)

    assert ends.figure("speed_after") == ends.speed_after == pytest.approx(50, abs=1)
    assert late.speed_after == pytest.approx(100, abs=10)
    assert not ends.is_lower_bound("speed_after")
    assert outage.measure(load((4, 20)), BEGAN + 0.5).speed_after is None


def test_without_a_usual_rate_nothing_is_known_to_be_missing():
    """There is nothing to compare with."""
    found = outage.measure(load((4, 20)), BEGAN + 0.5)

    assert (found.below_half, found.missing, found.back_at) == (None, None, None)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("stall", 6.1),
        ("lost", 3.0),
        ("returned", 5.2),
        ("returned_by:IST", 1.0),
        ("returned_by:SST", 0.0),
        ("without_redundancy", 14.5),
    ],
)
def test_a_figure_is_a_number(metric, value):
    """Metrics of events have their name; a field without a value is nan."""
    assert outages.outage(6.1, lost=3).figure(metric) == value
    assert metric == "stall" or math.isnan(
        outages.outage(books=None, returned=None, without_redundancy=None).figure(metric)
    )


@pytest.mark.parametrize("at", [-0.1, 20.1])
def test_an_event_outside_of_the_load_is_refused(at):
    """The load did not run when it happened."""
    with pytest.raises(ValueError, match="after the begin of a load of 20"):
        outage.measure(load((0, 20)), BEGAN + at)


def test_lost_and_invented_transactions_are_known_from_the_books():
    """A workload without books knows neither."""
    found = outage.measure(load((0, 20)), BEGAN + 6)
    booked = dataclasses.replace(found, books=outage.Books(100, 2, 1, 3, 0))

    assert (found.lost_or_invented, booked.lost_or_invented) == (None, 3)
