"""Where the time of a run went: the groups of its phases, and the line about them."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest

from pytest_dbcluster.system.tracing import recorder, time_spent
from pytest_dbcluster.system.tracing.recorder import Recorder

PACKAGE = Path(recorder.__file__).parents[2]


def opened():
    """The phase of each span that the package opens with a constant name."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "span" and node.args:
                yield from (one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant))


@pytest.fixture
def recorded(monkeypatch):
    """A recorder of 200 s with these seconds by phase."""
    monkeypatch.setattr(time, "monotonic", lambda: 1200.0)

    def make(seconds, workers=0):
        made = Recorder(began=1000.0)
        made.seconds |= seconds
        made.workers = workers
        return made

    return make


def test_every_phase_belongs_to_one_group():
    """Those that the package opens, and no others."""
    grouped = [phase for phases in time_spent.GROUPS.values() for phase in phases]

    assert len(grouped) == len(set(grouped))
    assert {phase for phase in opened() if isinstance(phase, str)} | {"round", "warm-up"} == set(grouped)


def test_the_line_has_the_largest_group_first(recorded):
    """What lies outside all phases is last, with the groups that are too small to be named."""
    seconds = {"workload": 80.0, "drain": 2.0, "start": 30.0, "form": 10.0, "warm-up": 24.0, "chart": 0.4, "close": 6.0}
    spent = time_spent.by_group(recorded(seconds))

    assert sum(spent.values()) == pytest.approx(200)
    assert time_spent.line(spent) == (
        "where the time went: rounds 41 % (82 s), starts 20 % (40 s), warm-ups 12 % (24 s), stops 3 % (6.0 s), "
        "other 24 % (48 s)"
    )


def test_the_times_of_workers_are_added(recorded):
    """Two workers of 200 s have 400 s."""
    made = recorded({"page": 4.0})
    made.add_worker({"workload": 100.0})
    made.add_worker({"workload": 96.0, "start": 100.0})

    assert time_spent.line(time_spent.by_group(made), made.workers) == (
        "where the time of 2 workers went: rounds 49 % (196 s), starts 25 % (100 s), charts and page 1 % (4.0 s), "
        "other 25 % (100 s)"
    )


def test_a_run_without_servers_has_no_line(recorded):
    """Such as one that takes over all answers, or whose tests are skipped."""
    assert time_spent.by_group(recorded({"chart": 3.0, "page": 20.0, "close": 0.1})) == {}
    assert time_spent.line({}) == ""
