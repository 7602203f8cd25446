-- The buffer in which the rows of the population are written. They are never Lua strings: each string is hashed and
-- kept.

local ffi = require("ffi")

local floor = math.floor

local statements = {MOST = 256 * 1024} -- bytes that the buffer takes

local buffer = ffi.new("char[?]", statements.MOST)
local at = 0

statements.buffer = buffer

-- The bytes written since clear.
function statements.size()
   return at
end

function statements.clear()
   at = 0
end

function statements.text(words)
   ffi.copy(buffer + at, words, #words)
   at = at + #words
end

-- So many bytes from a C pointer.
function statements.bytes(from, length)
   ffi.copy(buffer + at, from, length)
   at = at + length
end

-- An integer of 0 or more.
function statements.number(value)
   local digits, limit = 1, 10
   while value >= limit do
      digits, limit = digits + 1, limit * 10
   end
   for position = at + digits - 1, at, -1 do
      local rest = floor(value / 10)
      buffer[position] = 48 + value - rest * 10
      value = rest
   end
   at = at + digits
end

-- A decimal number with this many decimal places, from an integer of 0 or more: fraction(1234, 2) is 12.34.
function statements.fraction(value, places)
   local unit = 10 ^ places
   statements.number(floor(value / unit))
   statements.text(".")
   local rest = value % unit
   local leading = unit / 10
   while leading > 1 and rest < leading do
      statements.text("0")
      leading = leading / 10
   end
   statements.number(rest)
end

return statements
