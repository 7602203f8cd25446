"""One server is one node."""

from __future__ import annotations

from pytest_dbcluster.clusters.topologies.standalone import Standalone


def test_it_adds_no_option():
    """It is the baseline of every cluster."""
    assert Standalone().options("node1", ["node1"]) == {}


def test_more_nodes_are_refused():
    """The error says what to take instead."""
    assert Standalone().wrong_size(1) == ""
    assert Standalone().wrong_size(2) == "a standalone server is one node, not 2; for more take another topology"
