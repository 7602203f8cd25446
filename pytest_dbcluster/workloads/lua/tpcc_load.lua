-- The initial population of TPC-C (specification 5.11, clause 4.3.3.1).
--
-- The population is divided into units, each with its own random source, so that the tables do not depend on the number
-- of threads. Rows are collected in one buffer, as INSERT has them. Where server and client library permit it, LOAD DATA
-- reads the same text from a file in memory: the server then needs a third less CPU. Otherwise each eighth of a megabyte
-- is a statement.

local ffi = require("ffi")
local batch = require("batch")
local random = require("tpcc_random")
local statements = require("statements")

ffi.cdef[[
int memfd_create(const char *name, unsigned int flags);
long write(int file, const void *bytes, size_t count);
int ftruncate(int file, long length);
long lseek(int file, long offset, int whence);
]]

local load = {}

local ITEMS, DISTRICTS, CUSTOMERS, ORDERS, FIRST_NEW = 100000, 10, 3000, 3000, 2101
local STATEMENT = 128 * 1024
local POOL = 65536
local LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
local TRIES = 20
local REFUSED = {[1148] = true, [2068] = true, [3948] = true, [4166] = true} -- LOAD DATA LOCAL, by server or client
local CONFLICTS = {[1205] = true, [1213] = true} -- lock wait timeout, deadlock

local text, number, fraction, bytes = statements.text, statements.number, statements.fraction, statements.bytes
local buffer, size = statements.buffer, statements.size
local pool -- of random letters
local first_row, uniform = true, nil
local date -- of all rows, as clause 4.3.3.1 has it: the time of loading

local function random_letters()
   local fill, found = random.source(1), ffi.new("char[?]", POOL)
   for position = 0, POOL - 1 do
      local letter = fill(1, #LETTERS)
      found[position] = LETTERS:byte(letter)
   end
   return found
end

-- A random a-string (clause 4.3.2.2): a piece of the pool.
local function letters(low, high)
   local length = low == high and low or uniform(low, high)
   text("'")
   bytes(pool + uniform(0, POOL - high), length)
   text("'")
end

-- I_DATA and S_DATA: one of ten rows contains ORIGINAL.
local function data(low, high)
   local start = size() + 1
   letters(low, high)
   if uniform(1, 10) == 1 then
      ffi.copy(buffer + start + uniform(0, size() - 1 - start - 8), "ORIGINAL", 8)
   end
end

local function digits(length)
   for _ = 1, length do
      number(uniform(0, 9))
   end
end

local function address()
   letters(10, 20) text(",") letters(10, 20) text(",") letters(10, 20) text(",") letters(2, 2) text(",'")
   digits(4)
   text("11111',") -- clause 4.3.2.7
end

local into_table, columns -- of the rows that are being written
local file -- in memory, for LOAD DATA; nil for INSERT
local FORMAT = [[ FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\'' LINES STARTING BY '(' TERMINATED BY ')' ]]

-- Moves the rows from the buffer to the file.
local function save()
   local length, from = size(), 0
   while from < length do
      local written = tonumber(ffi.C.write(file, buffer + from, length - from))
      assert(written > 0, "no memory for the rows to load")
      from = from + written
   end
   statements.clear()
end

-- LOAD DATA LOCAL leaves out rows that do not fit, with a warning.
local function load_file(rows_of, names)
   batch.clear()
   batch.statement(("LOAD DATA LOCAL INFILE '/proc/self/fd/%d' INTO TABLE %s%s%s"):format(file, rows_of, FORMAT, names))
   batch.send()
   assert(batch.warnings() == 0, "LOAD DATA of " .. rows_of .. " has warnings")
   assert(ffi.C.ftruncate(file, 0) == 0 and ffi.C.lseek(file, 0, 0) == 0)
end

-- Opens the file if server and client library permit LOAD DATA LOCAL.
local function choose()
   file = ffi.C.memfd_create("rows", 0)
   assert(file >= 0, "no memory for the rows to load")
   local ok, problem = pcall(load_file, "item", "(i_id, i_im_id, i_name, i_price, i_data)")
   if ok then return end
   if type(problem) ~= "table" or not REFUSED[problem.sql_errno] then error(problem, 0) end
   file = nil
end

local function insert()
   batch.clear()
   batch.statement(ffi.string(buffer, size()))
   batch.send()
end

local function send()
   if not first_row then
      if file then
         save()
         load_file(into_table, columns)
      else
         insert()
      end
   end
   statements.clear()
   first_row = true
end

-- The next rows are of a table, with these columns.
local function into(name, names)
   send()
   into_table, columns = name, names
end

local function row()
   if size() > STATEMENT then
      if file then save() else send() end
   end
   if not first_row then
      text(",(")
   elseif file then
      text("(")
   else
      text(("INSERT INTO %s %s VALUES ("):format(into_table, columns))
   end
   first_row = false
end

local function items(_, part)
   into("item", "(i_id, i_im_id, i_name, i_price, i_data)")
   for id = part * ITEMS / 10 + 1, (part + 1) * ITEMS / 10 do
      row() number(id) text(",") number(uniform(1, 10000)) text(",") letters(14, 24) text(",")
      fraction(uniform(100, 10000), 2) text(",") data(26, 50) text(")")
   end
end

local function stock(warehouse, part)
   into("stock", "(s_w_id, s_i_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, "
      .. "s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_data)")
   for id = part * ITEMS / 10 + 1, (part + 1) * ITEMS / 10 do
      row() number(warehouse) text(",") number(id) text(",") number(uniform(10, 100)) text(",")
      for _ = 1, 10 do
         letters(24, 24) text(",")
      end
      data(26, 50) text(")")
   end
end

local function places(warehouse, district)
   if district == 1 then
      into("warehouse", "(w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd)")
      row() number(warehouse) text(",") letters(6, 10) text(",") address()
      fraction(uniform(0, 2000), 4) text(",300000.00)")
   end
   into("district", "(d_w_id, d_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, "
      .. "d_next_o_id)")
   row() number(warehouse) text(",") number(district) text(",") letters(6, 10) text(",") address()
   fraction(uniform(0, 2000), 4) text(",30000.00,") number(ORDERS + 1) text(")")
end

local function customers(warehouse, part)
   local district = part + 1
   places(warehouse, district)
   into("customer", "(c_w_id, c_d_id, c_id, c_last, c_first, c_street_1, c_street_2, c_city, c_state, c_zip, "
      .. "c_phone, c_since, c_credit, c_discount, c_data)")
   for id = 1, CUSTOMERS do
      local name = id <= 1000 and id - 1 or random.nurand(uniform, 255, random.C_LAST_LOAD, 0, 999)
      row() number(warehouse) text(",") number(district) text(",") number(id) text(",'")
      text(random.last_name(name)) text("',") letters(8, 16) text(",") address() text("'") digits(16)
      text("',") text(date) text(uniform(1, 10) == 1 and ",'BC'," or ",'GC',")
      fraction(uniform(0, 5000), 4) text(",") letters(300, 500) text(")")
   end
   into("history", "(h_session, h_number, h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_data)")
   for id = 1, CUSTOMERS do
      row() number(warehouse) text(",") number(district * 10000 + id) text(",") number(id) text(",")
      number(district) text(",") number(warehouse) text(",") number(district) text(",") number(warehouse) text(",")
      text(date) text(",") letters(12, 24) text(")")
   end
end

-- The lines of some orders, either all delivered or none; a column with its default value is not sent.
local function order_lines(warehouse, district, lines, first, last)
   local delivered = first < FIRST_NEW
   into("order_line", ("(ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, %s, ol_dist_info)")
      :format(delivered and "ol_delivery_d" or "ol_amount"))
   for id = first, last do
      for line = 1, lines[id] do
         row() number(warehouse) text(",") number(district) text(",") number(id) text(",") number(line) text(",")
         number(uniform(1, ITEMS)) text(",") number(warehouse) text(",")
         if delivered then
            text(date)
         else
            fraction(uniform(1, 999999), 2)
         end
         text(",") letters(24, 24) text(")")
      end
   end
end

local function orders(warehouse, part)
   local district = part + 1
   local customer = random.permutation(uniform, CUSTOMERS)
   local lines = {}
   into("orders", "(o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt)")
   for id = 1, ORDERS do
      lines[id] = uniform(5, 15)
      row() number(warehouse) text(",") number(district) text(",") number(id) text(",") number(customer[id])
      text(",") text(date) text(",")
      if id < FIRST_NEW then number(uniform(1, 10)) else text("NULL") end
      text(",") number(lines[id]) text(")")
   end
   into("new_order", "(no_w_id, no_d_id, no_o_id)")
   for id = FIRST_NEW, ORDERS do
      row() number(warehouse) text(",") number(district) text(",") number(id) text(")")
   end
   order_lines(warehouse, district, lines, 1, FIRST_NEW - 1)
   order_lines(warehouse, district, lines, FIRST_NEW, ORDERS)
end

-- Loads one unit as a transaction, and retries it with the same rows after a deadlock or a conflict with another node.
local function whole(con, make, seed, warehouse, part)
   for try = 1, TRIES do
      uniform, first_row = random.source(seed), true
      if file then assert(ffi.C.ftruncate(file, 0) == 0 and ffi.C.lseek(file, 0, 0) == 0) end
      local ok, problem = pcall(function()
         con:query("BEGIN")
         make(warehouse, part)
         send()
         con:query("COMMIT")
      end)
      if ok then return end
      if try == TRIES or type(problem) ~= "table" or not CONFLICTS[problem.sql_errno] then error(problem, 0) end
      con:query("ROLLBACK")
   end
end

-- Loads one thread's share of the units: with n threads, every n-th unit. unique_checks stays on: without it MariaDB
-- (10.6 and later) locks an empty table as a whole, and threads that begin with the same table deadlock.
-- loaded: the time of loading, one for all threads.
function load.share(con, warehouses, thread, threads, loaded)
   date, pool = "'" .. loaded .. "'", random_letters()
   batch.take(con)
   con:query("SET NAMES latin1")
   con:query("SET SESSION foreign_key_checks = 0")
   choose()
   local count = 0
   local function unit(make, kind, warehouse, part)
      if count % threads == thread then
         whole(con, make, ((warehouse * 10 + part) * 4 + kind) * 7919, warehouse, part)
      end
      count = count + 1
   end
   for part = 0, 9 do
      unit(items, 0, 0, part)
   end
   for warehouse = 1, warehouses do
      for part = 0, DISTRICTS - 1 do
         unit(stock, 1, warehouse, part)
         unit(orders, 2, warehouse, part)
         unit(customers, 3, warehouse, part)
      end
   end
end

return load
