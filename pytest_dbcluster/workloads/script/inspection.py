"""What a user's script defines: functions, commands and options. sysbench loads it on this machine."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.workloads.lua_tree import LuaTree
from pytest_dbcluster.workloads.sysbench_driver import LUA

SECONDS = 60.0
PREFIX = "dbcluster_"  # of our options, as in user_script.lua
ENTRY = "user_script.lua"
LOCATION = f"{ENTRY}:"  # sysbench prefixes the message of an error with the place in our script that raised it
BROKEN_MODULE = re.compile(r"error loading module '.*' from file '.*':\n(.*)", re.DOTALL)
MISSING_MODULE = re.compile(r"(\S+:\d+:) module '(.*)' not found:")
# Options of sysbench that the workload sets -> what a test writes.
OURS: Mapping[str, str] = MappingProxyType(
    {
        "threads": "threads=", "num_threads": "threads=", "time": "seconds=", "max_time": "seconds=",
        "rate": "rate=", "tx_rate": "rate=", "mysql_db": "database=", "db_ps_mode": "prepared=", "rand_seed": "seed=",
    }
)  # fmt: skip
# Options of sysbench that have no meaning here.
UNUSED = frozenset(
    {
        "events", "max_requests", "verbosity", "config_file", "forced_shutdown", "thread_stack_size", "help", "version",
        "report_interval", "report_checkpoints", "histogram", "percentile", "debug", "db_debug", "db_driver",
        "mysql_host", "mysql_port", "mysql_socket", "mysql_user", "mysql_password", "mysql_ssl", "mysql_ssl_cipher",
        "mysql_debug", "mysql_dry_run",
    }
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ScriptFacts:
    """What a script defines."""

    event: bool
    """Whether it defines ``event``."""

    thread_run: str
    """File and line of its ``thread_run``; empty without one."""

    declares: bool
    """Whether it declares options. sysbench accepts any option for a script that declares none."""

    options: tuple[str, ...]
    """The options that it declares."""

    every: tuple[str, ...]
    """The options of sysbench and of the script."""

    commands: tuple[str, ...]
    """``prepare`` and ``cleanup``, if it has them."""


_KNOWN: dict[str, ScriptFacts] = {}  # by the digest of the script


def inspect(tree: LuaTree, progress: Report = lambda _: None) -> ScriptFacts:
    """Load a script in sysbench, once for each content. Raises ConfigError with file and line for an error in it."""
    if tree.digest not in _KNOWN:
        _KNOWN[tree.digest] = _load(tree, find.find("sysbench", progress=progress))
    return _KNOWN[tree.digest]


def _load(tree: LuaTree, tool: Release) -> ScriptFacts:
    with tempfile.TemporaryDirectory(prefix="dbcluster-script-") as directory:
        path = tree.write(Path(directory))
        line = [str(tool.program("sysbench")), f"--{PREFIX}script={path}", f"--{PREFIX}scripts={tool.scripts}"]
        line += ["--verbosity=0", str(LUA / ENTRY), f"{PREFIX}describe"]
        environment = {**os.environ, **tool.environment, "LUA_PATH": f"{LUA}/?.lua;{tool.scripts}/?.lua;;"}
        try:
            done = subprocess.run(
                line, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{tree.shown}: sysbench did not load this script within {SECONDS:g} s") from None
    found = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not found:
        raise ConfigError(_problem(tree, f"{done.stdout}\n{done.stderr}"))
    return msgspec.json.decode(found[-1], type=ScriptFacts)


def _problem(tree: LuaTree, output: str) -> str:
    """The message of sysbench that begins with a file and a line, or all of its messages."""
    lines = [line.removeprefix("FATAL: ").strip() for line in output.splitlines() if line.strip()]
    lines = [line.partition(": ")[2] if LOCATION in line else line for line in lines]
    said = tree.readable(
        "\n".join(line for line in lines if not line.startswith("no f"))
    )  # where Lua looked for a module
    if broken := BROKEN_MODULE.search(said):
        return broken[1]
    if missing := MISSING_MODULE.search(said):
        place, name = missing.groups()
        modules = sorted(file.removesuffix(".lua").replace("/", ".") for file in tree.files if file != tree.main)
        return (
            f"{place} there is no module {name!r} beside the script or among those of sysbench; beside it: "
            f"{', '.join(modules) or 'none'}{registry.suggestion('module', name, modules)}"
        )
    return said if said.startswith(tree.shown) else f"{tree.shown} cannot be loaded: {said or 'sysbench failed'}"


def check(tree: LuaTree, facts: ScriptFacts, options: Iterable[str]) -> None:
    """Raise ConfigError for a script that cannot run, and for an option that it does not have."""
    if facts.thread_run:
        where = tree.readable(f"{facts.thread_run}:").removesuffix(":")
        raise ConfigError(
            f"{where}: this script has its own thread_run, and the workload decides when transactions start: write "
            "the work of one transaction as event()"
        )
    if not facts.event:
        raise ConfigError(f"{tree.shown}: this script has no function event(), which is the work of one transaction")
    clashing = [name for name in facts.options if name in OURS or name in UNUSED]
    if clashing:
        raise ConfigError(f"{tree.shown}: its option {clashing[0]} has the name of an option of sysbench: rename it")
    for name in options:
        if name in OURS:
            raise ConfigError(f"{tree.shown}: write {OURS[name]} of LuaScript in place of the option {name}")
        if name in UNUSED:
            raise ConfigError(f"{tree.shown}: the workload sets the option {name} of sysbench itself")
        if facts.declares and name not in facts.every:
            raise registry.unknown(f"option of {tree.shown}", name, sorted(facts.options))
