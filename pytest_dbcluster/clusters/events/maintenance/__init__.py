"""Maintenance: what people do to a cluster while it serves.

- ``alter``: a schema change.
- ``altered_table``: the table of a schema change, and its definition on a node.
- ``backup``: a backup of one node.
- ``clone_plugin``: the clone plugin of MySQL on single servers.
- ``join``: a node that was shut down joins again.
- ``large_transaction``: a transaction that writes many rows.
- ``rolling``: nodes that stop, change and start one after the other.
- ``schema_tool``: pt-online-schema-change on the host of a node.
- ``steps``: the changes of ``rolling``: a restart, other options, a newer release.
"""

__all__ = [
    "alter",
    "altered_table",
    "backup",
    "clone_plugin",
    "join",
    "large_transaction",
    "rolling",
    "schema_tool",
    "steps",
]
