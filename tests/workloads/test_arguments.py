"""Numbers that a test gives: whole ones and seconds, and the words for all else."""

from __future__ import annotations

import math

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.arguments import round_seconds, whole


@pytest.mark.parametrize("given", ["4", True, 2.5, 4.0, None])
def test_what_is_no_whole_number_is_refused(given):
    """Text is none, nor is a truth value, nor a number with a point."""
    with pytest.raises(ConfigError) as caught:
        whole("tpcc threads", given, 1)

    assert str(caught.value) == f"tpcc threads={given!r}: it takes a whole number, 1 or more"


def test_a_whole_number_has_a_least():
    """It may be that one itself."""
    whole("sysbench point_selects", 0, 0)

    with pytest.raises(ConfigError, match=r"^sysbench point_selects=-1: it takes 0 or more$"):
        whole("sysbench point_selects", -1, 0)


@pytest.mark.parametrize("given", ["2", True, None])
def test_what_is_no_number_of_seconds_is_refused(given):
    """With what it takes instead."""
    with pytest.raises(ConfigError) as caught:
        round_seconds("tpcc seconds", given)

    assert str(caught.value) == f"tpcc seconds={given!r}: it takes a number of seconds above 0"


@pytest.mark.parametrize("given", [0, -1.5, math.inf, math.nan])
def test_a_round_takes_a_while_and_ends(given):
    """Neither no time nor all of it; fractions are as good as whole seconds."""
    round_seconds("tpcc seconds", 0.1)
    round_seconds("tpcc seconds", 2)

    with pytest.raises(ConfigError, match=r": it takes a finite number of seconds above 0$"):
        round_seconds("tpcc seconds", given)
