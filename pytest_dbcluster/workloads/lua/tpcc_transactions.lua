-- The five transactions of TPC-C (specification 5.11, clauses 2.4 to 2.8), each a function of a terminal and its input.
--
-- A row that is read and then changed is locked by the read, so that no isolation level loses an update. The
-- specification also requires protection against phantoms (clause 3.4.1); InnoDB's REPEATABLE READ gives it. Locks come
-- before plain reads where the transaction profile allows any order: a read fixes the snapshot, and
-- innodb_snapshot_isolation (the default of MariaDB from 11.6.2 on) refuses to lock rows changed since. Rows of one
-- kind are read and changed by one statement in the order of their keys: this saves round trips, and two New-Orders
-- cannot deadlock on them.

local transactions = {}

local format, concat, floor = string.format, table.concat, math.floor

local function rows(t, statement)
   local result = t.con:query(statement)
   local found = {}
   for number = 1, result.nrows do
      found[number] = result:fetch_row()
   end
   return found
end

local function row(t, statement)
   local result = t.con:query(statement)
   return result.nrows > 0 and result:fetch_row() or nil
end

-- ----------------------------------------------------------------------
-- New-Order (clause 2.4)
-- ----------------------------------------------------------------------

-- Locks the stock of the lines that one warehouse supplies. The function supply changes it.
local function lock_stock(t, input, part)
   local found = {}
   for _, stock in ipairs(rows(t, format(
      "SELECT s_i_id, s_quantity, s_data, s_dist_%02d FROM stock WHERE s_w_id = %d AND s_i_id IN (%s) FOR UPDATE",
      input.district, part.warehouse, part.ids))) do
      found[tonumber(stock[1])] = {quantity = tonumber(stock[2]), data = stock[3], place = stock[4]}
   end
   return found
end

local function supply(t, input, part, stock)
   local quantities, totals, counts, ids, repeated = {}, {}, {}, {}, false
   for number, wanted in ipairs(part.items) do
      local item, left = wanted.item, stock[wanted.item]
      if left then
         local total = 0
         for _, quantity in ipairs(wanted.quantities) do
            left.quantity = left.quantity - quantity + (left.quantity >= quantity + 10 and 0 or 91)
            total = total + quantity
         end
         local place = #ids + 1
         ids[place] = item
         quantities[place] = format("WHEN %d THEN %d", item, left.quantity)
         totals[place] = format("WHEN %d THEN %d", item, total)
         counts[place] = format("WHEN %d THEN %d", item, #wanted.quantities)
         repeated = repeated or #wanted.quantities > 1
      end
   end
   if #ids == 0 then return end
   local count = repeated and format("CASE s_i_id %s END", concat(counts, " ")) or "1"
   local remote = part.warehouse == input.warehouse and "" or ", s_remote_cnt = s_remote_cnt + " .. count
   t.con:query(format(
      "UPDATE stock SET s_quantity = CASE s_i_id %s END, s_ytd = s_ytd + CASE s_i_id %s END, "
      .. "s_order_cnt = s_order_cnt + %s%s WHERE s_w_id = %d AND s_i_id IN (%s)",
      concat(quantities, " "), concat(totals, " "), count, remote, part.warehouse, concat(ids, ",")))
end

-- The rows of ORDER-LINE, their total amount, and whether all of their items exist.
local function order_lines(input, order, items, stocks)
   local found, sum, complete = {}, 0, true
   for number, line in ipairs(input.lines) do
      local item = items[line.item]
      local stock = stocks[line.warehouse][line.item]
      if item and stock then
         local amount = line.quantity * tonumber(item[2])
         local generic = item[4]:find("ORIGINAL", 1, true) and stock.data:find("ORIGINAL", 1, true) and "B" or "G"
         sum, line.brand = sum + amount, generic
         found[#found + 1] = format("(%d,%d,%d,%d,%d,%d,%d,%.2f,'%s')", order, input.district, input.warehouse, number,
            line.item, line.warehouse, line.quantity, amount, stock.place)
      else
         complete = false
      end
   end
   return found, sum, complete
end

-- An item that does not exist rolls the transaction back after all other work is done (clause 2.4.2.3).
function transactions.new_order(t, input)
   local warehouse, district = input.warehouse, input.district
   t:begin()
   local next_order = row(t, format(
      "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %d AND d_id = %d FOR UPDATE", warehouse, district))
   local order = tonumber(next_order[1])
   local stocks = {}
   for _, part in ipairs(input.parts) do
      stocks[part.warehouse] = lock_stock(t, input, part)
   end
   t.con:query(format("UPDATE district SET d_next_o_id = %d WHERE d_w_id = %d AND d_id = %d", order + 1, warehouse,
      district))
   local buyer = row(t, format(
      "SELECT w_tax, c_discount, c_last, c_credit FROM warehouse, customer "
      .. "WHERE w_id = %d AND c_w_id = %d AND c_d_id = %d AND c_id = %d",
      warehouse, warehouse, district, input.customer))
   local items = {}
   for _, item in ipairs(rows(t, "SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN (" .. input.ids .. ")")) do
      items[tonumber(item[1])] = item
   end
   t.con:query(format(
      "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) "
      .. "VALUES (%d, %d, %d, %d, NOW(), %d, %d)",
      order, district, warehouse, input.customer, #input.lines, input.all_local))
   t.con:query(format("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (%d, %d, %d)", order, district, warehouse))
   for _, part in ipairs(input.parts) do
      supply(t, input, part, stocks[part.warehouse])
   end
   local lines, sum, complete = order_lines(input, order, items, stocks)
   t.con:query("INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, "
      .. "ol_amount, ol_dist_info) VALUES " .. concat(lines, ","))
   input.total = sum * (1 - tonumber(buyer[2])) * (1 + tonumber(buyer[1]) + tonumber(next_order[2]))
   input.order = order
   if not complete then
      t:rollback()
      return true
   end
   t:commit()
end

-- ----------------------------------------------------------------------
-- Payment (clause 2.5) and Order-Status (clause 2.6)
-- ----------------------------------------------------------------------

-- The customer with a number, or the middle one of all customers with a last name (clause 2.5.2.2).
local function customer(t, input, columns, lock)
   local place = format("c_w_id = %d AND c_d_id = %d", input.customer_warehouse, input.customer_district)
   if input.customer then
      return row(t, format("SELECT c_id, %s FROM customer WHERE %s AND c_id = %d%s", columns, place, input.customer, lock))
   end
   local found = rows(t, format(
      "SELECT c_id, %s FROM customer WHERE %s AND c_last = '%s' ORDER BY c_first%s", columns, place, input.last, lock))
   return found[floor((#found + 1) / 2)]
end

local PAYING = "c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, "
   .. "c_credit_lim, c_discount, c_balance, IF(c_credit = 'BC', LEFT(c_data, 200), '')"

-- The warehouse row is locked last, because most payments wait for it.
function transactions.payment(t, input)
   local warehouse, district, amount = input.warehouse, input.district, input.amount
   t:begin()
   local payer = customer(t, input, PAYING, " FOR UPDATE")
   local number, noted = tonumber(payer[1]), ""
   if payer[2] == "BC" then
      noted = format(", c_data = LEFT(CONCAT('%d %d %d %d %d %.2f|', c_data), 500)", number, input.customer_district,
         input.customer_warehouse, district, warehouse, amount)
   end
   t.con:query(format(
      "UPDATE customer SET c_balance = c_balance - %.2f, c_ytd_payment = c_ytd_payment + %.2f, "
      .. "c_payment_cnt = c_payment_cnt + 1%s WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d",
      amount, amount, noted, input.customer_warehouse, input.customer_district, number))
   t.con:query(format("UPDATE district SET d_ytd = d_ytd + %.2f WHERE d_w_id = %d AND d_id = %d", amount, warehouse,
      district))
   t.con:query(format("UPDATE warehouse SET w_ytd = w_ytd + %.2f WHERE w_id = %d", amount, warehouse))
   local place = row(t, format(
      "SELECT w_name, d_name, w_street_1, w_street_2, w_city, w_state, w_zip, d_street_1, d_street_2, d_city, d_state, "
      .. "d_zip FROM warehouse, district WHERE w_id = %d AND d_w_id = %d AND d_id = %d", warehouse, warehouse, district))
   t.con:query(format(
      "INSERT INTO history (h_session, h_number, h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) "
      .. "VALUES (%.0f, %d, %d, %d, %d, %d, %d, NOW(), %.2f, '%s    %s')",
      input.session, input.number, number, input.customer_district, input.customer_warehouse, district, warehouse, amount,
      place[1], place[2]))
   t:commit()
end

function transactions.order_status(t, input)
   t:begin()
   local asked = customer(t, input, "c_balance, c_first, c_middle, c_last", "")
   local order = row(t, format(
      "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %s "
      .. "ORDER BY o_id DESC LIMIT 1", input.customer_warehouse, input.customer_district, asked[1]))
   rows(t, format(
      "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line "
      .. "WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %s",
      input.customer_warehouse, input.customer_district, order[1]))
   t:commit()
end

-- ----------------------------------------------------------------------
-- Delivery (clause 2.7) and Stock-Level (clause 2.8)
-- ----------------------------------------------------------------------

-- The order number of each district from which to search the oldest undelivered order. It is read before the
-- transaction begins, because all reads in the transaction take locks. Orders of a district commit in order, so none
-- comes before.
local function first_orders(t, warehouse)
   return rows(t, format(
      "SELECT no_d_id, MIN(no_o_id) FROM new_order WHERE no_w_id = %d GROUP BY no_d_id", warehouse))
end

-- Locks those orders. A search that starts at an existing key locks no gap into which another district's New-Order
-- inserts.
local function oldest(t, warehouse, districts)
   local parts = {}
   for number, district in ipairs(districts) do
      parts[number] = format("(SELECT no_d_id, no_o_id FROM new_order WHERE no_w_id = %d AND no_d_id = %s "
         .. "AND no_o_id >= %s ORDER BY no_o_id LIMIT 1 FOR UPDATE)", warehouse, district[1], district[2])
   end
   return #parts > 0 and rows(t, concat(parts, " UNION ALL ")) or parts
end

-- An SQL condition that selects the orders, on a table's columns.
local function these(orders, warehouse, prefix)
   local parts = {}
   for number, order in ipairs(orders) do
      parts[number] = format("(%sw_id = %d AND %sd_id = %s AND %so_id = %s)", prefix, warehouse, prefix, order[1], prefix,
         order[2])
   end
   return concat(parts, " OR ")
end

-- A district without an undelivered order is skipped (clause 2.7.4.2). All others are one database transaction.
function transactions.delivery(t, input)
   local warehouse = input.warehouse
   local districts = first_orders(t, warehouse)
   t:begin()
   local orders = oldest(t, warehouse, districts)
   if #orders > 0 then
      t.con:query("DELETE FROM new_order WHERE " .. these(orders, warehouse, "no_"))
      t.con:query(format("UPDATE orders SET o_carrier_id = %d WHERE %s", input.carrier,
         (these(orders, warehouse, "o_"):gsub("o_o_id", "o_id"))))
      t.con:query("UPDATE order_line SET ol_delivery_d = NOW() WHERE " .. these(orders, warehouse, "ol_"))
      local sums, whose = {}, {}
      for number, order in ipairs(rows(t,
         "SELECT o_d_id, o_c_id, SUM(ol_amount) FROM order_line, orders "
         .. "WHERE o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id AND (" .. these(orders, warehouse, "ol_")
         .. ") GROUP BY o_d_id, o_c_id FOR UPDATE")) do
         sums[number] = format("WHEN %s THEN %s", order[1], order[3])
         whose[number] = format("(c_w_id = %d AND c_d_id = %s AND c_id = %s)", warehouse, order[1], order[2])
      end
      t.con:query(format(
         "UPDATE customer SET c_balance = c_balance + CASE c_d_id %s END, c_delivery_cnt = c_delivery_cnt + 1 WHERE %s",
         concat(sums, " "), concat(whose, " OR ")))
   end
   t:commit()
end

function transactions.stock_level(t, input)
   t:begin()
   local district = row(t, format("SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d", input.warehouse,
      input.district))
   local last = tonumber(district[1])
   row(t, format(
      "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = %d AND ol_d_id = %d "
      .. "AND ol_o_id >= %d AND ol_o_id < %d AND s_w_id = %d AND s_i_id = ol_i_id AND s_quantity < %d",
      input.warehouse, input.district, last - 20, last, input.warehouse, input.threshold))
   t:commit()
end

return transactions
