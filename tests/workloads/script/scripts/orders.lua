#!/usr/bin/env sysbench
-- A small wholesale supplier: warehouses, districts, customers, stock and orders, after the idea of TPC-C.

require("orders_tables")
local texts = require("lib.texts")

sysbench.cmdline.options = {
   scale = {"warehouses", 1},
   customers = {"customers of a district", 30},
   items = {"kinds of goods", 50},
   rollbacks = {"percent of the orders that are cancelled", 1},
   -- Names that the runtime of workloads uses too.
   seconds = {"a number of the script", 7},
   attempts = {"another one", 3},
   seed = {"and another one", "mine"},
}

function prepare()
   local con = sysbench.sql.driver():connect()
   create_tables(con)
   fill_tables(con, sysbench.opt.scale, sysbench.opt.customers, sysbench.opt.items)
end

function cleanup()
   local con = sysbench.sql.driver():connect()
   for _, name in ipairs(TABLES) do con:query("DROP TABLE IF EXISTS " .. name) end
end

function thread_init(id)
   assert(sysbench.opt.seconds == 7 and sysbench.opt.attempts == 3 and sysbench.opt.seed == "mine")
   assert(id == sysbench.tid)
   drv = sysbench.sql.driver()
   con = drv:connect()
   con:query("SET autocommit = 0")
   customer = con:prepare("SELECT balance FROM customer WHERE w = ? AND d = ? AND c = ?")
   key = {}
   for place = 1, 3 do key[place] = customer:bind_create(sysbench.sql.type.INT) end
   customer:bind_param(unpack(key))
end

function thread_done()
   customer:close()
   con:disconnect()
end

local function place()
   return sysbench.rand.uniform(1, sysbench.opt.scale), sysbench.rand.uniform(1, DISTRICTS)
end

local function new_order()
   local w, d = place()
   con:query("BEGIN")
   local number = tonumber(con:query_row(
      ("SELECT next_order FROM district WHERE w = %d AND d = %d FOR UPDATE"):format(w, d)))
   con:query(("UPDATE district SET next_order = %d WHERE w = %d AND d = %d"):format(number + 1, w, d))
   con:query(("INSERT INTO orders VALUES (%d, %d, %d, %d, '%s')"):format(
      w, d, number, math.random(1, sysbench.opt.customers), texts.note()))
   for line = 1, math.random(2, 5) do
      local item = sysbench.rand.default(1, sysbench.opt.items)
      con:query(("UPDATE stock SET quantity = quantity - 1 WHERE w = %d AND i = %d"):format(w, item))
      con:query(("INSERT INTO order_line VALUES (%d, %d, %d, %d, %d)"):format(w, d, number, line, item))
   end
   con:query(sysbench.rand.uniform(1, 100) <= sysbench.opt.rollbacks and "ROLLBACK" or "COMMIT")
end

local function payment()
   local w, d = place()
   local c, amount = sysbench.rand.uniform(1, sysbench.opt.customers), sysbench.rand.uniform(1, 5000)
   con:query(("UPDATE warehouse SET paid = paid + %d WHERE w = %d"):format(amount, w))
   con:query(("UPDATE customer SET balance = balance - %d WHERE w = %d AND d = %d AND c = %d"):format(amount, w, d, c))
   con:query("COMMIT")
end

local function status()
   local w, d = place()
   key[1]:set(w)
   key[2]:set(d)
   key[3]:set(sysbench.rand.uniform(1, sysbench.opt.customers))
   customer:execute()
   con:query("COMMIT")
end

local kinds = {new_order, new_order, payment, payment, status}

function event()
   kinds[sb_rand_uniform(1, #kinds)]()
end

function sysbench.hooks.before_restart_event(problem)
   restarts = (restarts or 0) + 1
   con:query("ROLLBACK")
end
