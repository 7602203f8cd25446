-- A user's script on the runtime of terminal.lua. The option --dbcluster_script names it.
--
-- The script stays as it is: its prepare, cleanup and other commands are sysbench's. In a run, terminal.lua calls its
-- thread_init after every connect, its event for each transaction, and its thread_done at the end. What it draws at
-- random is replaced before it is loaded. Our options have a prefix, because its own may have any name.

local ffi = require("ffi")

local PREFIX = "dbcluster_"
local DESCRIBE = PREFIX .. "describe"

ffi.cdef[[ int user_script_chdir(const char *path) __asm__("chdir"); ]]

-- An option before sysbench has read them.
local function given(name, usual)
   for _, word in ipairs(sysbench.cmdline.argv) do
      local value = word:match("^%-%-" .. PREFIX .. name .. "=(.*)$")
      if value then return value end
   end
   return usual
end

local random = require("script_random")
local sessions = require("script_sessions")
local terminal = require("terminal")

local command = sysbench.cmdline.command
local runs, describes = command == "run", command == DESCRIBE
local path = given("script", "")
local directory, file = path:match("^(.*)/([^/]*)$")
local first = tonumber(given("first", "0"))

-- ----------------------------------------------------------------------
-- The script is loaded as sysbench would load it
-- ----------------------------------------------------------------------

-- Modules beside the script win over ours, which may have the same names. Messages have short paths.
for _, name in ipairs({"batch", "distributions", "seeded", "script_random", "script_sessions", "terminal"}) do
   package.loaded[name] = nil
end
package.path = "./?.lua;./?/init.lua;" .. given("scripts", "") .. "/?.lua;" .. package.path
package.cpath = "./?.so;" .. package.cpath
assert(ffi.C.user_script_chdir(directory) == 0, "there is no directory " .. directory)

sysbench.cmdline.script_path, test = path, path
if describes then sysbench.cmdline.command = "run" end
if runs then
   sysbench.tid = sysbench.tid + first
   thread_id = sysbench.tid
end
random.seed(tonumber(given("seed", "1")), sysbench.tid, -1)

local sysbench_runs = thread_run
local chunk, problem = loadfile(file)
if not chunk then error(problem, 0) end
chunk()

local user = {thread_init = thread_init, thread_done = thread_done}
local ignorable = sysbench.hooks.sql_error_ignorable
local declared = sysbench.cmdline.options
local options = declared or {}
sysbench.cmdline.options = options

-- ----------------------------------------------------------------------
-- Options
-- ----------------------------------------------------------------------

-- sysbench gives scripts that declare no options all of them as global variables.
local function export_options()
   for name, value in pairs(sysbench.opt) do
      if type(_G[name]) ~= "function" then _G[name] = value end
   end
end

if not declared then
   for name in given("given", ""):gmatch("[^,]+") do options[name] = {"of the script", ""} end
   for _, name in ipairs({"init", "prepare", "cleanup", "done"}) do
      local call = _G[name]
      if type(call) == "function" then
         _G[name] = function(...)
            export_options()
            return call(...)
         end
      end
   end
end

local names = {} -- of the script's own options
for name in pairs(options) do names[#names + 1] = name end

options[PREFIX .. "script"] = {"path of the script", ""}
options[PREFIX .. "scripts"] = {"directory of sysbench's scripts", ""}
options[PREFIX .. "given"] = {"options that the workload sets", ""}
options[PREFIX .. "ignored"] = {"errors after which an event is tried again, as mysql-ignore-errors of sysbench", ""}
options[PREFIX .. "unique_from"] = {"where unique numbers begin", 0}

if describes then
   sysbench.cmdline.commands = sysbench.cmdline.commands or {}
   sysbench.cmdline.commands[DESCRIBE] = {function()
      local every = {}
      for name in pairs(sysbench.opt) do every[#every + 1] = name end
      local commands = {}
      for _, name in ipairs({"prepare", "cleanup"}) do
         if type(_G[name]) == "function" or sysbench.cmdline.command_defined(name) then commands[#commands + 1] = name end
      end
      local loop = thread_run ~= sysbench_runs and debug.getinfo(thread_run, "S")
      io.write("\n", terminal.json({
         event = type(event) == "function", thread_run = loop and loop.short_src .. ":" .. loop.linedefined or "",
         declares = declared ~= nil, options = names, every = every, commands = commands,
      }), "\n")
   end}
end

-- ----------------------------------------------------------------------
-- The workload
-- ----------------------------------------------------------------------

local load = {kinds = {(file:gsub("%.lua$", ""))}, prefix = PREFIX}
local seed, number, tried = 1, 0, 0
local failed -- the error that ended the last attempt
local repeated = 0 -- attempts that repeated something committed
local ignored, all_ignored = {}, false

-- sysbench's own counters have places for the threads of this host only.
local function count_by_thread()
   local C = ffi.C
   ffi.C = setmetatable({sb_counter_inc = function(id, kind) C.sb_counter_inc(id - first, kind) end}, {
      __index = function(_, name) return C[name] end, __newindex = function(_, name, value) C[name] = value end,
   })
end

function load.start(t)
   seed = sysbench.opt.dbcluster_seed
   sysbench.opt.threads, sysbench.opt.num_threads = terminal.count(), terminal.count()
   if first > 0 then count_by_thread() end
   if not declared then export_options() end
   for word in sysbench.opt.dbcluster_ignored:gmatch("[^,]+") do
      if word == "all" then all_ignored = true else ignored[tonumber(word)] = true end
   end
   random.begin_unique(sysbench.opt.dbcluster_unique_from, t.id, terminal.count())
   sessions.begin(t)
end

function load.connect(t)
   sessions.renew()
   failed = nil
   random.seed(seed, t.id, 0)
   if user.thread_init then user.thread_init(t.id) end
end

function load.draw()
   number = number + 1
   return 1, number
end

function load.execute(t)
   local again = number == tried
   tried = number
   random.seed(seed, t.id, number)
   local repeats = sessions.begin_event(again)
   if repeats then repeated = repeated + 1 end
   random.keep_unique(again and not repeats) -- numbers that were committed are used up
   local problem = failed
   failed = nil
   if again and problem and sysbench.hooks.before_restart_event then
      sysbench.hooks.before_restart_event(problem)
      sessions.begin_event(false)
   end
   local ok, result = pcall(event, t.id)
   if not ok then
      failed = type(result) == "table" and result or nil
      sessions.roll_back_others()
      error(result, 0)
   end
   t.committing = false
   if result then terminal.stop(t) end -- as in sysbench, a true result ends this thread
   return sessions.rolled_back()
end

function load.retries(problem)
   return all_ignored or ignored[problem.sql_errno] or (ignorable and ignorable(problem))
end

-- The statement that runs, for messages.
function load.place()
   return sessions.text():gsub("%s+", " "):sub(1, 80)
end

function load.leave(t)
   if t.con and user.thread_done then user.thread_done(t.id) end
end

function load.report()
   return {commits = sessions.commits, bulk = sessions.bulk, repeated = repeated, unique = random.used()}
end

if runs then
   terminal.load(load)
else
   for name, value in pairs(terminal.options) do options[PREFIX .. name] = value end
end
