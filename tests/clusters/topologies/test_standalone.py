"""One server is one node."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topologies.standalone import Standalone
from pytest_dbcluster.errors import ConfigError


def test_it_adds_no_option():
    """It is the baseline of every cluster."""
    assert Standalone().options("node1", ["node1"]) == {}


def test_more_nodes_are_refused():
    """The error says what to take instead."""
    with pytest.raises(ConfigError) as caught:
        Standalone().options("node1", ["node1", "node2"])

    assert str(caught.value) == "a standalone server is one node, not 2; for more take another topology"
