"""Runs programs of transaction files in sysbench's Lua, without a server: statements are printed in place of sent."""

from __future__ import annotations

import json
import subprocess

from pytest_dbcluster.releases import find
from pytest_dbcluster.workloads.sql.language import lua_code, scripts
from pytest_dbcluster.workloads.sysbench_driver import LUA

# A runtime whose statements are lines of JSON. Each step runs ``tries`` times.
RUNTIME = """\
local r, v, s, parts = {commits = 0, prepared = {}}, {}, {}, {}
for _, name in ipairs({"sql_values", "sql_random"}) do
   for key, value in pairs(require(name)) do r[key] = value end
end
local number, unique, kept = 0, 0, 0
local answers = {%(answers)s}
local function text(words) parts[#parts + 1] = words end
local function say(words)
   print('"' .. words:gsub('[%%c"\\\\]', function(c) return string.format("\\\\u%%04x", c:byte()) end) .. '"')
end
function r.begin(_, words) parts = {words} end
function r.send() say(table.concat(parts)) end
function r.seed(_, step) r.seeding(5, 2, number, step) end
function r.restore_unique(again) if again then unique = kept else kept = unique end end
function r.unique_id() unique = unique + 1 return 1000 + unique end
function r.read_row() end
function r.value(column) return answers[column + 1] end
function r.insert_id() return 77 end
function r.sleep(_, seconds) say(string.format("sleep %%g", seconds)) end
r.seeding = require("sql_random").seed
local function run()
   local files = assert(loadfile("%(program)s"))(r, v, s, text)
   for round = 1, %(times)d do
      number = round
      for _, file in ipairs(files) do
         local t, step = {}, 1
         file.begin()
         while step ~= 0 do
            local following
            for try = 1, %(tries)d do following = file.steps[step](t, try > 1) end
            step = following
         end
         if t.rolled_back then say("rolled back") end
      end
   end
end
sysbench.cmdline.commands = {go = {run}}
"""


def run_lua(path, script, command="go"):
    """The lines that a command of a Lua script prints."""
    tool = find.find("sysbench")
    file = path / "script.lua"
    file.write_text(script)
    done = subprocess.run(
        [str(tool.program("sysbench")), "--verbosity=0", str(file), command],
        env={**tool.environment, "LUA_PATH": f"{LUA}/?.lua"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split("\n")


def sent(path, text, constants=None, *, times=1, tries=1, answers=""):
    r"""The statements of a transaction file, in order, with ``sleep SECONDS`` and ``rolled back``.

    times: how often it runs. tries: how often each step runs. answers: Lua values of the row that \gset reads.
    """
    script = scripts.parse("one", "shop/one.sql", text)
    program = lua_code.compile_scripts([(script, 1)], constants or {}, prepared=False)
    path.mkdir(exist_ok=True)
    (path / "program.lua").write_text(program.text)
    runtime = RUNTIME % {"program": path / "program.lua", "times": times, "tries": tries, "answers": answers}
    return [json.loads(line) for line in run_lua(path, runtime) if line.startswith('"')]
