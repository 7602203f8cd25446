"""Suites on made-up rounds, ``measure(load, on=[seconds, ...])``, and how pytest refuses a run."""

from __future__ import annotations

import pytest

HOLDS = "def test_it(measure):\n    slow, fast = measure(0, on=[1.0, 0.5])\n    assert fast.beats(slow)\n"
FAILS = "def test_it(measure):\n    slow, fast = measure(0, on=[1.0, 0.5])\n    assert slow.beats(fast)\n"
OPEN = "def test_it(measure):\n    one, other = measure(0, on=[1.0, 1.0])\n    assert one.beats(other)\n"
PLAIN = "def test_plain():\n    pass\n"
TIMED = """
from pytest_dbcluster import TPCC, ClusterSpec

ONE = ClusterSpec("standalone")


def test_it(measure):
    a, b = measure(TPCC(seconds=2.0), on=[ONE, ONE.with_options(lock_wait_timeout=9)])
    assert b.beats(a)
"""


def refusal(result):
    """The one line with which a run was refused."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    return line.removeprefix("ERROR: ")
