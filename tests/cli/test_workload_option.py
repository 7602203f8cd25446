"""The option ``--workload``: tools, directories of SQL files, and scripts."""

from __future__ import annotations

import pytest

from pytest_dbcluster.cli.workload_option import workload_of
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.script import LuaScript
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.workloads.sql.directories import directory

ORDER = "INSERT INTO sales (item) VALUES (1);\n"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A directory ``shop`` with two transactions, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return directory(tmp_path / "shop", {"order.sql": ORDER})


@pytest.mark.parametrize(
    ("text", "threads", "expected"),
    [
        ("tpcc", None, TPCC()),
        ("tpcc", 8, TPCC(threads=8)),
        ("sysbench:oltp_read_only", 4, SysBench("oltp_read_only", threads=4)),
        ("mysqlslap:mixed", 20, MySQLSlap("mixed", concurrency=20)),
    ],
)
def test_a_workload_is_written_with_its_mode(text, threads, expected):
    """``--threads`` is the number of connections, whatever the workload calls it."""
    assert workload_of(text, threads) == expected


@pytest.mark.parametrize("text", ["shop", "shop/", "./shop"])
def test_a_directory_is_a_workload_of_sql_files(shop, text):
    """All ways to write it are one workload, so that all have one name and one calibration."""
    assert workload_of(text, None) == SQLFiles("shop")
    assert workload_of(text, 4) == SQLFiles("shop", threads=4)


def test_transactions_after_a_colon_replace_those_of_the_directory(shop):
    """They have weights as in ``workload.toml``."""
    some = workload_of("shop/:order.sql@2,browse.sql", None)

    assert some == SQLFiles("shop", transactions=["order.sql@2", "browse.sql"])


def test_a_tool_wins_over_a_directory_of_its_name(shop):
    """A path with a slash is always a directory."""
    shop.rename(shop.with_name("tpcc"))

    assert workload_of("tpcc", None) == TPCC()
    assert workload_of("tpcc/", None) == SQLFiles("tpcc")


def test_a_script_is_a_workload(tmp_path, monkeypatch):
    """Its path ends with .lua; it may have a number of threads."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"own\.lua: there is no such file"):
        workload_of("own.lua", None)
    (tmp_path / "own.lua").write_text("function event() end")

    assert workload_of("own.lua", 3) == LuaScript("own.lua", threads=3)
    assert workload_of(str(tmp_path / "own.lua"), None).option == "own.lua"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tpcd", "unknown workload 'tpcd'; known: tpcc, sysbench, mysqlslap, a directory with SQL files such as shop/"),
        ("tpcd", "; did you mean tpcc?"),
        ("shpo", "; did you mean shop/?"),
        ("sysbench", "unknown script of sysbench ''; known: oltp_delete"),
        ("sysbench:oltp_readwrite", "did you mean oltp_read_write?"),
        ("mysqlslap:writes", "did you mean write?"),
        ("tpcc:mix", "tpcc has no modes"),
        ("shops/", "--workload shops/: there is no such directory; dbcluster init --workload shop/ writes an example"),
        ("shop/browse.sql", "--workload shop/browse.sql: this is a file; name its directory"),
        ("shop/:brows.sql", "there is no file 'brows.sql'; did you mean browse.sql?"),
        ("shop/:browse.sql@0", "a weight is 1 or more"),
    ],
)
def test_a_wrong_workload_is_answered_with_the_known_ones(shop, text, sentence):
    """A closed vocabulary lists itself, and a path says what is there."""
    with pytest.raises(ConfigError) as error:
        workload_of(text, None)

    assert sentence in str(error.value)
