"""Repetitions of an event with made-up figures, for the tests of claims about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.event_series import event_series_of, plan
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.rounds.outages.outage import Books, Outage, Returned, UsualLoad
from pytest_dbcluster.rounds.round import Round
from tests.support.fakes import FakeSource

LOAD = "tpcc w1 t8, kill other"


def outage(stall=6.1, *, lost=0, censored=False, **changes):
    """What a killed node of Galera costs."""
    given = {
        "event": "kill other",
        "node": "node3",
        "event_at": 1_700_000_005.0,
        "stall": stall,
        "stall_at": 0.01,
        "without_commit": stall + 0.2,
        "censored": censored,
        "read_stall": 0.4,
        "read_censored": False,
        "usual": UsualLoad(210.0, 180.0, 240.0, 0.004, 0.12),
        "committed": 2400,
        "errors": (),
        "commits_by_tenth": (21, 0, 22),
        "first_tenth": -1,
        "unknown": 1,
        "connections_lost": 2,
        "books": Books(1100, lost, 0, 1, 0),
        "marks": {"ended": 0.02, "evicted": 6.0},
        "returned": Returned(5.2, "IST"),
        "below_half": stall + 0.3,
        "missing": stall,
        "back_at": stall + 0.2,
        "without_redundancy": 14.5,
    }
    return Outage(**{**given, **changes})


@dataclasses.dataclass
class FakeEvents(FakeSource):
    """Repetitions with the figures ``outages(variant, number)``; number: of the repetition of this variant, from 0."""

    outages: Callable[[int, int], Outage] = lambda variant, number: outage()
    usual_seconds: float = 0.0
    ways: tuple[str, ...] = ("IST", "SST")

    def ways_back(self, variant: int) -> tuple[str, ...]:
        """Those of Galera, or none."""
        return self.ways

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """One made-up repetition."""
        number = sum(one[0] == variant for one in self.rounds)
        done = super().round(variant, block=block, position=position)
        return dataclasses.replace(done, wall=20.0, outage=self.outages(variant, number))


def series(*names, times=7, outages=None, keeps_books=True, finished=None, event_budget=float("inf"), **fields):
    """The series of these variants. outages: (variant, number) -> figures; finished: gets each answer that is read."""
    rules = Rules(seed=7, cap=times, budget=float("inf"), event_budget=event_budget)
    source = FakeEvents(names, lambda variant: 15.0, load=LOAD, outages=outages or (lambda *_: outage()), **fields)
    heard = {"finished": finished} if finished else {}
    made = Measurement(source, rules, plan=plan(len(names), times), **heard)
    return event_series_of(made, times, [keeps_books] * len(made.rounds))
