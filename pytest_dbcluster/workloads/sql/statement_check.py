"""The server checks each statement of the transactions before a round: names of tables and columns, and syntax."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster.workloads.sql.language.lua_expressions import sql_literal
from pytest_dbcluster.workloads.sql.language.scripts import Script, all_statements
from pytest_dbcluster.workloads.sql.language.statements import PREPARABLE, Statement

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

NAME = "dbcluster_check"
UNSUPPORTED = 1295  # the server cannot prepare this kind of statement
# Errors that no view, routine or table of a later statement removes: unknown column, syntax, number of values.
LASTING = (1054, 1064, 1136)
Constants = Mapping[str, int | float | str | bool]


def check(
    node: Node,
    database: str,
    scripts: Sequence[tuple[Script, int]],
    constants: Constants,
    numbers: Collection[int] = (),
) -> None:
    """Prepare each statement on a node. Raises ConfigError with the place and the server's error.

    numbers: of the errors that count; empty for all.
    """
    from pytest_dbcluster.clusters.servers.connection import Connection, SQLError

    connection = Connection(node.name, node.endpoint, look=node.look)
    try:
        connection.query(f"USE `{database}`")
        for statement in (each for script, _ in scripts for each in all_statements(script.block)):
            if statement.verb not in PREPARABLE and not statement.reads_into:
                continue
            try:
                connection.query(f"PREPARE {NAME} FROM {sql_literal(_text(statement, constants))}")
            except SQLError as error:
                if error.lost:
                    raise
                if error.number != UNSUPPORTED and (not numbers or error.number in numbers):
                    raise statement.place.error(f"error {error.number}: {error.reason}") from None
    finally:
        connection.close()


def _text(statement: Statement, constants: Constants) -> str:
    return "".join(
        part if isinstance(part, str) else sql_literal(constants[part.name]) if part.name in constants else "?"
        for part in statement.parts
    )
