"""Mistakes in a user's script are found before anything starts, with file and line."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads import lua_tree
from pytest_dbcluster.workloads.script import LuaScript, inspection
from tests.support import golden

SCRIPTS = Path(__file__).parent / "scripts"
EVENT = "function event() end\n"
# What is wrong -> text of the script, and fields of the workload.
WRONG = {
    "a syntax error": ("function event()\n   local = 3\nend\n", {}),
    "an error while it loads": ("local t\n\nprint(t.x)\n" + EVENT, {}),
    "a module that is missing": ('require("tabels")\n' + EVENT, {}),
    "a syntax error in a module": ('require("broken")\n' + EVENT, {}),
    "no event": ("function prepare() end\n", {}),
    "its own loop": (EVENT + "\nfunction thread_run(id)\n   event(id)\nend\n", {}),
    "an unknown option": ("sysbench.cmdline.options = {tables = {'n', 1}}\n" + EVENT, {"options": {"tabels": 2}}),
    "an option that the workload has": (EVENT, {"options": {"time": 10}}),
    "an option without meaning": (EVENT, {"options": {"mysql-host": "db1"}}),
    "an option with the name of sysbench's": ("sysbench.cmdline.options = {rate = {'of interest', 2}}\n" + EVENT, {}),
    "options of a wrong kind": ("sysbench.cmdline.options = {tables = 3}\n" + EVENT, {}),
}
CONSTRUCTED = {
    "the file is missing": lambda: LuaScript("bench/mine.lua"),
    "a file of a name like it is there": lambda: LuaScript("scripts/order.lua"),
    "it is a script of sysbench": lambda: LuaScript("oltp_read_write.lua"),
    "a file that it reads is missing": lambda: LuaScript("scripts/orders.lua", data_files=["word.txt"]),
    "threads are a text": lambda: LuaScript("scripts/orders.lua", threads="4"),
    "an endpoint is unknown": lambda: LuaScript("scripts/orders.lua", to="master"),
    "a database has a strange name": lambda: LuaScript("scripts/orders.lua", database="my-db"),
    "an option has a strange value": lambda: LuaScript("scripts/orders.lua", options={"scale": None}),
    "an argument has another name": lambda: LuaScript("scripts/orders.lua", concurrency=4),
}


def test_messages_on_scripts_that_cannot_run(tmp_path, monkeypatch):
    """They name the file as the test wrote it, the line, and what to write instead."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "broken.lua").write_text("\nif then\n")
    seen = {}
    for title, (text, fields) in WRONG.items():
        (tmp_path / "bench" / "mine.lua").write_text(text)
        seen[title] = golden.message_of(LuaScript("bench/mine.lua", **fields).check)
    (tmp_path / "bench" / "mine.lua").unlink()
    shutil.copytree(SCRIPTS, tmp_path / "scripts")
    seen |= {title: golden.message_of(call) for title, call in CONSTRUCTED.items()}

    golden.compare("script_refusals", seen, {tmp_path: "DIR"})


def test_a_script_says_what_it_defines():
    """Its functions, its options, and those of sysbench."""
    facts = inspection.inspect(lua_tree.read(SCRIPTS / "orders.lua", ["words.txt"]))

    assert (facts.event, facts.thread_run, facts.declares, facts.commands) == (True, "", True, ("prepare", "cleanup"))
    assert sorted(facts.options) == ["attempts", "customers", "items", "rollbacks", "scale", "seconds", "seed"]
    assert {"rand_type", "scale"} <= set(facts.every)
    LuaScript(SCRIPTS / "orders.lua", data_files=["words.txt"], options={"rand-type": "uniform", "scale": 2}).check()


def test_a_script_without_declared_options_accepts_any():
    """As in sysbench, where such options become global variables."""
    LuaScript(SCRIPTS / "old.lua", options={"whatever": 1}).check()


def test_a_script_that_prints_is_understood(tmp_path):
    """Its lines are not taken for the description."""
    (tmp_path / "mine.lua").write_text("print('{') io.write('no line end') function event() end")

    LuaScript(tmp_path / "mine.lua").check()


def test_a_script_is_loaded_once_for_each_content(tmp_path, monkeypatch):
    """A suite of many tests does not start sysbench again and again."""
    (tmp_path / "mine.lua").write_text(f"-- {tmp_path}\n{EVENT}")
    loaded = []
    monkeypatch.setattr(inspection, "_load", lambda *given: loaded.append(given) or of_facts())
    for threads in (1, 2):
        LuaScript(tmp_path / "mine.lua", threads=threads).check()

    assert len(loaded) == 1


def of_facts():
    """Of a script with nothing but an event."""
    return inspection.ScriptFacts(True, "", True, (), (), ())


def test_the_content_belongs_to_the_workload(tmp_path):
    """A changed module is another workload and another data set; a changed test beside it is not."""
    for name in ("mine.lua", "lib/other.lua", "test_mine.py", ".hidden/x.lua", "words.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("-- 1")
    one = LuaScript(tmp_path / "mine.lua")
    assert set(one.tree.files) == {"mine.lua", "lib/other.lua"}

    (tmp_path / "test_mine.py").write_text("# 2")
    (tmp_path / ".hidden" / "x.lua").write_text("-- 2")
    (tmp_path / "words.txt").write_text("-- 2")
    assert LuaScript(tmp_path / "mine.lua") == one
    assert hash(LuaScript(tmp_path / "mine.lua")) == hash(one)

    (tmp_path / "lib" / "other.lua").write_text("-- 2")
    other = LuaScript(tmp_path / "mine.lua")
    assert other != one
    assert other.data_set != one.data_set
    assert str(other) == str(one) == "script mine t16"
    assert LuaScript(tmp_path / "mine.lua", data_files=["words.txt"]).content not in (one.content, other.content)


def test_rounds_run_the_files_that_were_read(tmp_path):
    """A file that changes during a run changes nothing; a copy at another rate reads nothing again."""
    (tmp_path / "mine.lua").write_text("-- 1")
    one = LuaScript(tmp_path / "mine.lua")
    (tmp_path / "mine.lua").unlink()

    assert one.at_rate(10).with_seconds(3).tree.files == {"mine.lua": b"-- 1"}


def test_the_data_set_depends_on_what_prepare_sees(tmp_path):
    """Options and threads of prepare, but no rate, length or endpoint."""
    (tmp_path / "mine.lua").write_text(EVENT)
    one = LuaScript(tmp_path / "mine.lua", options={"a": 1}, prepare_threads=4)

    for changed in ({"threads": 2}, {"rate": 5}, {"seconds": 1}, {"to": "writer"}, {"prepared": False}, {"seed": 2}):
        assert dataclasses.replace(one, **changed).data_set == one.data_set
    for changed in ({"options": {"a": 2}}, {"prepare_threads": 5}, {"database": "shop"}, {"restore": True}):
        assert dataclasses.replace(one, **changed).data_set != one.data_set


@pytest.mark.parametrize("limit", ["MOST_FILES", "MOST_DIRECTORIES", "MOST_BYTES"])
def test_a_directory_with_too_much_in_it_is_refused(tmp_path, monkeypatch, limit):
    """All of it would go to each load host."""
    for name in ("mine.lua", "a/one.lua", "b/two.lua"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("-- 1")
    monkeypatch.setattr(lua_tree, limit, 2)

    with pytest.raises(ConfigError, match="put the script and what it requires into a directory of its own"):
        LuaScript(tmp_path / "mine.lua")


def test_messages_of_lua_name_the_file_as_the_test_does():
    """Whether Lua shows it with ./ or not; other words stay."""
    tree = lua_tree.LuaTree(
        "bench/mine.lua", "/b/bench/mine.lua", "mine", "mine.lua", {"mine.lua": b"", "lib/mine.lua": b""}
    )

    said = "mine.lua:3: in ./lib/mine.lua:4: and /other/mine.lua:5: or yours_mine.lua:6:"
    assert (
        tree.readable(said) == "bench/mine.lua:3: in bench/lib/mine.lua:4: and /other/mine.lua:5: or yours_mine.lua:6:"
    )
