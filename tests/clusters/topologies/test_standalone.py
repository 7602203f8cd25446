"""Standalone: no extra options, and exactly one node."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topologies.standalone import Standalone
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.fake import FakeProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.resolution import look_up


def test_it_adds_no_option():
    """A standalone server has the options of every node and no more."""
    assert Standalone().options("node1", ["node1"]) == {}


def test_more_nodes_are_refused():
    """The error names another topology as the way out; a run refuses two nodes before anything starts."""
    assert "another topology" in Standalone().wrong_size(2)
    assert Standalone().wrong_size(1) == ""
    with pytest.raises(ConfigError, match=r"^a standalone server is one node, not 2"):
        look_up(ClusterSpec("standalone", nodes=2), FakeProvisioner())
