"""SQL files: ``workload`` has the workload, ``language/`` the language of its transactions.

- ``manifest``: workload.toml. ``directory``: all files of a directory, with digests.
- ``schema``: the statements of files that make tables.
- ``loading``: fills the tables from files. ``rows/``: rows of which only the number is given.
- ``dump``: the files of mysqldump. ``statement_stream``: the statements of a file. ``compression``: .gz and .zst.
- ``tables``: what the tables held after loading, and how new rows are removed.
- ``table_statistics``: the statistics of the tables, equal on all nodes.
- ``example``: a small shop, which ``dbcluster init`` writes.
- ``statement_check``: the server checks statements before a round.
"""

from pytest_dbcluster.workloads.sql.workload import SQLFiles

__all__ = ["SQLFiles", "example"]
