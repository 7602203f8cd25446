"""What CREATE TABLE shows of a table: its engine, whether it has a key, and which topologies replicate it."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.sql import SQLFiles, schema
from pytest_dbcluster.workloads.sql.language.lexer import SQLText
from tests.workloads.sql.directories import directory

KEYED = "(id INT PRIMARY KEY)"


@pytest.mark.parametrize(
    ("text", "engine", "keyed"),
    [
        (f"CREATE TABLE t {KEYED}", "", True),
        (f"CREATE TABLE t {KEYED} ENGINE=InnoDB", "InnoDB", True),
        (f"create table if not exists `t` {KEYED} engine MyISAM comment 'x'", "MyISAM", True),
        ("CREATE OR REPLACE TABLE t (id INT) ENGINE = 'Aria'", "Aria", False),
        ("CREATE TABLE t (a INT, b INT, CONSTRAINT x PRIMARY KEY (a, b))", "", True),
        ("CREATE TABLE t (a INT KEY, engine INT)", "", True),
        ("CREATE TABLE t (a INT, `key` INT, KEY (a), INDEX x (a))", "", False),
        ("CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES s (b))", "", False),
        ("CREATE TABLE t (a INT) ENGINE=InnoDB PARTITION BY KEY (a)", "InnoDB", False),
        ("CREATE TABLE t (a INT NOT NULL, UNIQUE KEY (a))", "", None),
        ("CREATE TABLE t (a SERIAL)", "", None),
        ("CREATE TABLE t LIKE s", "", None),
        ("CREATE TABLE t AS SELECT 1 AS a", "", None),
        (f"CREATE TABLE t {KEYED} ENGINE=MyISAM;\nALTER TABLE t ENGINE=InnoDB", "", None),
    ],
)
def test_a_statement_shows_engine_and_key(text, engine, keyed):
    """None is what only a server knows."""
    (found,) = schema.created_tables(SQLText("schema.sql", text))

    assert (found.name, found.engine, found.keyed) == ("t", engine, keyed)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=RocksDB;", {}),
        (
            "CREATE TABLE s (id INT PRIMARY KEY);\nCREATE TABLE t (id INT PRIMARY KEY) ENGINE=MEMORY;",
            dict.fromkeys(("galera", "group_replication"), "shop/schema.sql:2:1: table t has engine MEMORY, and "),
        ),
        ("CREATE TABLE t (id INT);", {"group_replication": "shop/schema.sql:1:1: table t has no primary key, and "}),
        ("CREATE TABLE t (id INT NOT NULL, UNIQUE (id));", {}),
    ],
)
def test_files_show_which_topologies_replicate_a_table(tmp_path, text, refused):
    """Before any server starts; what is not shown is not refused."""
    path = directory(tmp_path / "shop", {"workload.toml": None, "schema.sql": text, "browse.sql": "SELECT 1;\n"})
    workload = SQLFiles(path)

    for topology in ("standalone", "async_replication", "semisync", "galera", "group_replication"):
        assert workload.unfit(topology).startswith(refused.get(topology, ""))
        assert bool(workload.unfit(topology)) is (topology in refused)


def test_a_later_file_may_give_a_table_its_key(tmp_path):
    """After the data are loaded."""
    files = {
        "workload.toml": 'after_load = ["keys.sql"]\n',
        "schema.sql": "CREATE TABLE t (id INT);",
        "keys.sql": "ALTER TABLE t ADD PRIMARY KEY (id);",
    }
    path = directory(tmp_path / "shop", {**files, "browse.sql": "SELECT 1;\n"})

    assert SQLFiles(path).unfit("group_replication") == ""
