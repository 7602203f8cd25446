"""The schema of a log's database: its tables, and which columns the parameters of a statement are for.

- ``schema_tables``: columns, keys and references. ``statement_roles``: the role of each parameter.
- ``conditions``: the conditions in WHERE and ON.
"""

__all__ = ["conditions", "schema_tables", "statement_roles"]
