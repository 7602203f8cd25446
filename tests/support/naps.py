"""A workload whose transactions sleep, so that its capacity does not depend on the machine."""

from __future__ import annotations

from pathlib import Path

from pytest_dbcluster.workloads.sql import SQLFiles


def naps(directory: Path, milliseconds: float | str, **fields: object) -> SQLFiles:
    """Four connections that sleep for so many milliseconds, which may be an expression, in rounds of .6 s."""
    (directory / "schema.sql").write_text("CREATE TABLE items (id INT PRIMARY KEY);")
    (directory / "data").mkdir(exist_ok=True)
    (directory / "data" / "items.csv").write_text("id\n1\n")
    (directory / "nap.sql").write_text(f"SELECT SLEEP({milliseconds} / 1000) FROM items WHERE id = 1;")
    return SQLFiles(directory, **{"threads": 4, "seconds": 0.6, **fields})
