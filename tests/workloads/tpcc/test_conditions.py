"""Which node is asked for a condition, and with which others."""

from __future__ import annotations

import collections
import contextlib

import pytest

from pytest_dbcluster.workloads.tpcc import conditions
from pytest_dbcluster.workloads.tpcc.conditions import CONDITIONS, SCANS, SCHEMA


def text(part):
    """The statement of a condition or a scan."""
    return part.sql.replace("{s}", SCHEMA)


class Asked:
    """A node on which all conditions hold but some; it counts what it is asked."""

    def __init__(self, name, broken=CONDITIONS):
        self.name = name
        self.statements = collections.Counter()
        self.settings = []
        self.others = []
        numbers = {one.number for one in broken}
        self._broken = {text(one) for one in broken} | {text(scan) for scan in SCANS if scan.numbers & numbers}

    @contextlib.contextmanager
    def separate(self):
        """Another connection, of which the node knows."""
        self.others.append(Asked(self.name))
        yield self.others[-1]

    def query(self, statement, seconds=0):
        """One violation for a statement about what is broken."""
        if statement.startswith("SET"):
            self.settings.append(statement)
            return []
        self.statements[statement] += 1
        return [("warehouse 1", 1, 2)] if statement in self._broken else []


EVERY = collections.Counter(map(text, [*CONDITIONS, *SCANS]))
SCANNED = frozenset().union(*(scan.numbers for scan in SCANS))


def test_every_node_is_asked_for_every_condition():
    """Where nobody has compared the nodes, for example those that survived another one."""
    nodes = [Asked("node1"), Asked("node2")]

    said = conditions.violations(nodes)

    assert [node.statements for node in nodes] == [EVERY, EVERY]
    assert len(said) == 2 * len(CONDITIONS)


@pytest.mark.parametrize("count", [1, 2, 3, 21])
def test_equal_nodes_divide_the_conditions(count):
    """Each condition is asked once; no node has two more scans and single conditions than another.

    A single node divides them between two connections.
    """
    nodes = [Asked(f"node{number}") for number in range(1, count + 1)]

    said = conditions.violations_of_equal(nodes)
    nodes += nodes[0].others

    assert sum((node.statements for node in nodes), collections.Counter()) == EVERY
    assert len(nodes) == max(2, count)
    in_scans = {text(one) for one in CONDITIONS if one.number in SCANNED}
    numbers = [sum(count for one, count in node.statements.items() if one not in in_scans) for node in nodes]
    assert max(numbers) - min(numbers) <= 1
    assert len(said) == len(CONDITIONS)
    assert said[0] == "condition 1 (W_YTD = sum(D_YTD)) on node1: warehouse 1: 1 and 2"


def test_conditions_of_a_scan_that_finds_nothing_are_not_asked():
    """One statement asks them at once. It finds a broken one too, and then all of its conditions are asked."""
    whole, broken = Asked("node1", []), Asked("node2", [CONDITIONS[11]])

    assert conditions.violations([whole]) == []
    (said,) = conditions.violations([broken])

    alone = {text(one) for one in CONDITIONS if one.number not in SCANNED}
    scan = next(scan for scan in SCANS if 12 in scan.numbers)
    assert set(whole.statements) == alone | {text(one) for one in SCANS}
    assert set(broken.statements) - set(whole.statements) == {text(CONDITIONS[n - 1]) for n in scan.numbers}
    assert said.startswith("condition 12 ")


def test_a_part_of_a_scan_is_asked_alone():
    """A caller who asks for some conditions asks for no others."""
    node = Asked("node1", [])

    assert conditions.violations([node], [CONDITIONS[9]]) == []
    assert set(node.statements) == {text(CONDITIONS[9])}


def test_sums_stay_in_memory_while_conditions_are_asked():
    """The server's settings are as before afterwards."""
    node = Asked("node1")
    conditions.violations([node])

    assert node.settings == [conditions.IN_MEMORY, conditions.AS_BEFORE]
