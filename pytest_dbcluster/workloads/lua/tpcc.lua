-- TPC-C (specification 5.11) on the runtime of terminal.lua: `schema` makes the tables, `prepare` loads them with
-- all threads, `run` runs one terminal in each thread.

local ffi = require("ffi")
local batch = require("batch")
local terminal = require("terminal")
local inputs = require("tpcc_inputs")
local transactions = require("tpcc_transactions")
local orders = require("tpcc_orders")

ffi.cdef "void _exit(int status);"

local REALTIME = 0 -- <time.h>

sysbench.cmdline.options = {
   warehouses = {"scale", 1},
   loaded = {"the time of loading, as loaded rows have it", "1970-01-02 00:00:00"},
   foreign_keys = {"whether the schema has them", false},
   thinking = {"whether terminals key and think", false},
   on_district = {"whether all terminals work on one district", false},
   endpoints = {"how many addresses threads connect to in turn", 1},
   partitions = {"nodes (as t.node has them) that share the warehouses, empty for any terminal anywhere", ""},
}

local function connection()
   return sysbench.sql.driver():connect()
end

-- sysbench 1.0.20 ends with 0 when a thread of a command failed (cmd_worker_thread in sb_lua.c), so a thread ends it.
local function prepare()
   local options = sysbench.opt
   local ok, problem = pcall(function()
      require("tpcc_load").share(connection(), options.warehouses, sysbench.tid, options.threads, options.loaded)
   end)
   if not ok then
      local said = type(problem) == "table" and ("error %d: %s"):format(problem.sql_errno, problem.sql_errmsg) or problem
      io.stderr:write("FATAL: ", said, "\n")
      ffi.C._exit(1)
   end
end

sysbench.cmdline.commands = {
   schema = {function() require("tpcc_schema").create(connection(), sysbench.opt.foreign_keys) end},
   prepare = {prepare, sysbench.cmdline.PARALLEL_COMMAND},
}

-- A number that is unique for each session: milliseconds since 1970 and the thread.
local function session(t)
   local now = ffi.new("terminal_time[1]")
   ffi.C.terminal_clock(REALTIME, now)
   return (tonumber(now[0].seconds) * 1000 + math.floor(tonumber(now[0].nanoseconds) / 1e6)) * 4096 + t.id
end

local load = {kinds = inputs.kinds, rolls_back = true}

function load.connect(t)
   batch.take(t.con)
   t.con:query("SET NAMES latin1")
   t.con:query("SET SESSION autocommit = 0") -- see tpcc_transactions.lua
   if not t.desk then
      local options = sysbench.opt
      local home, number = inputs.home(t.id, t.node, options.warehouses, options.partitions, options.endpoints)
      t.desk = inputs.terminal(t.random, home, options.warehouses, number, session(t), options.on_district)
   end
end

function load.draw(t)
   return inputs.draw(t.desk)
end

local execute = {}
for number, kind in ipairs(inputs.kinds) do execute[number] = transactions[kind] end

function load.execute(t, kind, input)
   if t.unended then
      batch.first("ROLLBACK")
      t.unended = false
   end
   return execute[kind](t, input)
end

function load.start()
   if sysbench.opt.thinking then
      function load.pause(t)
         return inputs.pause(t.desk)
      end
   end
end

function load.done(t, kind, input, outcome)
   if kind == 1 and t.keeps then orders.keep(input, outcome) end
end

function load.report()
   return {orders = orders.report()}
end

terminal.load(load)
