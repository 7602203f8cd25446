"""Directories of SQL files for tests."""

from __future__ import annotations

SCHEMA = """\
CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, stock INT NOT NULL);
CREATE TABLE sales (id INT AUTO_INCREMENT PRIMARY KEY, item INT NOT NULL, name VARCHAR(40));
"""
FILES = {
    "workload.toml": "rows = {items = 100, sales = 10}\nvariables = {items = 100}\n",
    "schema.sql": SCHEMA,
    "browse.sql": "\\set id random(1, :items)\nSELECT name, stock FROM items WHERE id = :id;\n",
}


def directory(path, files):
    """A directory with the usual files; ``files`` replaces some of them, as text or bytes; None leaves one out."""
    path.mkdir(parents=True)
    for name, text in {**FILES, **files}.items():
        if text is not None:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def query(setting, workload, statement):
    """The rows of a statement in the workload's database."""
    node = setting.cluster.nodes[0]
    return node.batch([f"USE {workload.database}", statement])[1]
