"""A budget that cannot decide the claims of a run, found before any test runs."""

from __future__ import annotations

import types

import pytest

from pytest_dbcluster import TPCC, ClusterSpec, MySQLSlap, SysBench
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.collection import reachable

ONE = ClusterSpec("standalone")


def fixed(measure):
    """A claim about rounds of 2 s."""
    a, b = measure(TPCC(seconds=2.0), on=[ONE, ONE.with_options(x=1)])
    assert b.beats(a)


def guarded(measure):
    """A guard about rounds of 2 s."""
    a, b = measure(TPCC(seconds=2.0), on=[ONE, ONE.with_options(x=1)])
    assert b.no_slower_than(a, by=0.1)


def longer(measure):
    """A claim about rounds of 5 s."""
    a, b = measure(SysBench(seconds=5), on=[ONE, ONE.with_options(x=1)])
    assert b.beats(a)


def free(measure):
    """A claim about rounds whose length is chosen."""
    a, b = measure(SysBench(), on=[ONE, ONE.with_options(x=1)])
    assert b.beats(a)


def drawn(measure):
    """A curve without a claim."""
    measure.sweep(TPCC(seconds=2.0), on=[ONE], threads=(1, 2)).draw(3)


def work(measure):
    """A claim about rounds with a fixed amount of work."""
    a, b = measure(MySQLSlap("write"), on=[ONE, ONE.with_options(x=1)])
    assert b.beats(a)


def item(function):
    """A measuring test."""
    return types.SimpleNamespace(nodeid=f"test_it.py::{function.__name__}", function=function)


def each(seconds):
    """The same budget for every test."""
    return lambda _: seconds


def test_rounds_that_are_too_long_are_refused():
    """With the smallest budget of all tests, so that one change suffices."""
    with pytest.raises(ConfigError) as caught:
        reachable.refuse([item(fixed), item(longer), item(work)], each(20.0))
    assert str(caught.value) == (
        "test_it.py::longer: a claim about sysbench oltp_read_write t16 cannot be decided: its first look comes after "
        "12 pairs, and 12 x 2 rounds of 5 s take 120 s: more than its budget of 20 s of measured time; the smallest "
        "budget that can decide it is --db-budget 120, or seconds=0.83 or less "
        "(2 tests of this run cannot be decided; this one needs most)"
    )
    reachable.refuse([item(fixed), item(longer), item(work)], each(120.0))


def test_rounds_whose_length_is_chosen_need_a_budget_for_the_shortest():
    """.3 s, twenty-four times; a stricter level looks later."""
    reachable.refuse([item(free)], each(7.2))
    with pytest.raises(ConfigError, match=r"the smallest budget that can decide it is --db-budget 8$"):
        reachable.refuse([item(free)], each(7.1))
    with pytest.raises(ConfigError, match=r"its first look comes after 17 pairs, .* is --db-budget 11$"):
        reachable.refuse([item(free)], each(7.2), alpha=0.0001)


def test_a_guard_needs_less_than_other_claims():
    """Its first look comes after 8 pairs, so less of a budget can decide it."""
    reachable.refuse([item(guarded)], each(32.0))
    with pytest.raises(ConfigError, match=r"its first look comes after 8 pairs, .* is --db-budget 32, or seconds=1.99"):
        reachable.refuse([item(guarded)], each(31.9))


def test_a_test_without_a_claim_of_its_own_is_warned():
    """A curve that is only drawn decides nothing; a claim in another function is not seen."""
    reachable.refuse([item(drawn)], each(31.0))
    (line,) = reachable.warnings([item(drawn), item(fixed)], each(31.0), "quick")

    assert line.startswith("test_it.py::drawn: if it claims something about tpcc w1 t4, it will not be decided: its ")
    assert reachable.warnings([item(drawn)], each(32.0), "quick") == []


@pytest.mark.parametrize(("profile", "budget", "smallest"), [("quick", 8.0, 12), ("paper", 120.0, 720)])
def test_a_fixed_amount_of_work_is_warned(profile, budget, smallest):
    """How long its rounds take is known only when they run: the line says what is usual."""
    reachable.refuse([item(work)], each(budget))
    (line,) = reachable.warnings([item(work)], each(budget), profile)

    assert line.startswith("claims about rounds with a fixed amount of work, such as mysqlslap's, may not be decided: ")
    assert line.endswith(f"; the smallest budget that can decide it is --db-budget {smallest}")
    assert reachable.warnings([item(work)], each(float(smallest)), profile) == []
    assert reachable.warnings([item(free)], each(budget), "quick") == []
