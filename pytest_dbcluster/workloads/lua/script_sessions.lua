-- The connections of a user's script in one thread. The script gets tables with the methods of sysbench's connections
-- and statements. They note what commits, so that a lost connection at COMMIT is an unknown outcome and is not repeated.

local ffi = require("ffi")

local READ, WRITE, DEFINE, BEGIN, COMMIT, ROLLBACK, SET, OTHER = 1, 2, 3, 4, 5, 6, 7, 8
local CLASSES = {
   SELECT = READ, SHOW = READ, DESC = READ, DESCRIBE = READ, EXPLAIN = READ, WITH = READ, VALUES = READ, TABLE = READ,
   HANDLER = READ, USE = READ, DO = READ,
   BEGIN = BEGIN, START = BEGIN, COMMIT = COMMIT, ROLLBACK = ROLLBACK, SET = SET,
   SAVEPOINT = OTHER, RELEASE = OTHER, PREPARE = OTHER, DEALLOCATE = OTHER, XA = OTHER, UNLOCK = OTHER,
   CREATE = DEFINE, ALTER = DEFINE, DROP = DEFINE, RENAME = DEFINE, TRUNCATE = DEFINE, ANALYZE = DEFINE,
   OPTIMIZE = DEFINE, GRANT = DEFINE, REVOKE = DEFINE, LOCK = DEFINE, FLUSH = DEFINE,
} -- others, such as CALL, may write
local OFF = {["0"] = true, off = true, ["false"] = true}
local OLD_TEXT = 4096 -- bytes of a text that a statement of sysbench's old interface binds

-- commits: of this thread. bulk: whether rows went through bulk_insert, whose commits nobody counts.
local sessions = {commits = 0, bulk = false}

local t -- the thread's terminal
local others = {} -- connections besides t.con
local main -- the session of t.con, once the script has asked for it
local statement_text = "" -- of the last statement
local in_event = {commits = 0, rolled_back = false}

local function class_of(text)
   local word = text:match("^[%s(]*(%a+)")
   while not word do
      local rest, count = text:gsub("^%s*/%*.-%*/", "", 1)
      if count == 0 then rest, count = text:gsub("^%s*%-%-[^\n]*\n", "", 1) end
      if count == 0 then return OTHER end
      text, word = rest, rest:match("^[%s(]*(%a+)")
   end
   local class = CLASSES[word] or CLASSES[word:upper()] or WRITE
   if class == ROLLBACK and text:match("^%s*%a+%s+[Tt][Oo]%s") then return OTHER end
   if class == BEGIN and not text:match("^%s*[Bb]") and not text:match("^%s*%a+%s+[Tt][Rr]") then return OTHER end
   return class
end

local function begins(session, class, text)
   statement_text = text
   t.committing = class == COMMIT and session.wrote or class == DEFINE
      or class == WRITE and session.commits_itself and not session.open
end

local function commits()
   sessions.commits = sessions.commits + 1
   in_event.commits = in_event.commits + 1
end

local function ended(session, class, text)
   t.committing = false
   if class == READ or class == OTHER then return end
   if class == WRITE then
      if session.open or not session.commits_itself then session.wrote = true else commits() end
   elseif class == ROLLBACK then
      in_event.rolled_back = true
      session.open, session.wrote = false, false
   elseif class == SET then
      local value = text:lower():match("autocommit%s*:?=%s*(%w+)")
      if value then session.commits_itself = not OFF[value] end
   else -- these end a transaction
      if session.wrote then commits() end
      if class == DEFINE then commits() end
      session.open, session.wrote = class == BEGIN, false
   end
end

-- ----------------------------------------------------------------------
-- Statements and connections
-- ----------------------------------------------------------------------

local statements = {}
statements.__index = statements

function statements.execute(self)
   local session, class = self.connection, self.class
   begins(session, class, self.text)
   local result = self.real:execute()
   ended(session, class, self.text)
   return result
end

function statements.bind_create(self, ...) return self.real:bind_create(...) end
function statements.bind_param(self, ...) return self.real:bind_param(...) end
function statements.close(self) return self.real:close() end

local methods = {}

-- Anything else, such as sql_errno, comes from sysbench's connection.
local function other_member(self, name)
   local own = methods[name]
   if own ~= nil then return own end
   local value = rawget(self, "real")[name]
   if type(value) ~= "function" then return value end
   return function(_, ...) return value(self.real, ...) end
end

local sessions_meta = {__index = other_member, __tostring = function() return "<sql_connection>" end}

local function session_of(real)
   return setmetatable({real = real, open = false, wrote = false, commits_itself = true}, sessions_meta)
end

function methods.query(self, text)
   local class = class_of(text)
   begins(self, class, text)
   local result = self.real:query(text)
   ended(self, class, text)
   return result
end

function methods.query_row(self, text)
   local class = class_of(text)
   begins(self, class, text)
   local values = {self.real:query_row(text)}
   ended(self, class, text)
   return unpack(values, 1, table.maxn(values))
end

function methods.prepare(self, text)
   statement_text = text
   local real = self.real:prepare(text)
   return setmetatable({real = real, connection = self, class = class_of(text), text = text}, statements)
end

local function bulk(name, with_rows)
   local call = ffi.C["db_" .. name]
   methods[name] = function(self, text)
      begins(self, with_rows and WRITE or OTHER, name)
      local failed = text and call(self.real, text, #text) or not text and call(self.real)
      if failed ~= 0 then
         local words = self.real.sql_errmsg
         error({sql_errno = self.real.sql_errno, sql_errmsg = words ~= nil and ffi.string(words) or name .. " failed",
                query = statement_text}, 0)
      end
      t.committing, sessions.bulk = false, true
      return true
   end
end
bulk("bulk_insert_init", false)
bulk("bulk_insert_next", true)
bulk("bulk_insert_done", true)

function methods.disconnect(self)
   others[self] = nil
   return self.real:disconnect()
end

function methods.reconnect(self)
   self.open, self.wrote, self.commits_itself = false, false, true
   return self.real:reconnect()
end

-- ----------------------------------------------------------------------
-- What a script calls
-- ----------------------------------------------------------------------

local driver = {}

function driver.name()
   return t.driver:name()
end

-- The first connection is the terminal's.
function driver.connect()
   if not main then
      main = session_of(t.con)
      return main
   end
   local session = session_of(t.driver:connect())
   others[session] = true
   return session
end

-- sysbench's interface before 1.0, with one connection for each thread.
local old

local function old_session()
   old = old or driver.connect()
   return old
end

local function old_statement(text)
   return old_session():prepare(text)
end

local function bind(statement, values)
   local types = sysbench.sql.type
   statement.values, statement.parameters = values, {}
   for place, value in ipairs(values) do
      local kind = type(value) == "number" and types.BIGINT or types.VARCHAR
      statement.parameters[place] = statement:bind_create(kind, OLD_TEXT)
   end
   statement:bind_param(unpack(statement.parameters))
end

local function execute(statement)
   for place, parameter in ipairs(statement.parameters or {}) do parameter:set(statement.values[place]) end
   return statement:execute()
end

local interface = {
   connect = function() old_session() end,
   disconnect = function()
      if old then old:disconnect() end
      old = nil
   end,
   query = function(text) old_session():query(text) end,
   prepare = old_statement, bind_param = bind, execute = execute,
   bulk_insert_init = function(text) old_session():bulk_insert_init(text) end,
   bulk_insert_next = function(text) old_session():bulk_insert_next(text) end,
   bulk_insert_done = function() old_session():bulk_insert_done() end,
   store_results = function() end, free_results = function() end, bind_result = function() end,
   close = function(statement) statement:close() end,
}

-- The script in this thread runs with this terminal from now on.
function sessions.begin(terminal)
   t = terminal
   function sysbench.sql.driver() return driver end
   for name, call in pairs(interface) do
      sysbench.db[name] = call
      if _G["db_" .. name] then _G["db_" .. name] = call end
   end
   db_driver = t.driver:name()
end

-- The terminal has connected: the script begins with this connection and no other.
function sessions.renew()
   for session in pairs(others) do pcall(session.real.disconnect, session.real) end
   others, main, old = {}, nil, nil
end

-- An event begins, or its next attempt after the terminal has rolled back. Returns whether it repeats commits.
function sessions.begin_event(again)
   local repeats = again and in_event.commits > 0
   if again and main then main.open, main.wrote = false, false end
   in_event.commits, in_event.rolled_back = 0, false
   return repeats
end

-- Whether an event that ended without an error has rolled back what it did.
function sessions.rolled_back()
   return in_event.rolled_back and in_event.commits == 0
end

function sessions.text()
   return statement_text
end

-- Ends the transactions of connections that the terminal does not know. Those of which it fails are closed.
function sessions.roll_back_others()
   for session in pairs(others) do
      session.open, session.wrote = false, false
      if not pcall(session.real.query, session.real, "ROLLBACK") then
         others[session] = nil
         pcall(session.real.disconnect, session.real)
      end
   end
end

return sessions
