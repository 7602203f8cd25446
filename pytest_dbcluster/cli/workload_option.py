"""The option ``--workload``: a tool with its mode, a directory of SQL files, or a script in Lua."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any, cast

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.given import Add, HelpText
from pytest_dbcluster.workloads.mysqlslap import MODES, MySQLSlap
from pytest_dbcluster.workloads.script import LuaScript
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sysbench import SCRIPTS, SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from pytest_dbcluster.workloads.workload import Workload

TOOLS = ("tpcc", "sysbench", "mysqlslap")
LUA = ".lua"  # the ending of a script
KINDS = (*TOOLS, "a directory with SQL files such as shop/", "a script such as bench/mine.lua")


def add_workload(add: Add, usual: str, brief: str = "", **more: object) -> None:
    """Add the options of the workload. usual: the default, for the help. more: further arguments of ``add``.

    brief: the default for the short help, if it differs.
    """
    repeatable = "; repeatable" * ("action" in more)
    add(
        "--workload",
        metavar="NAME[:MODE]",
        help=HelpText(
            "tpcc, sysbench:SCRIPT, mysqlslap:MODE, a script of yours such as bench/mine.lua, or a directory with SQL "
            f"files such as shop/, of which shop/:order.sql@2,browse.sql runs only these transactions{repeatable} "
            f"(default {usual})",
            f"tpcc, sysbench:SCRIPT, mysqlslap:MODE, shop/ or mine.lua{repeatable} (default{brief or f' {usual}'})",
        ),
        **more,
    )
    threads = HelpText(
        "connections of each workload (default: that of the workload)", "connections (default: of the workload)"
    )
    add("--threads", type=int, metavar="N", help=threads)


def workload_of(text: str, threads: int | None) -> Workload:
    """The workload of a value of ``--workload``. Raises ConfigError for an unknown one.

    It is ``tpcc``, ``sysbench:oltp_read_write``, ``mysqlslap:mixed``, a script such as ``bench/mine.lua``, or a
    directory such as ``shop/``. A directory may have some of its transactions: ``shop/:browse.sql@9,history.sql``. A
    tool wins over a directory of the same name.
    """
    workload = _usual(text)
    if threads is None:
        return workload
    changed: Any = workload
    field = "concurrency" if isinstance(workload, MySQLSlap) else "threads"
    return cast("Workload", dataclasses.replace(changed, **{field: threads}))


def _usual(text: str) -> Workload:
    """The workload of a text, with its usual number of connections."""
    name, _, mode = text.partition(":")
    match name:
        case "tpcc":
            if mode:
                raise ConfigError(f"--workload {text}: tpcc has no modes; write --workload tpcc")
            return TPCC()
        case "sysbench":
            if mode not in SCRIPTS:
                raise registry.unknown("script of sysbench", mode, SCRIPTS)
            return SysBench(mode)
        case "mysqlslap":
            if mode not in MODES:
                raise registry.unknown("mode of mysqlslap", mode, MODES)
            return MySQLSlap(mode)
    if name.endswith(LUA):
        return _script(text)
    if os.sep in name or Path(name).is_dir():
        return _sql_files(name, mode)
    raise registry.unknown("workload", name, [*KINDS, *_directories()])


def _directories() -> list[str]:
    """The directories with SQL files in the working directory."""
    return sorted(f"{one.name}/" for one in Path().iterdir() if one.is_dir() and any(one.glob("*.sql")))


def _sql_files(name: str, mode: str) -> SQLFiles:
    """The workload of a directory. mode: the transactions with their weights, such as ``a.sql@9,b.sql``; may be empty.

    Raises ConfigError for a path that is not a directory, and for the first mistake in its files.
    """
    path = Path(name)
    if not path.is_dir():
        what = "this is a file; name its directory" if path.exists() else "there is no such directory"
        raise ConfigError(f"--workload {name}: {what}; dbcluster init --workload shop/ writes an example")
    return SQLFiles(os.path.normpath(name), transactions=mode.split(",") if mode else None)


def _script(text: str) -> LuaScript:
    """The workload of a script in Lua. Raises ConfigError for a file that is missing."""
    if not Path(text).is_file():
        raise ConfigError(f"--workload {text}: there is no such file")
    return LuaScript(text)
