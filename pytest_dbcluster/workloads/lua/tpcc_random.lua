-- Random values of TPC-C (specification 5.11, clauses 2.1.6 and 4.3.2).

local bit = require("bit")

local random = {}

-- The constants C of NURand are one value for all terminals (clause 2.1.6). The constant of C_LAST differs between load
-- and run by 65 to 119, but not by 96 or 112 (clause 2.1.6.1).
random.C_LAST_LOAD = 91
random.C_LAST_RUN = 173
random.C_ID = 517
random.OL_I_ID = 4337

local SYLLABLES = {
   [0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
}

-- Non-uniform: NURand(a, low, high) with the constant c, from a uniform source.
function random.nurand(uniform, a, c, low, high)
   return (bit.bor(uniform(0, a), uniform(low, high)) + c) % (high - low + 1) + low
end

-- The last name of a number from 0 to 999 (clause 4.3.2.3).
function random.last_name(number)
   local tens = math.floor(number / 10)
   return SYLLABLES[math.floor(number / 100)] .. SYLLABLES[tens % 10] .. SYLLABLES[number % 10]
end

-- A uniform source: the minimal standard generator of Park and Miller (CACM 31, 1988), exact in doubles.
function random.source(seed)
   local state = seed % 2147483646 + 1
   local function uniform(low, high)
      state = state * 16807 % 2147483647
      return low + math.floor(state / 2147483647 * (high - low + 1))
   end
   for _ = 1, 10 do -- neighbouring seeds begin with neighbouring values
      uniform(0, 1)
   end
   return uniform
end

-- The numbers 1 to count in random order.
function random.permutation(uniform, count)
   local order = {}
   for position = 1, count do
      local other = uniform(1, position)
      order[position] = order[other]
      order[other] = position
   end
   return order
end

return random
