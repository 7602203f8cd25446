"""The clone plugin of MySQL: loaded on single servers for an event, and unloaded after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import ProvisionError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.releases.release import Release

LIBRARY = "mysql_clone.so"
STATUS = "SELECT state, error_no, error_message, source FROM performance_schema.clone_status"
LOCAL = "LOCAL INSTANCE"  # the source of a clone to a directory
READ_ONLY = "super_read_only"


def is_in(release: Release) -> bool:
    """Whether a release has the plugin."""
    from pytest_dbcluster.clusters.servers.data_template import plugin_directory

    return release.upstream == "mysql" and release.has(plugin_directory(release) / LIBRARY)


def load(node: Node) -> None:
    """Load the plugin on one server. Raises ProvisionError."""
    _run(node, f"INSTALL PLUGIN clone SONAME '{LIBRARY}'")


def unload(node: Node) -> None:
    """Unload the plugin on one server. Raises ProvisionError."""
    _run(node, "UNINSTALL PLUGIN clone")


def not_cloned(node: Node, *, local: bool = False) -> str:
    """Why a server has not cloned another one, as its performance_schema tells; empty if it has.

    local: whether it should have cloned itself, to a directory.
    """
    rows = node.query(STATUS)
    if not rows:
        return f"{node.name} has cloned nothing"
    state, number, text, source = rows[0]
    if (state, number) == ("Completed", 0) and (source == LOCAL) == local:
        return ""
    return f"the clone of {source} to {node.name} is {state}: {number} {text}"


def _run(node: Node, statement: str) -> None:
    """Run a statement on one server only, even if the server accepts no writes. Raises ProvisionError."""
    before = node.variables()[READ_ONLY]
    try:
        node.batch([f"SET GLOBAL {READ_ONLY} = OFF", statement, f"SET GLOBAL {READ_ONLY} = {before}"])
    except SQLError as error:
        node.query(f"SET GLOBAL {READ_ONLY} = {before}")
        raise ProvisionError(f"{statement}: {error}") from error
