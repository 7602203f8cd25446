"""Dumps as files: what is one, the tables that it makes, and what is left out of it. No server is started."""

from __future__ import annotations

import sys

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql import SQLFiles, compression, dump
from tests.support.dumps import packed
from tests.workloads.sql.directories import directory

BARE = {"workload.toml": None, "schema.sql": None, "browse.sql": "SELECT 1;\n"}
HEAD = "-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB, for debian-linux-gnu (x86_64)\n--\n"
TAIL = "\n-- Dump completed on 2026-11-26  6:41:00\n"
TABLES = """\
DROP TABLE IF EXISTS `items`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
CREATE TABLE `items` (
  `id` int(11) NOT NULL,
  `engine` varchar(9) DEFAULT 'PRIMARY',
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE `old ``ones` (
  `id` int(11) NOT NULL,
  KEY `id` (`id`)
) ENGINE=MyISAM;
CREATE TABLE marks (id INT);
ALTER TABLE marks ADD PRIMARY KEY (id);
INSERT INTO `items` VALUES (1,'
CREATE TABLE');
"""
REPLICATED = """\
SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN;
SET @@SESSION.SQL_LOG_BIN= 0;
SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '3e11fa47:1-5';
/*!40000 DROP DATABASE IF EXISTS `shop`*/;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `shop`;
CHANGE MASTER TO MASTER_LOG_FILE='b.1', MASTER_LOG_POS=5;
LOCK TABLES `my items` WRITE;
/*!40000 ALTER TABLE `my items` DISABLE KEYS */;
INSERT INTO `my items` VALUES ('DEFINER=`a`@`b`');
/*!40000 ALTER TABLE `my items` ENABLE KEYS */;
UNLOCK TABLES;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`app`@`%`*/ /*!50003 TRIGGER t AFTER INSERT ON items FOR EACH ROW BEGIN
SET @a = 1; END */;;
CREATE DEFINER=`app`@`10.0.%` PROCEDURE p() SELECT 1 ;;
DELIMITER ;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `v` AS select 1 */;
ALTER DATABASE `shop` CHARACTER SET utf8mb4;
SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;
"""


@pytest.fixture
def written(tmp_path):
    """``written(text, "dump.sql.gz")``: a file with this content."""

    def written(text, name="dump.sql"):
        path = tmp_path / name
        path.write_bytes(packed(text.encode(), name))
        return path

    return written


NAMES = ("dump.sql", "dump.sql.gz", "dump.sql.zst")


@pytest.mark.parametrize("name", NAMES)
def test_a_dump_needs_no_schema_and_no_manifest(tmp_path, name):
    """Its tables are those of its CREATE TABLE, and it is no transaction."""
    workload = SQLFiles(directory(tmp_path / "shop", {**BARE, name: packed((HEAD + TABLES + TAIL).encode(), name)}))

    assert workload.read.manifest.data == name
    assert [script.name for script, _ in workload.read.scripts] == ["browse"]
    assert workload.read.tables == ("items", "old `ones", "marks")
    assert workload.tables[1:] == ("dbcluster_shop.`old ``ones`", "dbcluster_shop.marks")
    assert [(table.engine, table.keyed, table.place.line) for table in workload.read.created] == [
        ("InnoDB", True, 5),
        ("MyISAM", False, 10),
        ("", None, 14),
    ]


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (HEAD, True),
        ("/*M!999999\\- enable the sandbox mode */ \n", True),
        ("/*!999999\\- enable the sandbox mode */ \n-- MySQL dump 10.13  Distrib 9.7.0, for Linux\n", True),
        ("/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n", True),
        ("/*!40101 SET @saved_cs_client     = @@character_set_client */;\n", True),
        ("-- my rows\nINSERT INTO items VALUES (:id);\n", False),
        ("/*!40101 SET NAMES utf8mb4 */;\n", False),
    ],
)
def test_the_begin_shows_what_is_a_dump(written, head, found):
    """With comments or without; any other file of SQL may read variables."""
    assert dump.is_dump(written(head + TABLES + TAIL), "shop/dump.sql") is found


def test_what_is_not_of_the_workload_is_left_out(written):
    """Databases, replication, locks, and the accounts that own triggers, routines and views."""
    found = [text.decode() for _, text in dump.statements(written(HEAD + REPLICATED + TAIL), "shop/dump.sql", 1000)]

    assert found == [
        "SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN",
        "INSERT INTO `my items` VALUES ('DEFINER=`a`@`b`')",
        "/*!50003 CREATE*/ /*!50017 */ /*!50003 TRIGGER t AFTER INSERT ON items FOR EACH ROW BEGIN\nSET @a = 1; END */",
        "CREATE  PROCEDURE p() SELECT 1",
        "/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013  SQL SECURITY DEFINER */\n/*!50001 VIEW `v` AS select 1 */",
    ]


def test_a_sweep_does_not_load_a_dump_again(tmp_path):
    """It has no variables, whatever stands in it after a colon."""
    text = HEAD + TABLES + "INSERT INTO items VALUES (':id \xfc');\n" + TAIL
    files = {**BARE, "workload.toml": "variables = {id = 5}\n", "browse.sql": "SELECT :id;\n"}
    path = directory(tmp_path / "shop", {**files, "dump.sql": text.encode("latin1")})

    assert len({SQLFiles(path, variables={"id": id_}).data_set for id_ in (1, 2)}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_dump_that_was_cut_is_refused(written, name):
    """Its last line is missing, though it ends with a whole statement."""
    with pytest.raises(ConfigError, match=r"shop/dump\.sql: this dump is not complete: its last line is not"):
        dump.created_tables(written(HEAD + TABLES, name), "shop/dump.sql")
    with pytest.raises(ConfigError, match=r"shop/dump\.sql(:\d+:1)?: this dump is not complete: its last line is not"):
        list(dump.statements(written(HEAD + TABLES, name), "shop/dump.sql", 1000))


def test_a_dump_that_was_cut_is_refused_beside_a_schema(tmp_path):
    """Before a server starts: the end of a file that is not compressed is read at once."""
    files = {"schema.sql": "CREATE TABLE items (id INT PRIMARY KEY);", "dump.sql": HEAD + TABLES}
    with pytest.raises(ConfigError, match=r"shop/dump\.sql: this dump is not complete"):
        SQLFiles(directory(tmp_path / "shop", {**BARE, **files}))


def test_a_table_has_its_statement_unless_it_is_changed_later(written):
    """So the server can make it without its rows."""
    items, _, marks = dump.created_tables(written(HEAD + TABLES + TAIL), "shop/dump.sql")

    assert items.statement.startswith("CREATE TABLE `items` (")
    assert items.statement.endswith(") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
    assert marks.statement == ""


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_compressed_file_that_was_cut_is_refused(written, name):
    """And one that only has the name of one."""
    path = written(HEAD + TABLES * 500 + TAIL, name)
    whole = path.read_bytes()
    for content in (whole[:-9], whole[: len(whole) // 2], b"no such file"):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=r"shop/dump\.sql: this file is damaged or was cut: .*; copy it again"):
            dump.created_tables(path, "shop/dump.sql")


def test_zstandard_needs_a_module(written, monkeypatch):
    """The message names the extra."""
    path = written(HEAD, "dump.sql.zst")
    monkeypatch.setitem(sys.modules, "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd", None)
    monkeypatch.delattr("backports.zstd", raising=False)
    words = r"^shop/dump\.sql\.zst: .* pip install 'pytest-dbcluster\[zstd\]'"
    with pytest.raises(ConfigError, match=words), compression.open_bytes(path, "shop/dump.sql.zst"):
        pass


def test_a_dump_has_one_database(written):
    """The place of the second one is named, at the start and while loading."""
    text = f"{HEAD}USE `shop`;\n{TABLES}USE `shop`;\nUSE `other`;\n{TAIL}"
    words = r"shop/dump\.sql:20:1: USE other: this dump has another database, shop, before it"
    with pytest.raises(ConfigError, match=words):
        dump.created_tables(written(text), "shop/dump.sql")
    with pytest.raises(ConfigError, match=words):
        list(dump.statements(written(text), "shop/dump.sql", 1000))


def test_compressed_data_count_with_their_rows(tmp_path):
    """An estimate of the tables' size on disk."""
    text = (HEAD + TABLES + TAIL).encode()
    sizes = {}
    for name in NAMES[:2]:
        path = directory(tmp_path / name / "shop", {**BARE, name: packed(text, name)})
        sizes[name] = SQLFiles(path).data_set_bytes / (path / name).stat().st_size

    assert sizes["dump.sql.gz"] > 3 * sizes["dump.sql"] > 0
