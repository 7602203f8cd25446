"""Which node is asked for a condition."""

from __future__ import annotations

import collections

import pytest

from pytest_dbcluster.workloads.tpcc import conditions
from pytest_dbcluster.workloads.tpcc.conditions import CONDITIONS, SCHEMA


class Asked:
    """A node on which every condition is violated; it counts what it is asked."""

    def __init__(self, name):
        self.name = name
        self.statements = collections.Counter()

    def query(self, statement, seconds):
        """One violation, whatever the statement."""
        self.statements[statement] += 1
        return [("warehouse 1", 1, 2)]


EVERY = collections.Counter(one.sql.replace("{s}", SCHEMA) for one in CONDITIONS)


def test_every_node_is_asked_for_every_condition():
    """Where nobody has compared the nodes, for example those that survived another one."""
    nodes = [Asked("node1"), Asked("node2")]

    said = conditions.violations(nodes)

    assert [node.statements for node in nodes] == [EVERY, EVERY]
    assert len(said) == 2 * len(CONDITIONS)


@pytest.mark.parametrize("count", [1, 2, 3, 21])
def test_equal_nodes_divide_the_conditions(count):
    """Each condition is asked once; no node is asked for two more than another."""
    nodes = [Asked(f"node{number}") for number in range(1, count + 1)]

    said = conditions.violations_of_equal(nodes)

    assert sum((node.statements for node in nodes), collections.Counter()) == EVERY
    numbers = [node.statements.total() for node in nodes]
    assert max(numbers) - min(numbers) <= 1
    assert len(said) == len(CONDITIONS)
    assert said[0] == "condition 1 (W_YTD = sum(D_YTD)) on node1: warehouse 1: 1 and 2"
