-- Transaction files of a user on the runtime of terminal.lua. The option --program names the Lua program that
-- workloads/sql/lua_code.py makes of them.
--
-- A transaction runs the steps of its file one after the other. Each step is one unit: a transaction of the server, or a
-- statement that commits by itself. After a conflict terminal.lua calls execute again, which repeats the step that
-- failed. Steps before it are committed and are not repeated.

local bit, ffi = require("bit"), require("ffi")
local batch = require("batch")
local random = require("sql_random")
local terminal = require("terminal")
local values = require("sql_values")

local now, bucket = terminal.now, terminal.bucket
local LONGEST = 16384 -- bytes of a text in a prepared statement
local NUMERIC = 32768 -- NUM_FLAG of mysql_com.h
local WHOLE = 9007199254740992 -- 2^53: doubles have whole numbers up to here
local END = 0 -- the number of the step after the last one

ffi.cdef[[
typedef struct { // MYSQL_FIELD, the same in the client libraries of both vendors
   char *names[7]; unsigned long lengths[2]; unsigned int name_lengths[7]; unsigned int flags, decimals, charset;
} sql_files_field;
sql_files_field *mysql_fetch_field_direct(void *result, unsigned int number);
unsigned int mysql_num_fields(void *result);
unsigned long *mysql_fetch_lengths(void *result);
]]

local options = sysbench.cmdline.options or {}
sysbench.cmdline.options = options
options.program = {"the Lua program of the transaction files", ""}
options.unique_from = {"what unique_id() begins above", "0"}

-- What programs call.
local r = {commits = 0}
for _, functions in ipairs({values, random}) do
   for name, value in pairs(functions) do r[name] = value end
end

local variables, kept = {}, {} -- of the transaction, and what a retry of a step begins with
local files, names, prepares -- of the program
local weights = 0
local deck = {} -- what is left of the parts of the range of weights
local CARDS, FINE = 64, 2 ^ 20
local latencies = {} -- a histogram for each statement
local current, started = 0, 0 -- the statement that runs, and when it began
local fields, row, lengths -- of the row that \gset reads
local unique, unique_kept, unique_from = 0, 0, 0

-- ----------------------------------------------------------------------
-- Statements
-- ----------------------------------------------------------------------

local function record()
   local counts, key = latencies[current], bucket(now() - started)
   counts[key] = counts[key] + 1
end

function r.begin(number, words)
   current, started = number, now()
   batch.clear()
   batch.statement(words)
end

function r.send()
   batch.send()
   record()
end

r.drain = batch.drain

function r.execute(number, p)
   current, started = number, now()
   p.statement:execute()
   record()
end

function r.set_text(parameter, value, number)
   if value ~= nil and #value > LONGEST then
      error(string.format("%s: a text of %d bytes, and prepared statements take %d: use prepared=False",
                          prepares[number][3], #value, LONGEST), 0)
   end
   parameter:set(value)
end

function r.set(parameter, value, number)
   if type(value) == "boolean" then value = value and 1 or 0 end
   if type(value) == "number" and value ~= math.floor(value) then value = r.double(value) end
   if type(value) == "string" then return r.set_text(parameter, value, number) end
   parameter:set(value)
end

-- sysbench 1.0 crashes on a parameter of type DOUBLE, so fractions are texts.
local TYPES = {i = "BIGINT", d = "VARCHAR", s = "VARCHAR"}

-- types: a letter of TYPES for each parameter.
local function prepare(con, number, types)
   local text = prepares[number][1]
   local ok, statement = pcall(con.prepare, con, text)
   if not ok then error(statement, 0) end
   local p = {statement = statement}
   for place = 1, #types do
      local name = TYPES[types:sub(place, place)]
      p[place] = statement:bind_create(sysbench.sql.type[name], name == "VARCHAR" and LONGEST or nil)
   end
   if #types > 0 then statement:bind_param(unpack(p)) end
   return p
end

local function letter(value)
   if type(value) == "number" then return value == math.floor(value) and "i" or "d" end
   return type(value) == "boolean" and "i" or "s"
end

local connection
local by_types = {} -- number -> types of the parameters that only a run knows -> prepared statement

-- The statement for values whose types are known only now. Each combination of types is prepared at its first use.
function r.prepared_for(number, ...)
   local key = letter((...))
   for place = 2, select("#", ...) do key = key .. letter((select(place, ...))) end
   local found = by_types[number][key]
   if not found then
      local place = 0
      local types = prepares[number][2]:gsub("%?", function()
         place = place + 1
         return key:sub(place, place)
      end)
      found = prepare(connection, number, types)
      by_types[number][key] = found
   end
   return found
end

local function prepare_all(con)
   connection, r.prepared, by_types = con, {}, {}
   for number, prepared in ipairs(prepares) do
      if prepared then
         current = number
         if prepared[2]:find("?", 1, true) then
            by_types[number] = {}
         else
            r.prepared[number] = prepare(con, number, prepared[2])
         end
      end
   end
end

-- ----------------------------------------------------------------------
-- Results
-- ----------------------------------------------------------------------

-- Reads the only row of the last statement's result.
function r.read_row(columns, place)
   local result = batch.result(1)
   if result == nil then random.fail(place, "\\gset: the statement has no result") end
   local count, found = batch.rows(1), ffi.C.mysql_num_fields(result)
   if count ~= 1 then
      random.fail(place, "\\gset needs exactly one row, and the statement returned "
                  .. (count == 0 and "none" or count) .. ": an aggregate such as MAX(id), or LIMIT 1, helps")
   end
   if found ~= columns then
      random.fail(place, string.format("\\gset: the result has %d columns, the statement names %d", found, columns))
   end
   row = batch.row(1)
   lengths, fields = ffi.C.mysql_fetch_lengths(result), result
end

-- The value of a column, 0-based: a number, a text, or nil.
function r.value(column)
   if row[column] == nil then return nil end
   local text = ffi.string(row[column], lengths[column])
   if bit.band(ffi.C.mysql_fetch_field_direct(fields, column).flags, NUMERIC) == 0 then return text end
   local number = tonumber(text)
   return number and math.abs(number) <= WHOLE and number or text -- a larger one would lose digits
end

function r.insert_id(place)
   local id = batch.insert_id()
   if id == 0 then random.fail(place, "\\insert_id: the statement made no AUTO_INCREMENT value") end
   return id
end

-- ----------------------------------------------------------------------
-- Values that depend on the terminal
-- ----------------------------------------------------------------------

local seed, id, number = 0, 0, 0

function r.seed(_, step)
   random.seed(seed, id, number, step)
end

function r.restore_unique(again)
   if again then unique = unique_kept else unique_kept = unique end
end

-- Different for all calls of all terminals in a run.
function r.unique_id()
   unique = unique + 1
   return unique_from + (unique - 1) * terminal.count() + id + 1
end

function r.sleep(t, seconds)
   terminal.sleep(t, seconds)
end

-- ----------------------------------------------------------------------
-- The workload
-- ----------------------------------------------------------------------

local load = {kinds = {}}

function load.start(t)
   local program = assert(loadfile(sysbench.opt.program))
   files, names, prepares = program(r, variables, kept, batch.text)
   for kind, file in ipairs(files) do
      load.kinds[kind] = file.name
      weights = weights + file.weight
   end
   for place in ipairs(names) do latencies[place] = terminal.histogram() end
   seed, id, unique_from = sysbench.opt.seed, t.id, tonumber(sysbench.opt.unique_from)
end

function load.connect(t)
   batch.take(t.con)
   prepare_all(t.con)
end

-- A number from 1 to the sum of the weights. Each CARDS draws of a connection have one from each CARDS-th part of the
-- range, in random order. So rounds have nearly equal mixes, and a rare transaction adds no noise of its own.
local function dealt(t)
   if #deck == 0 then
      for card = 1, CARDS do deck[card] = card - 1 end
   end
   local place = t.random(1, #deck)
   local card = deck[place]
   deck[place] = deck[#deck]
   deck[#deck] = nil
   return math.floor((card * FINE + t.random(0, FINE - 1)) * weights / (CARDS * FINE)) + 1
end

function load.draw(t)
   number = number + 1
   t.step = nil
   local at, kind = dealt(t), 1
   while at > files[kind].weight do
      at, kind = at - files[kind].weight, kind + 1
   end
   return kind, number
end

function load.execute(t, kind)
   local file, again = files[kind], t.step ~= nil
   if not again then
      t.step, t.rolled_back = 1, false
      file.begin()
   end
   local steps = file.steps
   while t.step ~= END do
      t.step = steps[t.step](t, again)
      again = false
   end
   return t.rolled_back
end

-- The statement that runs, for messages.
function load.place()
   return names[current]
end

function load.report()
   local found = {}
   for place, name in ipairs(names) do found[name] = terminal.counts(latencies[place]) end
   local given = unique > 0 and unique_from + (unique - 1) * terminal.count() + id + 1 or 0 -- the last unique_id()
   return {commits = r.commits, given = given, statements = found}
end

terminal.load(load)
