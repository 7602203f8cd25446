"""The rows of a digested workload: what the log tells of the tables, and how generated rows become like them.

- ``found_rows``: the share of a table's rows that meets a condition. ``fitting``: the statements of ``fit.sql``.
"""

__all__ = ["fitting", "found_rows"]
