"""A pair of guests of a user who is not root."""

from __future__ import annotations

import re

import pytest

from tests.support.command import ROOT

pytestmark = pytest.mark.guests


def test_a_pair_is_the_same_without_root(home):
    """Its variants, its void rounds and its failover: the same tests, in a user namespace."""
    last = home.passed("-W", "error", f"{ROOT}/tests/clusters/topologies/drbd/test_topology_pair.py", seconds=900)

    assert re.match(r"5 passed in ", last)
