-- Values of transaction files: arithmetic, comparisons, and their text in SQL. Functions that can fail begin with the
-- place of their call in the user's file.

local bit, ffi = require("bit"), require("ffi")
local random = require("sql_random")

local fail, floor = random.fail, math.floor
local EXACT = 1e14 -- table.concat writes whole numbers below it exactly
local WHOLE = 9007199254740992 -- 2^53

local values = {}

local function name(value)
   return ({["nil"] = "NULL", string = "a text", number = "a number", boolean = "a truth value"})[type(value)]
end

-- ----------------------------------------------------------------------
-- Text in SQL
-- ----------------------------------------------------------------------

function values.int(value)
   if value < EXACT and value > -EXACT then return value end
   return string.format("%.0f", value)
end

function values.double(value)
   if value ~= value or value - value ~= 0 then error("a number of the workload is not finite: " .. value, 0) end
   return string.format("%.15g", value)
end

local ESCAPES = {["\\"] = "\\\\", ["'"] = "''", ["\0"] = "\\0"}

function values.quoted(value)
   if value:find("[\\'%z]") then value = value:gsub("[\\'%z]", ESCAPES) end
   return "'" .. value .. "'"
end

function values.truth_value(value)
   return value and "TRUE" or "FALSE"
end

-- A value whose type is known only now.
function values.literal(value)
   local kind = type(value)
   if kind == "number" then return value == floor(value) and values.int(value) or values.double(value) end
   if kind == "string" then return values.quoted(value) end
   if kind == "boolean" then return values.truth_value(value) end
   return "NULL"
end

local items = {}
values.items = items -- the values of a list, as text in SQL, from 1

function values.count(place, number)
   if not (number >= 1) then fail(place, "list: the count must be 1 or more") end
   return floor(number)
end

function values.joined(count)
   return table.concat(items, ",", 1, count)
end

-- ----------------------------------------------------------------------
-- Operators
-- ----------------------------------------------------------------------

function values.number(place, value)
   if type(value) ~= "number" then fail(place, "a number is needed here, and this is " .. name(value)) end
   return value
end

function values.holds(place, value)
   if type(value) == "number" then return value ~= 0 end
   if type(value) == "string" then fail(place, "a text is neither true nor false: compare it") end
   return value or false
end

local function truncated(value)
   return value < 0 and math.ceil(value) or floor(value)
end

function values.divide(place, a, b)
   if b == 0 then fail(place, "division by zero") end
   return a / b
end

function values.divide_whole(place, a, b)
   if b == 0 then fail(place, "division by zero") end
   return truncated(a / b)
end

function values.divide_any(place, a, b)
   if a == floor(a) and b == floor(b) then return values.divide_whole(place, a, b) end
   return values.divide(place, a, b)
end

function values.modulo(place, a, b)
   if b == 0 then fail(place, "division by zero") end
   return math.fmod(a, b)
end

local compared = {
   ["=="] = function(a, b) return a == b end,
   ["~="] = function(a, b) return a ~= b end,
   ["<"] = function(a, b) return a < b end,
   ["<="] = function(a, b) return a <= b end,
   [">"] = function(a, b) return a > b end,
   [">="] = function(a, b) return a >= b end,
}

-- A comparison with NULL is not true.
function values.compare(place, operator, a, b)
   if a == nil or b == nil then return false end
   if type(a) ~= type(b) then fail(place, "this compares " .. name(a) .. " with " .. name(b)) end
   return compared[operator](a, b)
end

local int64 = ffi.typeof("int64_t")

local function of_bits(operation)
   return function(a, b) return tonumber(operation(int64(a), int64(b))) end
end

values.bit_and, values.bit_or, values.bit_xor = of_bits(bit.band), of_bits(bit.bor), of_bits(bit.bxor)
function values.shift_left(a, b) return tonumber(bit.lshift(int64(a), b)) end
function values.shift_right(a, b) return tonumber(bit.arshift(int64(a), b)) end
function values.bit_not(a) return tonumber(bit.bnot(int64(a))) end

-- ----------------------------------------------------------------------
-- Functions
-- ----------------------------------------------------------------------

function values.abs(_, value) return math.abs(value) end
function values.ceil(_, value) return math.ceil(value) end
function values.floor(_, value) return floor(value) end
function values.double_of(_, value) return value end
function values.int_of(_, value) return truncated(value) end
function values.exp(_, value) return math.exp(value) end
function values.greatest(_, ...) return math.max(...) end
function values.least(_, ...) return math.min(...) end
function values.pi() return math.pi end
values.mod = values.modulo

function values.ln(place, value)
   if not (value > 0) then fail(place, "ln: the number must be above 0") end
   return math.log(value)
end

function values.sqrt(place, value)
   if not (value >= 0) then fail(place, "sqrt: the number must be 0 or more") end
   return math.sqrt(value)
end

function values.pow(_, value, exponent) return value ^ exponent end
values.power = values.pow

local function joinable(value)
   if type(value) == "number" then
      return value == floor(value) and math.abs(value) < WHOLE and string.format("%.0f", value)
         or string.format("%.15g", value)
   end
   return value
end

-- NULL if one of the values is NULL, as in the server.
function values.concat(_, ...)
   local parts = {}
   for number = 1, select("#", ...) do
      local value = joinable((select(number, ...)))
      if value == nil then return nil end
      if type(value) == "boolean" then value = value and "1" or "0" end
      parts[number] = value
   end
   return table.concat(parts)
end

return values
