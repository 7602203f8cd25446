-- Random values of a user's script: sysbench.rand, sb_rand*, set_rand_str and math.random over one seeded generator.
-- Requiring this module replaces them. So each transaction has the same values in every run with the same seed.

local bit, ffi = require("bit"), require("ffi")
local distributions = require("distributions")
local seeded = require("seeded")

local floor = math.floor
local HASH, AT, ZERO, A = 35, 64, 48, 97 -- '#' is a digit, '@' a letter
local TWO_32 = 4294967296
local PREPARING = 2147483648 -- unique numbers of prepare begin here, those of transactions at 0

local drawn = seeded.generator()
local unit, range = drawn.unit, drawn.range
local random = {seed = drawn.seed}

-- ----------------------------------------------------------------------
-- Numbers
-- ----------------------------------------------------------------------

local by_name = distributions.over(drawn, distributions.usual)
local by_default = by_name.special
local read = false -- the options, which sysbench has only after it has loaded a script

local function read_options()
   if not sysbench.opt then return end
   read = true
   by_name = distributions.over(drawn, sysbench.opt)
   local name = sysbench.opt.rand_type
   by_default = by_name[name] or error("rand_type " .. name .. " is not gaussian, pareto, special or uniform", 3)
end

local function uniform(low, high)
   return range(floor(low), floor(high))
end

local function default(low, high)
   if not read then read_options() end
   return by_default(floor(low), floor(high))
end

local function of_name(name)
   return function(low, high)
      if not read then read_options() end
      return by_name[name](floor(low), floor(high))
   end
end

local function uniform_uint64()
   return ffi.cast("uint64_t", floor(unit() * TWO_32)) * TWO_32 + floor(unit() * TWO_32)
end

function math.random(low, high)
   if low == nil then return unit() end
   if high == nil then low, high = 1, low end
   if low > high then error("bad argument to 'random' (interval is empty)", 2) end
   return uniform(low, high)
end

function math.randomseed() end

-- ----------------------------------------------------------------------
-- Texts
-- ----------------------------------------------------------------------

-- Writes the text of a format. One random number gives eight digits.
local function write(buffer, format, length)
   local rest, left = 0, 0
   for at = 0, length - 1 do
      local byte = format:byte(at + 1)
      if byte == HASH then
         if left == 0 then rest, left = unit(), 8 end
         rest = rest * 10
         local digit = floor(rest)
         byte, rest, left = ZERO + digit, rest - digit, left - 1
      elseif byte == AT then
         byte = A + range(0, 25)
      end
      buffer[at] = byte
   end
end

local buffer, room = ffi.new("char[?]", 256), 256

local function text(format)
   if #format > room then buffer, room = ffi.new("char[?]", 2 * #format), 2 * #format end
   write(buffer, format, #format)
   return ffi.string(buffer, #format)
end

-- Replaces set_rand_str of sysbench's bound parameters.
local function set_text(self, format)
   local length = math.min(#format, self.max_len)
   write(self.buffer, format, length)
   self.data_len[0] = length
   self.is_null[0] = 0
end

-- ----------------------------------------------------------------------
-- Unique numbers
-- ----------------------------------------------------------------------

-- value * factor without the bits above the 32nd; a double does not have all bits of the product.
local function multiply(value, factor)
   local low, high = value % 65536, floor(value / 65536)
   return (low * factor + high * factor % 65536 * 65536) % TWO_32
end

-- A bijection of 0 .. 2^32 - 1 (the last steps of MurmurHash3): neighbours come far apart.
local function scatter(value)
   value = bit.bxor(value, bit.rshift(value, 16)) % TWO_32
   value = multiply(value, 0x85ebca6b)
   value = bit.bxor(value, bit.rshift(value, 13)) % TWO_32
   value = multiply(value, 0xc2b2ae35)
   return bit.bxor(value, bit.rshift(value, 16)) % TWO_32
end

local used, kept, first, step = 0, 0, nil, 1

local function unique()
   if not first then first, step = PREPARING + sysbench.tid, sysbench.opt.threads end
   used = used + 1
   return scatter((first + (used - 1) * step) % TWO_32)
end

-- Begins the unique numbers of a terminal at from, with its number and the number of all terminals.
function random.begin_unique(from, id, terminals)
   first, step = from + id, terminals
end

-- Begins a transaction, or an attempt that repeats one with the same unique numbers.
function random.keep_unique(again)
   if again then used = kept else kept = used end
end

function random.used()
   return used
end

-- ----------------------------------------------------------------------
-- In place of sysbench's
-- ----------------------------------------------------------------------

local replaced = {
   default = default, uniform = uniform, gaussian = of_name("gaussian"), special = of_name("special"),
   pareto = of_name("pareto"), unique = unique, string = text, uniform_uint64 = uniform_uint64, uniform_double = unit,
}
for name in pairs(sysbench.rand) do
   sysbench.rand[name] = replaced[name] or function()
      error("sysbench.rand." .. name .. " has no seeded replacement: use another distribution", 2)
   end
end
sb_rand, sb_rand_str, sb_rand_uniform = default, text, uniform
sb_rand_gaussian, sb_rand_special = replaced.gaussian, replaced.special
-- All parameters share one metatable; the methods of a statement do not look at the statement here.
local parameter = ffi.cast("sql_statement *", nil).bind_create(nil, sysbench.sql.type.INT)
getmetatable(parameter).set_rand_str = set_text

return random
