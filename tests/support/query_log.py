"""The general log of a server, as a table: what clients send."""

from __future__ import annotations

import contextlib


@contextlib.contextmanager
def logging_queries(node):
    """The server writes down what it is sent, with the microsecond."""
    node.query("SET GLOBAL log_output = 'TABLE'")
    node.query("TRUNCATE mysql.general_log")
    node.query("SET GLOBAL general_log = ON")
    try:
        yield
    finally:
        node.query("SET GLOBAL general_log = OFF")
        node.query("SET GLOBAL log_output = 'FILE'")
