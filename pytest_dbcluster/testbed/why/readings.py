"""Readings: counts of statements, waits and status variables of the servers of a cluster, and examples of statements.

They come from performance_schema, which has the sums since the start of a server; times are picoseconds there.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.clusters.servers.node import Node, of_each
from pytest_dbcluster.measuring.why.observation import ServerCounts, StatementCounts, statement_text

SYSTEM = "('information_schema', 'mysql', 'performance_schema', 'sys', 'dbcluster_control')"
STATEMENTS = f"""SELECT digest_text, count_star, sum_timer_wait / 1e12, sum_lock_time / 1e12, sum_rows_examined,
sum_rows_sent, sum_created_tmp_tables, sum_created_tmp_disk_tables
FROM performance_schema.events_statements_summary_by_digest WHERE schema_name NOT IN {SYSTEM}"""
WAITS = """SELECT event_name, sum_timer_wait / 1e12
FROM performance_schema.events_waits_summary_global_by_event_name"""
STATUS = "SHOW GLOBAL STATUS"
# Group Replication has its counts here, and a server outside of a group has none.
GROUP = "SELECT * FROM performance_schema.replication_group_member_stats WHERE member_id = @@server_uuid"
COMPARED = ("innodb_", "wsrep_", "handler_", "select_", "sort_", "gr_", "count_")  # begin of compared status variables
EXAMPLES = {
    "mysql": f"""SELECT digest_text, schema_name, query_sample_text
FROM performance_schema.events_statements_summary_by_digest WHERE schema_name NOT IN {SYSTEM}""",
    "mariadb": f"""SELECT digest_text, current_schema, MIN(sql_text)
FROM performance_schema.events_statements_history_long
WHERE current_schema NOT IN {SYSTEM} GROUP BY digest_text, current_schema""",
}
# Off at the start of a server; MariaDB has examples of statements only in its history.
KEEP_HISTORY = """UPDATE performance_schema.setup_consumers SET enabled = 'YES'
WHERE name IN ('events_statements_current', 'events_statements_history', 'events_statements_history_long')"""


@dataclasses.dataclass(frozen=True)
class StatementExample:
    """An executed statement."""

    schema: str
    """Its default database."""

    text: str
    """Its text, with values."""


def read(nodes: Sequence[Node]) -> ServerCounts:
    """The counts of all nodes since their starts, as sums. Raises SQLError, also if access is denied."""
    statements: dict[str, StatementCounts] = collections.defaultdict(StatementCounts)
    waits: dict[str, float] = collections.defaultdict(float)
    status: dict[str, float] = collections.defaultdict(float)
    for of_statements, of_waits, of_status in of_each(nodes, _of_node):
        for text, *counts in of_statements:
            statements[statement_text(str(text))] += StatementCounts(*map(float, counts))
        for event, seconds in of_waits:
            waits[str(event)] += float(seconds)
        for name, value in of_status:
            with contextlib.suppress(ValueError):  # texts, such as ON
                status[name] += float(value)
    return ServerCounts(dict(statements), dict(waits), dict(status))


Rows = list[tuple[Any, ...]]


def _of_node(node: Node) -> tuple[Rows, Rows, Rows]:
    statements, waits, status = node.batch([STATEMENTS, WAITS, STATUS])
    pairs = [(str(name).lower(), value) for name, value in status]
    if node.release.upstream == "mysql":
        pairs += [pair for row in node.records(GROUP) for pair in row.items()]
    return statements, waits, [(name, value) for name, value in pairs if name.startswith(COMPARED)]


def keep_examples(nodes: Sequence[Node]) -> None:
    """Let servers keep the texts of statements from now on."""
    of_each(nodes, lambda node: node.query(KEEP_HISTORY))


def examples(nodes: Sequence[Node]) -> dict[str, StatementExample]:
    """By statement, one execution of it; without statements whose texts the servers do not have."""
    found = {}
    for rows in of_each(nodes, lambda node: node.query(EXAMPLES[node.release.upstream])):
        for text, schema, example in rows:
            if text and example:
                found[statement_text(str(text))] = StatementExample(str(schema), str(example))
    return found
