"""What terminals of TPC-C enter: shares, ranges and constants of the specification, drawn by the tool itself."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter

import pytest

from pytest_dbcluster.releases import find
from pytest_dbcluster.workloads.sysbench_driver import LUA

DRAWS = 20_000
# Counts over many draws of one terminal of warehouse 2 of 4.
SCRIPT = """\
local inputs, random = require("tpcc_inputs"), require("tpcc_random")
local function draws()
   local desk = inputs.terminal(random.source(5), 2, 4, 1, 1, %(on_district)s)
   local n = setmetatable({}, {__index = function() return 0 end})
   local function count(name, amount) n[name] = n[name] + (amount or 1) end
   for _ = 1, %(draws)d do
      local kind, input = inputs.draw(desk)
      count(inputs.kinds[kind])
      if kind == 1 then
         count("lines", #input.lines)
         count("new_order_district", input.district)
         for number, line in ipairs(input.lines) do
            if line.warehouse ~= 2 then count("remote") end
            if line.item > 100000 then count(number == #input.lines and "unused" or "misplaced") end
            if line.quantity < 1 or line.quantity > 10 then count("odd") end
         end
         if #input.lines < 5 or #input.lines > 15 or input.customer < 1 or input.customer > 3000 then count("odd") end
      elseif kind == 2 then
         if input.customer_warehouse ~= 2 then count("remote_payment") end
         if input.last then count("by_name") end
         if input.amount < 1 or input.amount > 5000 then count("odd") end
         count("amount", input.amount)
      elseif kind == 5 then
         count("stock_level_district", input.district)
      end
   end
   local parts = {}
   for name, value in pairs(n) do parts[#parts + 1] = string.format('"%%s": %%.2f', name, value) end
   print("{" .. table.concat(parts, ", ") .. "}")
end
local function values()
   local uniform, seen = random.source(9), {}
   for _ = 1, 200000 do
      local item = random.nurand(uniform, 8191, random.OL_I_ID, 1, 100000)
      seen[item] = (seen[item] or 0) + 1
   end
   local least, most, distinct = 1e9, 0, 0
   for item in pairs(seen) do least, most, distinct = math.min(least, item), math.max(most, item), distinct + 1 end
   local homes = {}
   local function shared_out(node, warehouses, partitions, endpoints, most)
      for id = 0, most do
         local home, number = inputs.home(id, node, warehouses, partitions, endpoints)
         homes[#homes + 1] = string.format("[%%d, %%d]", home, number)
      end
   end
   shared_out("b:2", 5, "a:1,b:2", 2, 5)
   shared_out("a:1", 5, "a:1,b:2", 2, 5)
   shared_out("a:1", 4, "", 1, 5)
   shared_out("a:1", 2, "", 2, 7)
   for endpoints = 1, 4 do shared_out("a:1", 4, "", endpoints, 15) end
   local slow, keyed = 0, inputs.terminal(random.source(5), 1, 1, 0, 1, false)
   for _ = 1, 10000 do
      slow = slow + inputs.pause(keyed)
      inputs.draw(keyed)
   end
   print(string.format('{"least": %%d, "most": %%d, "distinct": %%d, "delta": %%d, "pause": %%.3f, "homes": [%%s]}',
      least, most, distinct, random.C_LAST_RUN - random.C_LAST_LOAD, slow / 10000, table.concat(homes, ",")))
end
sysbench.cmdline.commands = {draws = {draws}, values = {values}}
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory, client):
    """``said("draws")``: what a command of the script printed; each runs once."""
    tool = find.find("sysbench")

    @functools.cache
    def said(command, *, on_district=False):
        path = tmp_path_factory.mktemp("lua") / "script.lua"
        path.write_text(SCRIPT % {"draws": DRAWS, "on_district": str(on_district).lower()})
        line = [str(tool.program("sysbench")), "--verbosity=0", str(path), command]
        environment = {**tool.environment, "LUA_PATH": f"{LUA}/?.lua"}
        return json.loads(re.search(r"\{.*\}", client.run(line, environment=environment).stdout)[0])

    return said


def test_the_mix_and_the_shares_are_those_of_the_specification(said):
    """Clauses 2.4.1, 2.5.1 and 5.2.3: a deck of a hundred cards makes the mix exact."""
    found = said("draws")
    orders, payments = found["new_order"], found["payment"]

    assert [found[kind] for kind in ("new_order", "payment", "order_status", "delivery", "stock_level")] == [
        DRAWS * share / 100 for share in (45, 43, 4, 4, 4)
    ]
    assert "odd" not in found
    assert "misplaced" not in found
    assert found["lines"] / orders == pytest.approx(10, abs=0.1)
    assert found["unused"] / orders == pytest.approx(0.01, abs=0.003)
    assert found["remote"] / found["lines"] == pytest.approx(0.01, abs=0.001)
    assert found["remote_payment"] / payments == pytest.approx(0.15, abs=0.015)
    assert found["by_name"] / payments == pytest.approx(0.6, abs=0.02)
    assert found["amount"] / payments == pytest.approx(2500, rel=0.02)
    assert found["new_order_district"] / orders == pytest.approx(5.5, abs=0.1)
    assert found["stock_level_district"] / found["stock_level"] == 2  # the second of its warehouse: always this one


def test_all_terminals_can_be_on_one_district(said):
    """To make conflicts."""
    found = said("draws", on_district=True)

    assert found["new_order_district"] == found["new_order"]
    assert found["stock_level_district"] == found["stock_level"]


def test_numbers_are_not_uniform_and_homes_are_shared_out(said):
    """NURand reaches every item and prefers some; the constants of load and run differ as clause 2.1.6.1 asks."""
    found = said("values")

    assert (found["least"], found["most"]) == (1, 100_000)
    assert found["distinct"] < 75_000  # 86 000 would be seen if they were uniform
    assert 65 <= found["delta"] <= 119
    assert found["delta"] not in (96, 112)
    assert [home for home, _ in found["homes"][:18]] == [2, 2, 4, 4, 2, 2, 1, 1, 3, 3, 5, 5, 1, 2, 3, 4, 2, 3]


def test_nodes_meet_in_every_warehouse(said):
    """Eight terminals on two nodes in turn: both nodes have both warehouses, and four share each, numbered from 0."""
    turns = said("values")["homes"][18:26]

    assert {(place % 2, home) for place, (home, _) in enumerate(turns)} == {(0, 1), (0, 2), (1, 1), (1, 2)}
    assert [sorted(number for home, number in turns if home == one) for one in (1, 2)] == [[0, 1, 2, 3]] * 2


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
def test_warehouses_have_as_many_terminals_on_any_number_of_nodes(said, nodes):
    """Sixteen on four warehouses: what differs between clusters is who meets where, not how many meet."""
    turns = said("values")["homes"][26 + 16 * (nodes - 1) :][:16]

    assert Counter(home for home, _ in turns) == {1: 4, 2: 4, 3: 4, 4: 4}
    assert {(place % nodes, home) for place, (home, _) in enumerate(turns)} == {
        (node, home) for node in range(nodes) for home in (1, 2, 3, 4)
    }


def test_terminals_that_think_take_their_time(said):
    """Keying and thinking of clause 5.2.5.7, weighted by the mix."""
    keying = 0.45 * 18 + 0.43 * 3 + 0.12 * 2
    thinking = 0.45 * 12 + 0.43 * 12 + 0.04 * 10 + 0.08 * 5

    assert said("values")["pause"] == pytest.approx(keying + thinking, rel=0.05)
