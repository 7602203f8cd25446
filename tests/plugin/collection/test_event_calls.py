"""What the source of a test says about its repetitions of events."""

from types import SimpleNamespace

import pytest

from pytest_dbcluster.plugin.collection import event_calls


def alone(measure, workload, event, spec):
    """Six repetitions of one variant."""
    killed = measure.event(workload, event, on=spec, times=6)
    assert killed.loses_nothing()


def usual_number(measure, workload, event, spec):
    """The usual number for one variant."""
    assert measure.event(workload, event, on=spec).loses_nothing()


def three_variants(measure, workload, events, spec):
    """The usual number for each of three variants."""
    first, _, _ = measure.event(workload, events, on=spec)
    assert first.loses_nothing()


def two_calls(measure, workload, event, specs, times):
    """Fourteen repetitions of each of two variants, and a number that the source does not have."""
    one, two = measure.event(workload, event, on=specs, times=14)
    assert two.shorter("stall", than=one)
    assert measure.event(workload, event, on=specs[0], times=times).loses_nothing()


def rounds(measure, workload, specs):
    """No event."""
    default, candidate = measure(workload, on=specs)
    assert candidate.beats(default)


def another_event(loop, measure):
    """An event of something else."""
    loop.event("begin")


@pytest.mark.parametrize(
    ("function", "repetitions"),
    [(alone, 6), (usual_number, 11), (three_variants, 21), (two_calls, 39), (rounds, 0), (another_event, 0), (len, 0)],
)
def test_the_source_of_a_test_shows_its_repetitions(function, repetitions):
    """Times, and the names that the call is assigned to; the default for a number that the source does not have."""
    assert event_calls.repetitions(SimpleNamespace(function=function)) == repetitions


def test_a_function_without_a_source_has_no_known_repetitions():
    """It counts as any other test."""
    made: dict[str, object] = {}
    exec("def made(measure):\n    measure.event(1, 2, on=3)", made)

    assert event_calls.repetitions(SimpleNamespace(function=made["made"])) == 0
