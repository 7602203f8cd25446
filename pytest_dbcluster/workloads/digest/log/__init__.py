"""Reads a slow log or a general log, from its lines to classes of transactions, in constant memory.

- ``log_files``: entries of a log. ``statement_shapes``: statements without their literals.
- ``sessions``: what each connection did. ``transaction_classes``: classes with counts and samples.
"""

__all__ = ["log_files", "sessions", "statement_shapes", "transaction_classes"]
