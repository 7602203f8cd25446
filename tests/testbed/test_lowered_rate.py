"""A rate that turns out too high, on a real server that becomes slow after its capacity was measured."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

from pytest_dbcluster import formatting
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.rounds import open_loop
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.support.testbeds import ONE, OTHER, source

POINTS = SysBench("oltp_point_select", size=1000, threads=1, seconds=0.1, rate="70 %")
# Seconds: so long the process runs, then it is stopped for nine times as long. Its capacity may have been measured on a
# busy machine, which leaves a server a third of the speed that it has later.
PART = 0.01


@contextlib.contextmanager
def slowed(pid, said):
    """The process runs a tenth of the time during the block, until it was said that all rounds begin again."""
    over = threading.Event()

    def take_turns():
        while not over.wait(PART) and not lowered_lines(said):
            os.kill(pid, signal.SIGSTOP)
            over.wait(9 * PART)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=take_turns)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def lowered_lines(said):
    """The lines that say that the rate was lowered."""
    return [line for line in said if line.endswith("; all rounds begin again")]


def test_a_rate_that_a_real_server_cannot_keep_is_lowered_once_for_both_variants(pool, monkeypatch):
    """The rounds so far are dropped, what happened is said, and all rounds that count have the lower rate."""
    monkeypatch.setattr(open_loop, "BLOCKS", (2, 2))  # the capacity need not be precise
    said = []
    made = source(pool, POINTS, ONE, OTHER, progress=said.append)
    made.round(0, block=0, position=0)
    asked = made.arrival_rate.rate
    measurement = Measurement(made, Rules(1))
    with slowed(pool.clusters[0].nodes[0].process.pid, said):
        measurement.drawing.draw((0, 1))
    (lowered,) = lowered_lines(said)

    assert f"lowered from {formatting.amount(asked)}/s: " in lowered
    assert made.arrival_rate.rate < 0.8 * asked
    assert {done.outcome.rate for rounds in measurement.rounds for done in rounds} == {made.arrival_rate.rate}
