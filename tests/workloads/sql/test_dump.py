"""Dumps of real servers, as mariadb-dump and mysqldump write them: what was dumped is what a workload has."""

from __future__ import annotations

import re

import pytest

from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.workload import Setting
from tests.support import dumps
from tests.support.dumps import packed
from tests.workloads.sql.directories import directory

ORIGIN = "origin"
ALL_BYTES = "0x" + bytes(range(256)).hex()
ODD = "'O\\'Brien; -- no /* comment */ \\\\ \\n \\r \\0 \\Z \\\" ` ü \U0001f600 DELIMITER ;;'"
MADE = (
    f"CREATE DATABASE {ORIGIN} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    f"USE {ORIGIN}",
    "CREATE TABLE kinds (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) CHARACTER SET utf8mb4, packed BLOB, "
    "latin VARCHAR(9) CHARACTER SET latin1, at TIMESTAMP NULL, twice INT AS (bits * 2) STORED, bits BIT(9), f DOUBLE, "
    "shape POINT, doc JSON, n DECIMAL(9, 3))",
    "CREATE TABLE a_child (id INT PRIMARY KEY, kind INT, FOREIGN KEY (kind) REFERENCES kinds (id))",
    "CREATE TABLE counted (n INT PRIMARY KEY, total INT NOT NULL)",
    "CREATE TABLE many (id INT PRIMARY KEY, words VARCHAR(200))",
    "CREATE TABLE empty_one (id INT PRIMARY KEY)",
    "INSERT INTO counted VALUES (0, 0), (1, 0)",
    "CREATE TRIGGER counts AFTER INSERT ON kinds FOR EACH ROW BEGIN -- it's one more\n"
    "UPDATE counted SET total = total + 1 WHERE n = 1; /* ' */ END",
    "CREATE PROCEDURE adds(IN a INT) BEGIN INSERT INTO empty_one VALUES (a); SELECT 'x;y' AS z; END",
    "CREATE VIEW seen AS SELECT id, name FROM kinds WHERE id > 1",
    "SET @@sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')",
    f"INSERT INTO kinds (id, name, packed, latin, at, bits, f, shape, doc, n) VALUES (0, {ODD}, {ALL_BYTES}, 'ü', "
    "'2020-03-29 02:30:00', b'101', 0.1, POINT(1, 2), '{\"a\": \"\\\\\\\\\"}', -1.5), (7, NULL, '', '', NULL, NULL, "
    "1e300, NULL, NULL, 0)",
    "INSERT INTO a_child VALUES (1, 7), (2, 0), (3, NULL)",
    "INSERT INTO many SELECT a.n * 4096 + b.n, REPEAT('x;\\'', 1 + MOD(b.n, 40)) FROM "
    "(SELECT 0 AS n UNION SELECT 1) a, (WITH RECURSIVE s AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM s "
    "WHERE n < 200) SELECT n FROM s) b",
)
COUNTS = (
    "SELECT (SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = '{0}'), "
    "(SELECT COUNT(*) FROM information_schema.views WHERE table_schema = '{0}')"
)
TABLES = ("a_child", "counted", "empty_one", "kinds", "many")
WITHOUT_KINDS = ("--ignore-table=origin.kinds", "--ignore-table=origin.seen")
BARE = {"workload.toml": None, "schema.sql": None, "browse.sql": "SELECT COUNT(*) FROM many;\n"}


def make_origin(node):
    """A database with what is hard to dump."""
    connection = Connection(node.name, node.endpoint)
    connection.run([f"DROP DATABASE IF EXISTS {ORIGIN}", *MADE])
    connection.close()


@pytest.fixture(scope="module")
def mariadb_server(standalone):
    """The lone server of MariaDB with the database."""
    make_origin(standalone.nodes[0])
    yield standalone
    standalone.nodes[0].query(f"DROP DATABASE {ORIGIN}")


@pytest.fixture(scope="module")
def mysql_server(bring, mysql):
    """A lone server of MySQL with the database."""
    made = bring("standalone", 1, mysql)
    make_origin(made.nodes[0])
    yield made
    made.close()


@pytest.fixture(params=["mariadb", "mysql"])
def setting(request, client, said):
    """A lone server of each vendor, with the database."""
    cluster = request.getfixturevalue(f"{request.param}_server")
    yield Setting(cluster, client, cluster.nodes[0].release, "quick", said.append)
    cluster.nodes[0].query("DROP DATABASE IF EXISTS dbcluster_shop")


def dumped(setting, *options):
    """What the vendor's program writes about the database."""
    return dumps.dumped(setting.cluster.nodes[0], *options, *([] if ORIGIN in options else [ORIGIN]))


def sums(setting, database):
    """A digest of each table."""
    names = ", ".join(f"{database}.{table}" for table in TABLES)
    return [value for _, value in setting.cluster.nodes[0].query(f"CHECKSUM TABLE {names}")]


def populated(setting, tmp_path, files):
    """A workload of these files whose tables are there."""
    workload = SQLFiles(directory(tmp_path / "shop", {**BARE, **files}), threads=1, seconds=0.1)
    workload.prepare(setting)
    return workload


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--hex-blob", "--routines", "--single-transaction", "--skip-dump-date"),
        ("--skip-extended-insert", "--complete-insert", "--no-autocommit"),
        ("--databases", ORIGIN, "--add-drop-database"),
        ("--compact",),
        ("--skip-opt", "--create-options", "--skip-comments"),
    ],
    ids=lambda options: " ".join(options) or "usual",
)
def test_a_dump_makes_the_same_tables(setting, tmp_path, options):
    """All bytes, characters and types; triggers come after the rows, and count none of them again."""
    workload = populated(setting, tmp_path, {"dump.sql": dumped(setting, *options)})
    node = setting.cluster.nodes[0]

    assert sorted(workload.read.tables) == list(TABLES)
    assert sums(setting, workload.database) == sums(setting, ORIGIN)
    assert node.query(COUNTS.format(workload.database)) == node.query(COUNTS.format(ORIGIN)) == [(1, 1)]
    assert node.query(f"SELECT total FROM {workload.database}.counted WHERE n = 1") == [(2,)]
    assert workload.run(setting).good > 0


@pytest.mark.parametrize(("setting", "ending"), [("mariadb", ".gz"), ("mysql", ".zst")], indirect=["setting"])
def test_a_dump_may_be_compressed(setting, tmp_path, ending):
    """The file is decompressed while it is read."""
    workload = populated(setting, tmp_path, {f"dump.sql{ending}": packed(dumped(setting), ending)})

    assert sums(setting, workload.database) == sums(setting, ORIGIN)


def test_rows_may_be_dumped_without_tables(setting, tmp_path):
    """Then the schema is a file of its own, such as a dump without rows."""
    files = {
        "schema.sql": dumped(setting, "--no-data", "--skip-triggers"),
        "dump.sql.gz": packed(dumped(setting, "--no-create-info", "--skip-triggers"), ".gz"),
    }
    workload = populated(setting, tmp_path, files)

    assert sums(setting, workload.database) == sums(setting, ORIGIN)


def test_bytes_reach_the_server_as_they_are(setting, tmp_path):
    """In the character set that the dump names."""
    text = dumped(setting, "--default-character-set=latin1", *WITHOUT_KINDS, "--skip-triggers")
    extra = "SET NAMES latin1;\nCREATE TABLE kinds (id INT PRIMARY KEY, name VARCHAR(9) CHARACTER SET utf8mb4);\n"
    extra += "INSERT INTO kinds VALUES (1, '\xfc;');\n"
    at = text.index(b"\n/*!40103 SET TIME_ZONE=@OLD")
    workload = populated(setting, tmp_path, {"dump.sql": text[:at] + b"\n" + extra.encode("latin1") + text[at:]})

    assert setting.cluster.nodes[0].query(f"SELECT HEX(name) FROM {workload.database}.kinds") == [("C3BC3B",)]


def test_the_triggers_of_a_dump_work(setting, tmp_path):
    """For the account of loads too, although the account that made them is not the one of the dump."""
    text = dumped(setting)
    text, made = re.subn(rb"DEFINER=`[^`]*`@`[^`]*`", b"DEFINER=`nobody`@`nowhere`", text)
    files = {
        "dump.sql": text,
        "workload.toml": 'reset = "none"\n',
        "browse.sql": "BEGIN;\nINSERT INTO kinds (name) VALUES ('a');\nSELECT * FROM seen LIMIT 1;\nCOMMIT;\n",
    }
    workload = populated(setting, tmp_path, files)
    committed = workload.run(setting).commits

    assert made >= 2
    assert committed > 0
    assert setting.cluster.nodes[0].query(f"SELECT total FROM {workload.database}.counted WHERE n = 1") == [
        (2 + committed,)
    ]


def test_a_wrong_column_is_found_before_the_rows_of_a_dump(setting, tmp_path):
    """The CREATE TABLE statements of the dump tell it, in the place of a schema; no row was loaded."""
    files = {"dump.sql": dumped(setting), "browse.sql": "SELECT name FROM seen;\nSELECT wrds FROM many;\n"}

    with pytest.raises(ConfigError, match=r"^shop/browse\.sql:2:1: error 1054: Unknown column 'wrds' in "):
        populated(setting, tmp_path, files)
    assert setting.cluster.nodes[0].query("SELECT COUNT(*) FROM dbcluster_shop.many") == [(0,)]


def test_what_else_a_dump_makes_may_be_used(setting, tmp_path):
    """Views, routines and later columns are not there before the rows, and that is no error."""
    files = {
        "dump.sql": dumped(setting, "--routines"),
        "more.sql": "ALTER TABLE many ADD price INT NOT NULL DEFAULT 5;",
        "workload.toml": 'after_load = ["more.sql"]\nreset = "none"\n',
        "browse.sql": "SELECT name FROM seen;\nSELECT price FROM many LIMIT 1;\n",
        "add.sql": "CALL adds(NULL);\n",
    }
    workload = SQLFiles(directory(tmp_path / "shop", {**BARE, **files}), threads=1, seconds=0.1)
    workload.prepare(setting)

    assert sums(setting, workload.database)[:-1] == sums(setting, ORIGIN)[:-1]  # the last table has one more column
    assert setting.cluster.nodes[0].query(f"SELECT MAX(price) FROM {workload.database}.many") == [(5,)]


def test_an_error_of_the_server_names_the_line(setting, tmp_path):
    """The line of the file after it was decompressed."""
    text = dumped(setting).replace(b"INSERT INTO `many` VALUES", b"INSERT INTO `mny` VALUES")
    line = 1 + text[: text.index(b"INSERT INTO `mny`")].count(b"\n")
    files = {"dump.sql.gz": packed(text, ".gz")}

    with pytest.raises(ConfigError, match=rf"^shop/dump\.sql\.gz:{line}:1: error 1146: Table 'dbcluster_shop\.mny' "):
        populated(setting, tmp_path, files)


def test_a_statement_that_the_server_would_not_accept_names_its_line(setting, tmp_path):
    """It is longer than a packet of the server may be."""
    node = setting.cluster.nodes[0]
    text = b"CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT);\nINSERT INTO t VALUES (1, '" + b"x" * 1_100_000 + b"');\n"
    ((usual,),) = node.query("SELECT @@max_allowed_packet")
    node.query("SET GLOBAL max_allowed_packet = 1048576")
    try:
        with pytest.raises(ConfigError, match=r"^shop/dump\.sql:2:1: this statement has more than 1048575 bytes, .*"):
            populated(setting, tmp_path, {"dump.sql": text})
    finally:
        node.query(f"SET GLOBAL max_allowed_packet = {usual}")


def test_tables_that_only_the_data_make_are_refused(setting, tmp_path):
    """They would not be compared between nodes."""
    files = {"schema.sql": "CREATE TABLE many (id INT PRIMARY KEY);\n", "dump.sql": dumped(setting, "--skip-triggers")}

    with pytest.raises(
        ConfigError, match=r"^shop/dump\.sql: it makes table a_child, and the schema has no CREATE TABLE"
    ):
        populated(setting, tmp_path, files)


def test_a_dump_of_the_other_vendor_names_what_the_server_refuses(mysql_server, standalone, client, tmp_path):
    """MySQL's collation is unknown to this MariaDB."""
    origin = Setting(mysql_server, client, mysql_server.nodes[0].release, "quick", print)
    text = dumped(origin, *WITHOUT_KINDS, "--skip-triggers")
    text = text.replace(b"COLLATE=utf8mb4_general_ci", b"COLLATE=utf8mb4_0900_ai_ci")
    setting = Setting(standalone, client, standalone.nodes[0].release, "quick", print)
    try:
        with pytest.raises(ConfigError, match=r"^shop/dump\.sql:\d+:1: error 1273: Unknown collation"):
            populated(setting, tmp_path, {"dump.sql": text})
    finally:
        standalone.nodes[0].query("DROP DATABASE IF EXISTS dbcluster_shop")
