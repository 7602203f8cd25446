-- The orders of a terminal whose COMMIT returned, and those that were lost at it, as workloads/tpcc/orders.py compares
-- them with the tables: a number and a digest each. A number alone proves nothing, because the number of an order that
-- was lost is given to the next one of its district.

local orders = {}

-- The arithmetic of a digest is exact in doubles, and takes integers only, so that the server computes it fast too. A
-- different value of one line, or two lines that are exchanged, always give another digest.
local PRIME, STEP, OFFSET = 2147483647, 65521, 4099
local HIGH, LOW = 128, 65536

local function term(place, item, quantity, warehouse)
   return ((item * HIGH + quantity) * LOW + warehouse) % PRIME * (place * STEP + OFFSET) % PRIME
end

-- Place 0 has the customer, the number of lines, and whether all are local.
local function digest(input)
   local lines = input.lines
   local sum = term(0, input.customer, #lines, input.all_local)
   for number = 1, #lines do
      local line = lines[number]
      sum = sum + term(number, line.item, line.quantity, line.warehouse)
   end
   return sum % PRIME
end

-- Each order has two places of the list of its district, because a table of its own would take a hundred bytes. A
-- terminal has one warehouse.
local kept = {committed = {}, unknown = {}}
local warehouse

function orders.keep(input, outcome)
   local districts = kept[outcome]
   if not districts then return end
   warehouse = input.warehouse
   local list = districts[input.district]
   if not list then
      list = {n = 0}
      districts[input.district] = list
   end
   local n = list.n
   list[n + 1], list[n + 2], list.n = input.order, digest(input), n + 2
end

-- The orders by outcome: {warehouse, district, {number, digest, number, digest, ...}} for each district.
function orders.report()
   local found = {}
   for outcome, districts in pairs(kept) do
      local parts = {}
      for district, list in pairs(districts) do parts[#parts + 1] = {warehouse, district, list} end
      found[outcome] = parts
   end
   return found
end

return orders
