-- The inputs of a TPC-C terminal (specification 5.11): the next transaction, its input, and how long to wait.

local random = require("tpcc_random")

local inputs = {}

local DISTRICTS, CUSTOMERS, ITEMS = 10, 3000, 100000
local UNUSED = ITEMS + 1

inputs.kinds = {"new_order", "payment", "order_status", "delivery", "stock_level"}
local CARDS = {45, 43, 4, 4, 4} -- the least shares of clause 5.2.3, New-Order takes the rest
local KEYING = {18, 3, 2, 2, 2} -- seconds, clause 5.2.5.7
local THINKING = {12, 12, 10, 5, 5} -- mean seconds, clause 5.2.5.7

local function greatest_divisor(one, other)
   while other > 0 do one, other = other, one % other end
   return one
end

-- The home warehouse of a terminal, and the terminal's number among those of the same warehouse, from 0. Terminals get
-- warehouses in turn, as they get endpoints. Where both sequences would restart together, one warehouse is skipped:
-- otherwise each warehouse would always be used by the same nodes, and two nodes with two warehouses would never
-- conflict. The number of terminals of a warehouse does not depend on the number of nodes. With partitions (a list of
-- nodes, separated by commas), the warehouse is one of those that belong to the terminal's node.
function inputs.home(id, node, warehouses, partitions, endpoints)
   local place, nodes = nil, 0
   for name in partitions:gmatch("[^,]+") do
      nodes = nodes + 1
      if name == node then place = nodes end
   end
   if not place then
      local together = warehouses * endpoints / greatest_divisor(warehouses, endpoints)
      return (id + math.floor(id / together)) % warehouses + 1, math.floor(id / warehouses)
   end
   local own, turn = math.floor((warehouses - place) / nodes) + 1, math.floor(id / nodes)
   return place + turn % own * nodes, math.floor(turn / own)
end

-- A terminal: home is its warehouse, number counts the warehouse's terminals from 0. on_district: every terminal works
-- on the first district, to cause conflicts.
function inputs.terminal(uniform, home, warehouses, number, session, on_district)
   return {
      uniform = uniform, home = home, warehouses = warehouses, session = session, payments = 0, deck = {},
      only = on_district and 1 or nil,
      -- Stock-Level is always about one district of the terminal (clause 2.8.1.1).
      district = on_district and 1 or number % DISTRICTS + 1,
   }
end

local function district(self)
   return self.only or self.uniform(1, DISTRICTS)
end

local function other_warehouse(self)
   if self.warehouses == 1 then return self.home end
   local other = self.uniform(1, self.warehouses - 1)
   return other < self.home and other or other + 1
end

local make = {}

function make.new_order(self)
   local uniform = self.uniform
   local input = {
      warehouse = self.home, district = district(self),
      customer = random.nurand(uniform, 1023, random.C_ID, 1, CUSTOMERS), lines = {}, parts = {}, all_local = 1,
   }
   local count, unused = uniform(5, 15), uniform(1, 100) == 1
   local parts = {}
   for number = 1, count do
      local item = random.nurand(uniform, 8191, random.OL_I_ID, 1, ITEMS)
      local warehouse = uniform(1, 100) == 1 and other_warehouse(self) or self.home
      if unused and number == count then item = UNUSED end
      if warehouse ~= self.home then input.all_local = 0 end
      local quantity = uniform(1, 10)
      local part = parts[warehouse]
      if not part then
         part = {warehouse = warehouse, items = {}, known = {}}
         parts[warehouse], input.parts[#input.parts + 1] = part, part
      end
      input.lines[number] = {item = item, warehouse = warehouse, quantity = quantity, part = part}
      if part.known[item] then
         table.insert(part.known[item].quantities, quantity)
      else
         part.known[item] = {item = item, quantities = {quantity}}
         table.insert(part.items, part.known[item])
      end
   end
   if #input.parts > 1 then
      table.sort(input.parts, function(one, other) return one.warehouse < other.warehouse end)
   end
   return input
end

-- Six of ten customers are selected by last name (clauses 2.5.1.2 and 2.6.1.2).
local function whose(self, input)
   if self.uniform(1, 100) <= 60 then
      input.last = random.last_name(random.nurand(self.uniform, 255, random.C_LAST_RUN, 0, 999))
   else
      input.customer = random.nurand(self.uniform, 1023, random.C_ID, 1, CUSTOMERS)
   end
   return input
end

function make.payment(self)
   local at = district(self)
   local remote = self.uniform(1, 100) > 85
   self.payments = self.payments + 1
   return whose(self, {
      warehouse = self.home, district = at,
      customer_warehouse = remote and other_warehouse(self) or self.home,
      customer_district = remote and district(self) or at,
      amount = self.uniform(100, 500000) / 100, session = self.session, number = self.payments,
   })
end

function make.order_status(self)
   return whose(self, {customer_warehouse = self.home, customer_district = district(self)})
end

function make.delivery(self)
   return {warehouse = self.home, carrier = self.uniform(1, 10)}
end

function make.stock_level(self)
   return {warehouse = self.home, district = self.district, threshold = self.uniform(10, 20)}
end

-- The next transaction: drawn from a shuffled deck of a hundred cards (clause 5.2.4.2). In short runs the shares are
-- closer to the mix than with independent draws.
function inputs.draw(self)
   local kind = self.next or inputs.card(self)
   self.next = nil
   return kind, make[inputs.kinds[kind]](self)
end

function inputs.card(self)
   local deck = self.deck
   if #deck == 0 then
      for kind, count in ipairs(CARDS) do
         for _ = 1, count do table.insert(deck, kind) end
      end
      for position = #deck, 2, -1 do
         local other = self.uniform(1, position)
         deck[position], deck[other] = deck[other], deck[position]
      end
   end
   return table.remove(deck)
end

-- Seconds from the end of one transaction to the start of the next: thinking about the last, keying the next.
function inputs.pause(self)
   self.next = self.next or inputs.card(self)
   local thinking = self.last and math.min(-math.log(1 - self.uniform(0, 999999) / 1000000), 10) * THINKING[self.last] or 0
   self.last = self.next
   return thinking + KEYING[self.next]
end

return inputs
