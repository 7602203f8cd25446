-- The five transactions of TPC-C (specification 5.11, clauses 2.4 to 2.8), each a function of a terminal and its input.
--
-- A row that is read and then changed is locked by the read, so that no isolation level loses an update. The
-- specification also requires protection against phantoms (clause 3.4.1); InnoDB's REPEATABLE READ gives it. Locks come
-- before plain reads where the transaction profile allows any order: a read fixes the snapshot, and
-- innodb_snapshot_isolation (the default of MariaDB from 11.6.2 on) refuses to lock rows changed since. Rows of one
-- kind are read and changed by one statement in the order of their keys: this saves round trips, and two New-Orders
-- cannot deadlock on them.
--
-- Statements that need no result of each other are sent in one batch, but COMMIT is always alone, and the sessions have
-- autocommit off. If a writeset of another node aborts a transaction between two statements of a batch, Galera says so
-- only at the end of the batch: what follows begins a new transaction, which must not be committed.

local ffi = require("ffi")
local batch = require("batch")

ffi.cdef "char *strstr(const uint8_t *text, const char *part);"

local transactions = {}

local floor = math.floor
local format = string.format
local text, number = batch.text, batch.text
local statement, integer, decimal, send = batch.statement, batch.integer, batch.decimal, batch.send
local next_row = batch.row

local function begin()
   batch.clear()
   statement("BEGIN")
end

-- Sends the batch, and then COMMIT alone: only while it is on its way may the transaction be committed.
local function commit(t)
   send()
   batch.clear()
   statement("COMMIT")
   t.committing = true
   send()
   t.committing = false
end

-- Writes " w_id = 1 AND d_id = 2" of two texts and two numbers.
local function at_district(warehouse_column, warehouse, district_column, district)
   text(warehouse_column) number(warehouse) text(district_column) number(district)
end

local function money(amount)
   return format("%.2f", amount)
end

-- ----------------------------------------------------------------------
-- New-Order (clause 2.4)
-- ----------------------------------------------------------------------

local STOCK_OF = {}
for district = 1, 10 do
   STOCK_OF[district] = ("SELECT s_i_id, s_quantity, s_data, s_dist_%02d FROM stock WHERE s_w_id = "):format(district)
end

local function item_ids(items)
   for place = 1, #items do
      if place > 1 then text(",") end
      number(items[place].item)
   end
   text(")")
end

-- Locks the stock of the lines that one warehouse supplies. The function supply changes it.
local function lock_stock(input, part)
   part.result = statement(STOCK_OF[input.district])
   number(part.warehouse) text(" AND s_i_id IN (") item_ids(part.items) text(" FOR UPDATE")
end

-- What is left of each item when the lines are taken from it (clause 2.4.2.2); nil for an item that has no stock.
local function take_stock(part)
   local items, known = part.items, part.known
   for place = 1, #items do items[place].left = nil end
   local row = next_row(part.result)
   while row ~= nil do
      local wanted, left, total = known[integer(row[0])], integer(row[1]), 0
      for place = 1, #wanted.quantities do
         local quantity = wanted.quantities[place]
         left = left - quantity + (left >= quantity + 10 and 0 or 91)
         total = total + quantity
      end
      wanted.left, wanted.total = left, total
      wanted.original, wanted.place = ffi.C.strstr(row[2], "ORIGINAL") ~= nil, row[3]
      row = next_row(part.result)
   end
end

-- "CASE s_i_id WHEN 1 THEN 10 WHEN 2 THEN 20 END" of a field of those items that have stock.
local function by_item(items, field)
   text("CASE s_i_id")
   for place = 1, #items do
      local wanted = items[place]
      if wanted.left then
         text(" WHEN ") number(wanted.item) text(" THEN ") number(field and wanted[field] or #wanted.quantities)
      end
   end
   text(" END")
end

local function supply(input, part)
   local items, ids, repeated = part.items, 0, false
   for place = 1, #items do
      if items[place].left then
         ids = ids + 1
         repeated = repeated or #items[place].quantities > 1
      end
   end
   if ids == 0 then return end
   statement("UPDATE stock SET s_quantity = ") by_item(items, "left")
   text(", s_ytd = s_ytd + ") by_item(items, "total")
   text(", s_order_cnt = s_order_cnt + ")
   if repeated then by_item(items) else text("1") end
   if part.warehouse ~= input.warehouse then
      text(", s_remote_cnt = s_remote_cnt + ")
      if repeated then by_item(items) else text("1") end
   end
   text(" WHERE s_w_id = ") number(part.warehouse) text(" AND s_i_id IN (")
   local separator = ""
   for place = 1, #items do
      if items[place].left then
         text(separator) number(items[place].item)
         separator = ","
      end
   end
   text(")")
end

-- The rows of the items by number.
local function read_items(result)
   local items = {}
   local row = next_row(result)
   while row ~= nil do
      items[integer(row[0])] = row
      row = next_row(result)
   end
   return items
end

-- Writes the rows of ORDER-LINE. Returns their total amount, and whether all of their items exist.
local function order_lines(input, order, items)
   local sum, complete, separator = 0, true, ""
   for place = 1, #input.lines do
      local line = input.lines[place]
      local item, stock = items[line.item], line.part.known[line.item]
      if item and stock.left then
         local amount = line.quantity * decimal(item[1])
         local original = stock.original and ffi.C.strstr(item[3], "ORIGINAL") ~= nil
         sum, line.brand = sum + amount, original and "B" or "G"
         text(separator) text("(") number(order) text(",") number(input.district) text(",") number(input.warehouse)
         text(",") number(place) text(",") number(line.item) text(",") number(line.warehouse) text(",")
         number(line.quantity) text(",") text(money(amount)) text(",'") text(ffi.string(stock.place, 24)) text("')")
         separator = ","
      else
         complete = false
      end
   end
   return sum, complete
end

-- The first batch: locks and reads. Returns the numbers of the results of district, buyer and items.
local function ask_order(input)
   local warehouse, district = input.warehouse, input.district
   begin()
   local place = statement("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ")
   number(warehouse) text(" AND d_id = ") number(district) text(" FOR UPDATE")
   for part = 1, #input.parts do lock_stock(input, input.parts[part]) end
   statement("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ")
   number(warehouse) text(" AND d_id = ") number(district)
   local buyer = statement("SELECT w_tax, c_discount, c_last, c_credit FROM warehouse, customer WHERE w_id = ")
   number(warehouse) at_district(" AND c_w_id = ", warehouse, " AND c_d_id = ", district)
   text(" AND c_id = ") number(input.customer)
   local items = statement("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN (")
   for part = 1, #input.lines do
      if part > 1 then text(",") end
      number(input.lines[part].item)
   end
   text(")")
   send()
   return place, buyer, items
end

-- An item that does not exist rolls the transaction back after all other work is done (clause 2.4.2.3).
function transactions.new_order(t, input)
   local warehouse, district = input.warehouse, input.district
   local place, buyer, found = ask_order(input)
   place, buyer = next_row(place), next_row(buyer)
   local order, taxes = integer(place[0]), 1 + decimal(place[1]) + decimal(buyer[0])
   local discount, items = decimal(buyer[1]), read_items(found)
   for part = 1, #input.parts do take_stock(input.parts[part]) end
   batch.clear()
   statement("INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (")
   number(order) text(", ") number(district) text(", ") number(warehouse) text(", ") number(input.customer)
   text(", NOW(), ") number(#input.lines) text(", ") number(input.all_local) text(")")
   statement("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (")
   number(order) text(", ") number(district) text(", ") number(warehouse) text(")")
   for part = 1, #input.parts do supply(input, input.parts[part]) end
   statement("INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, "
      .. "ol_amount, ol_dist_info) VALUES ")
   local sum, complete = order_lines(input, order, items)
   input.order, input.total = order, sum * (1 - discount) * taxes
   if complete then
      commit(t)
   else
      statement("ROLLBACK")
      send()
      return true
   end
end

-- ----------------------------------------------------------------------
-- Payment (clause 2.5) and Order-Status (clause 2.6)
-- ----------------------------------------------------------------------

-- Asks for the customer with a number, or for all customers with a last name.
local function ask_customer(input, columns, lock)
   local asked = statement("SELECT c_id, ")
   text(columns) text(" FROM customer WHERE")
   at_district(" c_w_id = ", input.customer_warehouse, " AND c_d_id = ", input.customer_district)
   if input.customer then
      text(" AND c_id = ") number(input.customer)
   else
      text(" AND c_last = '") text(input.last) text("' ORDER BY c_first")
   end
   text(lock)
   return asked
end

-- The one customer, or the middle one of those with a last name (clause 2.5.2.2).
local function customer(result)
   local middle, taken = floor((batch.rows(result) + 1) / 2), nil
   for _ = 1, middle do taken = next_row(result) end
   return taken
end

local PAYING = "c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, "
   .. "c_credit_lim, c_discount, c_balance, IF(c_credit = 'BC', LEFT(c_data, 200), '')"

-- The note of a customer with bad credit is written by the server's IF: a customer with a number needs no answer before.
local function pay(input, id, amount)
   statement("UPDATE customer SET c_balance = c_balance - ") text(amount)
   text(", c_ytd_payment = c_ytd_payment + ") text(amount) text(", c_payment_cnt = c_payment_cnt + 1")
   text(", c_data = IF(c_credit = 'BC', LEFT(CONCAT('") number(id) text(" ") number(input.customer_district) text(" ")
   number(input.customer_warehouse) text(" ") number(input.district) text(" ") number(input.warehouse) text(" ")
   text(amount) text("|', c_data), 500), c_data) WHERE")
   at_district(" c_w_id = ", input.customer_warehouse, " AND c_d_id = ", input.customer_district)
   text(" AND c_id = ") number(id)
end

-- The warehouse row is locked last, because most payments wait for it. INSERT ... SELECT locks what it reads, so the
-- plain read comes after it.
function transactions.payment(t, input)
   local warehouse, district, amount = input.warehouse, input.district, money(input.amount)
   begin()
   local asked = ask_customer(input, PAYING, " FOR UPDATE")
   local id = input.customer
   if not id then
      send()
      id = integer(customer(asked)[0])
      batch.clear()
   end
   pay(input, id, amount)
   statement("UPDATE district SET d_ytd = d_ytd + ") text(amount)
   at_district(" WHERE d_w_id = ", warehouse, " AND d_id = ", district)
   statement("UPDATE warehouse SET w_ytd = w_ytd + ") text(amount) text(" WHERE w_id = ") number(warehouse)
   statement("INSERT INTO history (h_session, h_number, h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, "
      .. "h_data) SELECT ")
   text(format("%.0f", input.session)) text(", ") number(input.number) text(", ") number(id) text(", ")
   number(input.customer_district) text(", ") number(input.customer_warehouse) text(", ") number(district) text(", ")
   number(warehouse) text(", NOW(), ") text(amount)
   text(", CONCAT(w_name, '    ', d_name) FROM warehouse, district WHERE w_id = ")
   number(warehouse) at_district(" AND d_w_id = ", warehouse, " AND d_id = ", district)
   statement("SELECT w_name, d_name, w_street_1, w_street_2, w_city, w_state, w_zip, d_street_1, d_street_2, d_city, "
      .. "d_state, d_zip FROM warehouse, district WHERE w_id = ")
   number(warehouse) at_district(" AND d_w_id = ", warehouse, " AND d_id = ", district)
   commit(t)
end

function transactions.order_status(t, input)
   begin()
   local asked = ask_customer(input, "c_balance, c_first, c_middle, c_last", "")
   send()
   local id = integer(customer(asked)[0])
   batch.clear()
   local last = statement("SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE")
   at_district(" o_w_id = ", input.customer_warehouse, " AND o_d_id = ", input.customer_district)
   text(" AND o_c_id = ") number(id) text(" ORDER BY o_id DESC LIMIT 1")
   send()
   local order = integer(next_row(last)[0])
   batch.clear()
   statement("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE")
   at_district(" ol_w_id = ", input.customer_warehouse, " AND ol_d_id = ", input.customer_district)
   text(" AND ol_o_id = ") number(order)
   commit(t)
end

-- ----------------------------------------------------------------------
-- Delivery (clause 2.7) and Stock-Level (clause 2.8)
-- ----------------------------------------------------------------------

-- Rows of two integers; with third also an amount.
local function read(result, third)
   local found = {}
   local row = next_row(result)
   while row ~= nil do
      found[#found + 1] = {integer(row[0]), integer(row[1]), third and ffi.string(row[2])}
      row = next_row(result)
   end
   return found
end

-- The order number of each district from which to search the oldest undelivered order. It is read before the
-- transaction begins, because all reads in the transaction take locks. Orders of a district commit in order, so none
-- comes before.
local function first_orders(warehouse)
   batch.clear()
   local asked = statement("SELECT no_d_id, MIN(no_o_id) FROM new_order WHERE no_w_id = ")
   number(warehouse) text(" GROUP BY no_d_id")
   send()
   return read(asked)
end

-- Begins the transaction and locks those orders. A search that starts at an existing key locks no gap into which
-- another district's New-Order inserts.
local function oldest(warehouse, districts)
   begin()
   if #districts == 0 then return districts end
   local asked = statement("")
   for place = 1, #districts do
      text(place > 1 and " UNION ALL (" or "(")
      text("SELECT no_d_id, no_o_id FROM new_order")
      at_district(" WHERE no_w_id = ", warehouse, " AND no_d_id = ", districts[place][1])
      text(" AND no_o_id >= ") number(districts[place][2]) text(" ORDER BY no_o_id LIMIT 1 FOR UPDATE)")
   end
   send()
   local found = read(asked)
   batch.clear()
   return found
end

-- An SQL condition that selects the orders, on a table's columns.
local function these(orders, warehouse, prefix, id)
   for place = 1, #orders do
      text(place > 1 and " OR (" or "(") text(prefix) text("w_id = ") number(warehouse) text(" AND ") text(prefix)
      text("d_id = ") number(orders[place][1]) text(" AND ") text(id) text(" = ") number(orders[place][2]) text(")")
   end
end

-- Delivers the orders. Returns the district, the customer and the amount of each.
local function deliver(orders, input)
   local warehouse = input.warehouse
   statement("DELETE FROM new_order WHERE ") these(orders, warehouse, "no_", "no_o_id")
   statement("UPDATE orders SET o_carrier_id = ") number(input.carrier) text(" WHERE ")
   these(orders, warehouse, "o_", "o_id")
   statement("UPDATE order_line SET ol_delivery_d = NOW() WHERE ") these(orders, warehouse, "ol_", "ol_o_id")
   local asked = statement("SELECT o_d_id, o_c_id, SUM(ol_amount) FROM order_line, orders "
      .. "WHERE o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id AND (")
   these(orders, warehouse, "ol_", "ol_o_id") text(") GROUP BY o_d_id, o_c_id FOR UPDATE")
   send()
   return read(asked, true)
end

-- A district without an undelivered order is skipped (clause 2.7.4.2). All others are one database transaction.
function transactions.delivery(t, input)
   local warehouse = input.warehouse
   local orders = oldest(warehouse, first_orders(warehouse))
   if #orders > 0 then
      local sums = deliver(orders, input)
      batch.clear()
      statement("UPDATE customer SET c_balance = c_balance + CASE c_d_id")
      for place = 1, #sums do
         text(" WHEN ") number(sums[place][1]) text(" THEN ") text(sums[place][3])
      end
      text(" END, c_delivery_cnt = c_delivery_cnt + 1 WHERE ")
      for place = 1, #sums do
         at_district(place > 1 and " OR (c_w_id = " or "(c_w_id = ", warehouse, " AND c_d_id = ", sums[place][1])
         text(" AND c_id = ") number(sums[place][2]) text(")")
      end
   end
   commit(t)
end

function transactions.stock_level(t, input)
   begin()
   local asked = statement("SELECT d_next_o_id FROM district")
   at_district(" WHERE d_w_id = ", input.warehouse, " AND d_id = ", input.district)
   send()
   local last = integer(next_row(asked)[0])
   batch.clear()
   statement("SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock")
   at_district(" WHERE ol_w_id = ", input.warehouse, " AND ol_d_id = ", input.district)
   text(" AND ol_o_id >= ") number(last - 20) text(" AND ol_o_id < ") number(last)
   text(" AND s_w_id = ") number(input.warehouse) text(" AND s_i_id = ol_i_id AND s_quantity < ") number(input.threshold)
   commit(t)
end

return transactions
