-- Random values of transaction files: pgbench's distributions, texts, and a bijection. Each function begins with the
-- place of its call in the user's file, for messages.

local bit = require("bit")
local seeded = require("seeded")

local floor, exp, log, abs = math.floor, math.exp, math.log, math.abs
local TWO_32 = 4294967296
local GOLDEN = 2654435769 -- 2^32 / the golden ratio: spreads the numbers of steps over all seeds
local MOST_TABLES = 1000 -- constants of distributions that are kept
local ROUNDS, FACTOR = 4, 1048576 -- of a bijection; factors below 2^20 keep products exact in doubles
local ROUNDOFF = 1e-9 -- an exponent this close to 1 counts as 1
local LETTERS = "abcdefghijklmnopqrstuvwxyz"

local random = {}

local drawn = seeded.generator()
local unit, range = drawn.unit, drawn.range

local function fail(place, words)
   error(place .. ": " .. words, 0)
end
random.fail = fail

-- All draws until the next call depend only on these four integers.
function random.seed(seed, terminal, number, step)
   drawn.seed((seed + step * GOLDEN) % TWO_32, terminal, number)
end

local function check(place, low, high, name)
   if low > high then fail(place, string.format("%s: the low end %.15g is above the high end %.15g", name, low, high)) end
   return floor(low), floor(high)
end

function random.random(place, low, high)
   low, high = check(place, low, high, "random")
   return range(low, high)
end

function random.random_exponential(place, low, high, parameter)
   low, high = check(place, low, high, "random_exponential")
   if not (parameter > 0) then fail(place, "random_exponential: the parameter must be above 0") end
   local cut = exp(-parameter)
   local share = -log(cut + (1 - cut) * (1 - unit())) / parameter
   return math.min(high, low + floor((high - low + 1) * share))
end

function random.random_gaussian(place, low, high, parameter)
   low, high = check(place, low, high, "random_gaussian")
   if not (parameter >= 2) then fail(place, "random_gaussian: the parameter must be 2 or more") end
   local deviate
   repeat -- Box and Muller
      deviate = math.sqrt(-2 * log(1 - unit())) * math.sin(2 * math.pi * unit())
   until deviate >= -parameter and deviate < parameter
   return math.min(high, low + floor((high - low + 1) * (deviate + parameter) / (parameter * 2)))
end

-- Rejection inversion (Hörmann and Derflinger, 1996): no table, for every exponent above 0.
local zipfs, kept = {}, 0

local function zipf_of(count, exponent)
   local of_exponent = zipfs[exponent]
   local found = of_exponent and of_exponent[count]
   if found then return found end
   if kept >= MOST_TABLES then zipfs, kept = {}, 0 end
   local single = abs(1 - exponent) < ROUNDOFF
   local function integral(x)
      if single then return log(x) end
      return (x ^ (1 - exponent) - 1) / (1 - exponent)
   end
   local function inverse(y)
      if single then return exp(y) end
      return math.max(1e-300, 1 + y * (1 - exponent)) ^ (1 / (1 - exponent))
   end
   found = {
      integral = integral, inverse = inverse, low = integral(1.5) - 1, high = integral(count + 0.5),
      near = 2 - inverse(integral(2.5) - 2 ^ -exponent),
   }
   zipfs[exponent] = zipfs[exponent] or {}
   zipfs[exponent][count] = found
   kept = kept + 1
   return found
end

function random.random_zipfian(place, low, high, exponent)
   low, high = check(place, low, high, "random_zipfian")
   if not (exponent > 0) then fail(place, "random_zipfian: the exponent must be above 0") end
   local count = high - low + 1
   local zipf = zipf_of(count, exponent)
   while true do
      local y = zipf.high + unit() * (zipf.low - zipf.high)
      local x = zipf.inverse(y)
      local rank = math.min(math.max(floor(x + 0.5), 1), count)
      if rank - x <= zipf.near or y >= zipf.integral(rank + 0.5) - rank ^ -exponent then return low + rank - 1 end
   end
end

-- A bijection of 0 .. size - 1 for each key: steps that are bijections of 0 .. 2^bits - 1, repeated until the result is
-- below the size.
local keys = {}

local function key_of(size, seed)
   local of_seed = keys[seed]
   local found = of_seed and of_seed[size]
   if found then return found end
   local bits = 1
   while 2 ^ bits < size do bits = bits + 1 end
   local key = seeded.generator(seed % TWO_32, bits, 7)
   found = {width = 2 ^ bits, fold = math.ceil(bits / 2)}
   for round = 1, ROUNDS do
      found[2 * round - 1] = 2 * key.range(0, FACTOR / 2 - 1) + 1
      found[2 * round] = key.range(0, 2 ^ bits - 1)
   end
   keys[seed] = keys[seed] or {}
   keys[seed][size] = found
   return found
end

function random.permute(place, value, size, seed)
   if not (size >= 1 and size <= 2147483648) then fail(place, "permute: the size must be from 1 to 2147483648") end
   value, size = floor(value) % floor(size), floor(size)
   if size == 1 then return 0 end
   local key = key_of(size, floor(seed or 0))
   local width, fold = key.width, 2 ^ key.fold
   repeat
      for round = 1, ROUNDS do
         value = (value * key[2 * round - 1] + key[2 * round]) % width
         -- The upper half is added to the lower one. bit works with 32 signed bits.
         value = bit.bxor(value, floor(value / fold)) % TWO_32
      end
   until value < size
   return value
end

function random.random_text(place, shortest, longest)
   local length = longest and random.random(place, shortest, longest) or floor(shortest)
   if length < 0 then fail(place, "random_text: the length must be 0 or more") end
   local letters = {}
   for number = 1, length do
      local letter = range(1, #LETTERS)
      letters[number] = LETTERS:sub(letter, letter)
   end
   return table.concat(letters)
end

function random.random_digits(place, template)
   if type(template) ~= "string" then fail(place, "random_digits needs a text such as '###-##'") end
   return (template:gsub("#", function() return range(0, 9) end))
end

function random.random_weighted(place, ...)
   local sum, count = 0, select("#", ...)
   for number = 2, count, 2 do
      local weight = select(number, ...)
      if not (weight >= 0) then fail(place, "random_weighted: a weight must be 0 or more") end
      sum = sum + weight
   end
   if sum == 0 then fail(place, "random_weighted: one weight at least must be above 0") end
   local at = unit() * sum
   for number = 2, count, 2 do
      at = at - select(number, ...)
      if at < 0 then return (select(number - 1, ...)) end
   end
   return (select(count - 1, ...))
end

return random
