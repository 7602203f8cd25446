"""The schema of a log's database: its tables, and which columns the parameters of a statement are for.

- ``schema_tables``: columns, keys and references. ``statement_roles``: the role of each parameter.
"""

__all__ = ["schema_tables", "statement_roles"]
