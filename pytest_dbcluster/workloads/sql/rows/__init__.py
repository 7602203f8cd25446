"""Generated rows, for tables of which only the number of rows is given.

- ``generated_rows``: values by the type of each column.
- ``numbered_values``: different values of a column, for its unique index and for references to it.
"""

__all__ = ["generated_rows", "numbered_values"]
