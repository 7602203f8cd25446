"""``pt-online-schema-change``: it changes a copy of a table, keeps it up to date by triggers, and renames it.

https://docs.percona.com/percona-toolkit/pt-online-schema-change.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.events.maintenance.altered_table import AlterTable
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.releases.release import Release

CHANGED, TRIED = "Successfully altered", "Dry run complete"  # in its output
# Replicas are not looked for, and no version is sent to Percona.
OPTIONS = ("--recursion-method=none", "--no-version-check")


def fetch() -> Release:
    """The tool, fetched if needed. Raises ProvisionError, and Unsupported on a machine without apt."""
    from pytest_dbcluster.releases import catalogue, find

    return find.find(catalogue.SCHEMA_CHANGE)


def run(tool: Release, node: Node, change: AlterTable, schema: str, *, dry: bool = False) -> None:
    """Change a table through this node. Raises ProvisionError with the words of the tool.

    dry: make the copy, change it while it is empty, and drop it.
    """
    from pytest_dbcluster.clusters.bringing import bring
    from pytest_dbcluster.clusters.servers.data_template import client_file

    bring(tool, [node.host])
    table = f"F={client_file(node, tool.name)},D={schema},t={change.table}"
    done = node.host.run(
        [
            str(tool.program(tool.name)),
            "--dry-run" if dry else "--execute",
            f"--alter={change.change}",
            *OPTIONS,
            table,
        ],
        seconds=wait.SLOW_SECONDS,
    )
    if (TRIED if dry else CHANGED) not in done.stdout + done.stderr:
        raise ProvisionError(f"{tool.name} did not say that it is done: {(done.stdout + done.stderr)[-300:]}")
