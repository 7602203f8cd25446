"""The drift guard over histories: what it says of a new run."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_dbcluster.reporting.history import guard, views
from pytest_dbcluster.reporting.history.entry import ACCEPTED, FORMAT, Acceptance
from pytest_dbcluster.reporting.history.history_file import History
from tests.support.histories import CLAIM, entries, healthy, simulated

STEADY = healthy(8)


def judged(ratios, accepted=(), **changes):
    """What the guard says of the last of these runs."""
    made = entries(ratios, **changes)
    return guard.judge(History(tuple(made), tuple(accepted)), [made[-1].run])


def test_a_run_like_the_others_gives_no_warning():
    """And no line."""
    found = judged([*STEADY, 1.85])

    assert [item.drift.warns for item in found] == [False]
    assert guard.lines(found) == []


def test_a_ratio_that_fell_is_a_warning_with_the_command_that_answers_it():
    """The sentence names claim, load, release, both ratios, and the runs."""
    (line,) = guard.lines(judged([*STEADY, 1.2]))

    assert line.startswith("DRIFT: flush_2.beats(galera3) (mysqlslap write c50, mariadb:10.11): the ratio is 1.20x, -3")
    assert " % against 1.8" in line
    assert line.endswith(" in the last 8 runs; measure both in one run: pytest suites/galera --db-seed=813")


def test_a_longer_stall_is_a_warning_in_seconds():
    """It is compared with the earlier runs of its test, and not with the speed of the anchor."""
    stalls = [6.1, 6.2, 6.15, 6.1, 6.05, 6.2]
    found = judged([*stalls, 9.0], metric="stall", anchor=1000.0, error=float("inf"))
    [line] = guard.lines(found)

    assert ": stall is 9.00 s, +4" in line
    assert " % against 6.1" in line
    assert [item.subject for item in found if item.drift.warns] == [guard.RATIO]


def test_a_share_of_lost_repetitions_has_no_trend():
    """It is 0 in healthy runs, so it is not counted among the claims that need more runs."""
    assert guard.lines(judged([0.0, 0.0], metric="lost")) == []


def test_a_level_that_was_not_accepted_warns_in_each_run():
    """A run that drifted is nothing to compare with, so the third slow run is a warning as the first one was."""
    for slow in (1, 2, 3):
        (found,) = judged([*STEADY, *healthy(slow, seed=7, level=1.2)])
        assert (found.drift.warns, found.drift.runs) == (True, 8)


@pytest.mark.parametrize(
    ("metric", "median", "speed"), [("throughput", 700.0, 0.7), ("p95", 4.0, 0.00025), ("fsyncs_per_commit", 2.0, None)]
)
def test_the_speed_of_a_variant_is_relative_to_the_anchor(metric, median, speed):
    """A latency on a machine that is slower throughout stays. A counter does not depend on the speed."""
    (entry,) = entries([1.8], anchor=1000.0, metric=metric, medians={"a": median})
    (slower,) = entries([1.8], anchor=900.0, metric=metric, medians={"a": median / 0.9 if metric == "p95" else 630.0})

    if speed is None:
        assert math.isnan(entry.speed("a").value)
        return
    assert math.exp(entry.speed("a").value) == pytest.approx(speed)
    assert slower.speed("a").value == pytest.approx(entry.speed("a").value)


def test_a_run_on_a_busy_machine_is_no_level_for_a_quiet_one():
    """It is compared itself, and named; runs on a machine that is always busy are compared with each other."""
    quiet, late = entries(STEADY), entries([1.2], first=8, busy="other programs take 1.5 of 2 cores")
    (line,) = guard.lines(guard.judge(History((*quiet, *late)), ["run08"]))
    noisy = [dataclasses.replace(entry, busy="other programs take 1.5 of 2 cores") for entry in quiet]
    new = entries([1.85], first=8)
    busy = [dataclasses.replace(entry, busy=noisy[0].busy) for entry in new]
    runs = [guard.judge(History((*noisy, *last)), ["run08"])[0].drift.runs for last in (new, busy)]
    (claim,) = views.claims(History((*quiet, *late)))

    assert "; the machine was busy: other programs take 1.5 of 2 cores; " in line
    assert runs == [0, 8]
    assert [sentence for sentence in claim.sentences() if "1.5 of 2 cores" in sentence]


def test_too_few_runs_are_counted():
    """Two claims, of which one has a history."""
    other = entries([1.1], first=8, claim_id="test_x::test_y | a.beats(b) | tpcc")
    history = History((*entries([*STEADY, 1.84]), *other))

    (line,) = guard.lines(guard.judge(history, ["run08"]))

    assert "1 of 2 claims" in line
    assert "fewer than 5" in line


def test_an_accepted_run_is_the_first_of_a_new_level():
    """Runs like it give no warning; before it there are too few."""
    accepted = [Acceptance(format=FORMAT, kind=ACCEPTED, claim_id=CLAIM, run="run08", reason="another disk", time=0.0)]
    (few,) = judged([*STEADY, *healthy(5, level=1.2)], accepted)
    (enough,) = judged([*STEADY, *healthy(7, level=1.2)], accepted)

    assert (few.drift.has_enough_runs, enough.drift.has_enough_runs, enough.drift.warns) == (False, True, False)


@pytest.mark.parametrize("changed", [{"machine": "another"}, {"release": "mariadb:11.8"}, {"profile": "paper"}])
def test_runs_of_another_machine_release_or_profile_are_no_history(changed):
    """Their ratios say nothing about this one."""
    history = History((*entries(STEADY, **changed), *entries([1.2], first=8)))
    (found,) = guard.judge(history, ["run08"])

    assert found.drift.has_enough_runs is False


def test_a_server_that_is_slower_for_all_variants_is_seen_by_the_anchor():
    """The ratio stays; both variants are a third slower relative to the anchor, and each is a warning."""
    before = entries(STEADY, anchor=1000.0)
    slow = {name: value / 1.5 for name, value in before[0].medians.items()}
    history = History((*before, *entries([1.84], first=8, anchor=1000.0, medians=slow)))
    found = guard.judge(history, ["run08"])
    lines = guard.lines(found)

    assert [item.drift.warns for item in found] == [False, True, True]
    for line, name in zip(lines, ("flush_2", "galera3"), strict=True):
        assert all(fact in line for fact in (name, "-33 %", "anchor", "last 8 runs", history.entries[0].repeat))


def test_a_slower_machine_slows_the_anchor_too_and_is_no_warning():
    """Everything is a third slower."""
    before = entries(STEADY, anchor=1000.0)
    slow = {name: value / 1.5 for name, value in before[0].medians.items()}
    history = History((*before, *entries([1.84], first=8, anchor=1000.0 / 1.5, medians=slow)))

    assert guard.lines(guard.judge(history, ["run08"])) == []


def test_a_hundred_simulated_healthy_histories_give_no_warning():
    """The newest run of each is judged, and no level changed. They have ratios, and speeds relative to the anchor.

    20 days each, on a machine that is 15 % (sd) faster or slower from day to day.
    """
    found, changes = [], []
    for seed in range(100):
        made = simulated(seed)
        history = History(tuple(made))
        found += guard.judge(history, [made[-1].run])
        changes += [change for item in views.claims(history) for change in item.changes]

    assert {item.subject for item in found} == {"ratio", "flush_2", "galera3"}
    assert all(item.drift.has_enough_runs for item in found)
    assert [line for line in guard.lines(found) if line.startswith("DRIFT")] == []
    assert changes == []


@pytest.mark.parametrize("slower", [{"flush_2": 0.6}, {"flush_2": 0.6, "galera3": 0.6}], ids=["one", "both"])
def test_a_regression_in_such_a_history_is_found(slower):
    """One variant that is 40 % slower changes the ratio; where both are, their speeds against the anchor tell."""
    missed = 0
    for seed in range(100):
        *earlier, last = simulated(seed)
        medians = {name: value * slower.get(name, 1.0) for name, value in last.medians.items()}
        ratio = last.ratio * slower.get("flush_2", 1.0) / slower.get("galera3", 1.0)
        new = dataclasses.replace(last, medians=medians, ratio=ratio)
        missed += not any(item.drift.warns for item in guard.judge(History((*earlier, new)), [new.run]))

    assert missed == 0
