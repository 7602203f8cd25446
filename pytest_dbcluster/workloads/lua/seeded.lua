-- Random numbers that depend only on the seed. Seeding is cheap enough to do for every transaction.
--
-- sfc32 (Chris Doty-Humphrey, PractRand): 128 bits of state, one of them a counter, so that every seed has a cycle of
-- at least 2^32 numbers. LuaJIT compiles it; it does not compile math.randomseed.

local bit = require("bit")
local bxor, rol, lshift, rshift, tobit = bit.bxor, bit.rol, bit.lshift, bit.rshift, bit.tobit

local TWO_32 = 4294967296
local MIXING = 12 -- numbers that are thrown away after seeding, as its author does

local seeded = {}

-- A generator: seed(a, b, c) with integers, unit() in [0, 1) with 32 bits, range(low, high), both inclusive.
function seeded.generator(first, second, third)
   local a, b, c, counter = 0, 0, 0, 0
   local self = {}

   local function draw()
      local sum = tobit(a + b + counter)
      counter = tobit(counter + 1)
      a = bxor(b, rshift(b, 9))
      b = tobit(c + lshift(c, 3))
      c = tobit(rol(c, 21) + sum)
      return sum
   end

   function self.seed(x, y, z)
      a, b, c, counter = tobit(x), tobit(y), tobit(z), 1
      for _ = 1, MIXING do draw() end
   end

   function self.unit()
      return draw() / TWO_32 + 0.5 -- draw is a signed integer
   end

   function self.range(low, high)
      return low + math.floor((draw() / TWO_32 + 0.5) * (high - low + 1))
   end

   self.seed(first or 0, second or 0, third or 0)
   return self
end

return seeded
