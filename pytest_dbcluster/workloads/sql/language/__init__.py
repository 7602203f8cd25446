r"""The language of transaction files: SQL with the meta commands of pgbench's scripts.

- ``lexer``: tokens of SQL, and places in files.
- ``statements``: what a statement does, and which statements are refused.
- ``expressions``: values of ``\set``. ``value_types``: their types.
- ``scripts``: a file as frozen values.
- ``flow``: its units, and checks of its transactions and variables.
- ``lua_code``: the Lua program of all files. ``lua_expressions``: its expressions.
"""

__all__: list[str] = []
