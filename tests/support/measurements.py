"""Measurements in a fake laboratory, for the tests of what draws them."""

from __future__ import annotations

from pytest_dbcluster.measuring.measurement import Measurement, Rules
from tests.support.fakes import FakeLaboratory, noisy


def measurement(laboratory, **rules):
    """A measurement with a fixed seed."""
    return Measurement(laboratory, Rules(**{"seed": 7, **rules}))


def two(**fields):
    """A laboratory whose second variant takes half the time."""
    return FakeLaboratory(("slow", "fast"), **{"seconds": noisy(1.0, 0.5), **fields})


def measured(laboratory):
    """The rounds that count, warm-up left out."""
    return [one for one in laboratory.rounds if one[1] >= 0]
