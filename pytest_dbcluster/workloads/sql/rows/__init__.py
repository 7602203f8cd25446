"""Rows of tables: those of files, and generated ones for tables of which only the number of rows is given.

- ``file_rows``: the rows of a file of data, and their SQL text.
- ``generated_rows``: values by the type of each column.
- ``numbered_values``: different values of a column, for its unique index and for references to it.
"""

__all__ = ["file_rows", "generated_rows", "numbered_values"]
