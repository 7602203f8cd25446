"""Measurements in a fake source, for the tests of what draws them."""

from __future__ import annotations

from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from tests.support.fakes import FakeSource, noisy


def measurement(source, *, compare_servers=None, **rules):
    """A measurement with a fixed seed."""
    return Measurement(source, Rules(**{"seed": 7, **rules}), compare_servers=compare_servers)


def two(**fields):
    """A source whose second variant takes half the time."""
    return FakeSource(("slow", "fast"), **{"seconds": noisy(1.0, 0.5), **fields})


def measured(source):
    """The rounds that count, warm-up left out."""
    return [one for one in source.rounds if one[1] >= 0]
