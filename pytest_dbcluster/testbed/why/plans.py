"""Plans: asks a server how it executes statements."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.measuring.why.observation import PlanStep
from pytest_dbcluster.testbed.why.readings import StatementExample

EXPLAINED = re.compile(r"\s*\(*(SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH)\b", re.IGNORECASE)
EXPLAIN = "EXPLAIN FORMAT=TRADITIONAL "


def plans(node: Node, examples: Mapping[str, StatementExample]) -> dict[str, tuple[PlanStep, ...]]:
    """By statement, the plan of its example on this node; without the statements that EXPLAIN refuses.

    The plans are those of a new session, with the global variables of now. Raises SQLError if the server is lost.
    """
    found = {}
    with node.separate() as connection:
        for statement, example in examples.items():
            if EXPLAINED.match(example.text) and (plan := _plan(connection, example)):
                found[statement] = plan
    return found


def _plan(connection: Connection, example: StatementExample) -> tuple[PlanStep, ...]:
    """The plan; empty if the server refuses it, such as for a text that performance_schema has cut."""
    try:
        connection.query(f"USE `{example.schema}`")
        return tuple(map(plan_step, connection.records(f"{EXPLAIN}{example.text}")))
    except SQLError as error:
        if error.lost:
            raise
        return ()


def plan_step(row: Mapping[str, str]) -> PlanStep:
    """A row of EXPLAIN, whose columns have names in lower case."""
    return PlanStep(row["table"], row["type"], row["key"], int(float(row["rows"] or 0)), row["extra"])
