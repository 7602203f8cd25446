-- The runtime of every workload script: connections, retries, arrival rate and ledger of one sysbench thread.
--
-- It defines thread_init, thread_run and thread_done itself, so that a conflict or a lost connection never ends a run.
-- It writes the result of every transaction to one file for each thread. A workload calls terminal.load with a table:
--
--    kinds      names of its types of transactions; may also be set by start
--    start      optional, (t): once, before the first connect
--    connect    optional, (t): after every connect and reconnect: SET SESSION ..., prepared statements
--    draw       (t): the kind, an index into kinds, and the input of the next transaction
--    execute    (t, kind, input): the transaction; true when it rolled back by design
--    pause      optional, (t): seconds to wait before the next transaction of a closed loop
--    done       optional, (t, kind, input, outcome): "committed", "rolled_back", "failed" or "unknown"
--    report     optional, (t): more fields of the thread's report
--    place      optional, (t): the name of the statement that runs, for the message of an error that ends the load
--    conflicts  optional: error numbers of this workload after which a retry can succeed
--    retries    optional, (problem): whether a retry can succeed after an error that no list has
--    rolls_back optional: whether the first statement of an attempt is a ROLLBACK if t.unended is set
--    leave      optional, (t): once, after the last transaction; its error is reported like that of a statement
--    prefix     optional: begins the names of our options, so that those of a user's script can have the same
--
-- t is the thread's terminal: t.id (0 is the first of all load hosts), t.con (sysbench's connection), t.node (which
-- server it is, by WHICH), t.random(low, high). A workload sets t.committing while COMMIT or
-- a statement that commits by itself is on its way. terminal.stop(t) ends the transactions of this thread.

local ffi = require("ffi")
local seeded = require("seeded")

ffi.cdef[[
typedef struct { long seconds; long nanoseconds; } terminal_time;
// The names here are ours, because a user's script may declare the functions of libc otherwise.
int terminal_clock(int clock, terminal_time *now) __asm__("clock_gettime");
int terminal_sleep(int clock, int flags, const terminal_time *wake, terminal_time *left) __asm__("clock_nanosleep");
int terminal_prctl(int option, unsigned long value) __asm__("prctl");
typedef struct { unsigned long soft, hard; } terminal_limit;
int terminal_get_limit(int resource, terminal_limit *limit) __asm__("getrlimit");
int terminal_set_limit(int resource, const terminal_limit *limit) __asm__("setrlimit");
extern int terminal_turn __asm__("optind");
extern int terminal_start __asm__("optopt");
extern int terminal_over __asm__("opterr");
]]

local C = ffi.C -- a user's script may get another one

-- Linux, <time.h>, <sys/prctl.h> and <sys/resource.h>
local REALTIME, MONOTONIC, PROCESS_CPU, THREAD_CPU, ABSOLUTE, SET_TIMERSLACK = 0, 1, 2, 3, 1, 29

-- Buckets of latencies as in pytest_dbcluster/rounds/histogram.py.
local PER_OCTAVE, TOP = 64, 30 * 64 - 1
local PER_E = PER_OCTAVE / math.log(2)

-- The transaction is certainly not in the database, and another attempt may succeed: a row changed since it was read
-- (1020), the cluster is not ready (1047), a commit that certification refused (1180, 3100, 3101), locks (1205, 1213),
-- interrupted by a writeset that came first (1317), a table that was being changed (1412).
local CONFLICTS = {1020, 1047, 1180, 1205, 1213, 1317, 1412, 3100, 3101}
local NOT_READY, DEADLOCK, INTERRUPTED = 1047, 1213, 1317
-- At COMMIT these say nothing: the server also returns them when it is cut from its peers while it waits for them, and
-- the peers may have committed the transaction (1180 of Galera, 3100 of Group Replication). A retry could write twice.
local UNSURE = {1180, 3100}
-- This 1180 is certain: InnoDB rolled the transaction back as the victim of another one, before peers were asked.
local VICTIM = "Got error 149 "

-- The connection is gone: the server shuts down (1053, 1079, 1080), it failed to read or write (1152, 1158 to 1161),
-- it was told to end the connection (1927, 3169, 4031), the client cannot reach it or lost it (from 2002 on). 0 is the
-- error number of a statement on a connection that was lost before.
local LOST = {
   0, 1053, 1079, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031,
   2002, 2003, 2006, 2011, 2012, 2013, 2026, 2027, 2055,
}
local ROLLBACKS = 3 -- tries of one
local OPEN_FILES = 7 -- the resource of getrlimit
local MOST_PAUSE = 10 -- times the mean of pauses, as for the terminals of TPC-C
local PAUSE = 0.05 -- seconds before the next attempt, where an immediate one cannot succeed
-- The first retry is immediate. Later ones wait, since they would fail while another node's writeset is applied.
local STEP, LONGEST = 0.0005, 0.01 -- seconds by which each further retry waits longer
local NAP = 0.1 -- seconds after which a sleeper looks whether the run still goes on
local SAME = 1e-7 -- seconds: two starts of a thread are not so near, but a processor may round them differently
local LOOK = 0.001 -- seconds between two looks for the time at which all load hosts begin

-- Nodes in network namespaces of one machine have its name, and the same port. As in sysbench_driver.py.
local WHICH = "SELECT CONCAT(@@hostname, ':', @@port, ':', CRC32(@@datadir))"

local terminal = {}

local load -- what terminal.load was given
local terminals -- number of all load hosts
local driver = sysbench.sql.driver
local mine -- this thread's terminal: each thread has a Lua state of its own
local box = ffi.new("terminal_time[1]")

local function set(...)
   local found = {}
   for _, list in ipairs({...}) do
      for _, number in ipairs(list) do found[number] = true end
   end
   return found
end

local lost, conflicts, unsure = set(LOST), set(CONFLICTS), set(UNSURE)

local function clock(which)
   C.terminal_clock(which, box)
   return tonumber(box[0].seconds) + tonumber(box[0].nanoseconds) * 1e-9
end

local function now()
   return clock(MONOTONIC)
end
terminal.now = now

-- Whether the run goes on: no other thread failed, an open loop can still meet its objective, and nobody made the file
-- that tells the load to stop. A thread looks for the file once in NAP seconds. It ends after the transaction that runs.
local function goes_on(t)
   if not C.sb_more_events(t.thread) then return false end
   if t.most_over and C.terminal_over > t.most_over then
      t.ended_early, t.deadline, t.limit = true, math.min(t.deadline, now()), 0
      return false
   end
   if t.stop == "" or t.stopped then return not t.stopped end
   local at = now()
   if at >= t.looks then
      t.looks = at + NAP
      local file = io.open(t.stop)
      if file then
         file:close()
         t.stopped, t.deadline, t.limit = true, at, at
      end
   end
   return not t.stopped
end

-- Sleeps until a time. Returns false when the run ended meanwhile: another thread failed, or the load was stopped.
local function sleep_until(t, moment)
   while true do
      local wake = math.min(moment, now() + NAP)
      if wake >= moment and now() >= moment then return true end
      box[0].seconds = math.floor(wake)
      box[0].nanoseconds = (wake - math.floor(wake)) * 1e9
      C.terminal_sleep(MONOTONIC, ABSOLUTE, box, nil)
      if not goes_on(t) then return false end
   end
end

-- Waits so many seconds within a transaction.
function terminal.sleep(t, seconds)
   sleep_until(t, now() + seconds)
end

-- Gaps between starts have their own generator, so that inputs are the same at every arrival rate.
local function gap(t)
   return -math.log(1 - t.gaps.unit()) * t.mean_gap
end

local function count(counts, key)
   counts[key] = (counts[key] or 0) + 1
end

local function bucket(seconds)
   local microseconds = math.max(1, seconds * 1e6)
   return math.min(TOP, math.floor(math.log(microseconds) * PER_E))
end
terminal.bucket = bucket

-- An empty histogram: a count for each bucket.
function terminal.histogram()
   return ffi.new("int32_t[?]", TOP + 1)
end

-- ----------------------------------------------------------------------
-- Connections and their errors
-- ----------------------------------------------------------------------

local function words(t, problem)
   if type(problem) ~= "table" then return tostring(problem) end
   return string.format("error %d on %s: %s; statement: %s", problem.sql_errno, t.node or "connecting",
                        problem.sql_errmsg, tostring(problem.query):sub(1, 200))
end

-- Notes the error that ends the load, for the report. committing: whether the transaction may be committed.
local function ends(t, problem, committing)
   local query = type(problem.query) == "string" and problem.query or ""
   t.problem = {
      number = problem.sql_errno, message = problem.sql_errmsg, node = t.node or "", committing = committing or false,
      statement = load.place and load.place(t) or query:match("^%s*(%a+)") or "", kind = load.kinds[t.kind] or "",
   }
   t.words = words(t, problem)
end

local function drop(t)
   local con = t.con
   t.con, t.unended = nil, false
   if con then pcall(con.disconnect, con) end
end

-- Threads get endpoints in the order in which they connect. They connect one after the other, so each thread has the
-- same endpoint in every run. terminal_turn and terminal_start are integers of libc (optind and optopt) that all Lua
-- states of the process see, and sysbench does not use.
local function wait_for_turn(turn) -- it begins as 1
   while C.terminal_turn ~= turn do
      local before = math.max(1, turn - C.terminal_turn)
      box[0].seconds = 0
      box[0].nanoseconds = math.min(before * 1e5, 5e7)
      C.terminal_sleep(MONOTONIC, 0, box, nil)
   end
end

local function connect_in_turn(t)
   local turn = t.thread + 1
   wait_for_turn(turn)
   local ok, con = pcall(t.driver.connect, t.driver)
   C.terminal_turn = turn + 1
   t.had_turn = true
   if not ok then error(con, 0) end
   return con
end

-- The value of one of our options.
local function option(name)
   return sysbench.opt[(load.prefix or "") .. name]
end

-- Raises the error of a connect that failed; there is no connection then.
local function connect(t)
   t.node = nil
   local ok, problem = pcall(function()
      t.con = t.had_turn and t.driver:connect() or connect_in_turn(t)
      t.node = t.con:query_row(WHICH)
      t.nodes[t.node] = true
      if option("isolation") ~= "" then
         t.con:query("SET SESSION TRANSACTION ISOLATION LEVEL " .. option("isolation"))
      end
      if load.connect then load.connect(t) end
   end)
   if not ok then
      drop(t)
      error(problem, 0)
   end
end

-- Keeps the time of an error, to a tenth of a second. node: empty while connecting.
local function note_error(t, number, node, committing)
   if not t.commits or not t.begun then return end
   local tenth = math.floor((now() - t.begun) * 10)
   count(t.failures, table.concat({tenth, number, committing and 1 or 0, node or ""}, " "))
end

-- Whether a connect that failed may succeed later; sysbench reports only these two texts for an error without a number.
local function again(problem)
   if type(problem) == "table" then return lost[problem.sql_errno] or conflicts[problem.sql_errno] end
   problem = tostring(problem)
   return problem:find("connection creation failed", 1, true) or problem:find("SQL API error", 1, true)
end

-- sysbench's own reconnect never gives up; a new connection also goes to the next endpoint when a node is gone.
-- Returns false when there is no connection until the end, or an error that no retry can solve: see ends.
local function connected(t)
   while not t.con do
      if now() >= t.limit or not goes_on(t) then return false end
      local ok, problem = pcall(connect, t)
      if not ok then
         if not again(problem) then
            if type(problem) ~= "table" then error(problem, 0) end
            if not t.outlives then
               ends(t, problem)
               return false
            end
         end
         note_error(t, type(problem) == "table" and problem.sql_errno or 0, "", false)
         sleep_until(t, now() + PAUSE)
      end
   end
   return true
end

-- The error that ended an attempt, as a table with sql_errno. sysbench has no error number for a statement that could
-- not be prepared, so it is read from the connection. Errors of the script itself are raised again.
local function cause(t, problem)
   if type(problem) == "table" and problem.sql_errno then return problem end
   if t.con and tostring(problem):find("SQL API error", 1, true) then
      local ok, said = pcall(t.con.query, t.con, "DO 0")
      if not ok and type(said) == "table" then return said end
   end
   error(problem, 0)
end

-- Ends the transaction after a conflict. Returns false when the connection is of no more use.
local function roll_back(t)
   for _ = 1, ROLLBACKS do
      local ok, problem = pcall(t.con.query, t.con, "ROLLBACK")
      if ok then return true end
      -- Another writeset may abort what is left of the transaction once more.
      if type(problem) ~= "table" or not conflicts[problem.sql_errno] then return false end
   end
   return false
end

-- After an attempt that ended in an error: "retry", "unknown", or "failed" for an error that no list above has: then
-- t.problem is set, and the load ends unless it outlives errors. At COMMIT such an error means unknown too.
local function settle(t, problem, tries)
   local committing = t.committing
   t.committing = false
   problem = cause(t, problem)
   local number = problem.sql_errno
   local at = t.errors[t.node] or {}
   t.errors[t.node] = at
   count(at, number)
   note_error(t, number, t.node, committing)
   if lost[number] then
      t.lost = t.lost + 1
      drop(t)
      return committing and "unknown" or "retry"
   end
   if not conflicts[number] and not (load.retries and load.retries(problem)) then
      if t.outlives then -- an event may cause any error: another connection may have a server without it
         drop(t)
         sleep_until(t, now() + PAUSE)
      else
         ends(t, problem, committing)
      end
      return committing and "unknown" or "failed"
   end
   local pause = number == NOT_READY and PAUSE or math.min((tries - 1) * STEP, LONGEST)
   -- The server has ended the transaction. What a batch has begun since then ends with the next attempt, which comes at
   -- once; after a COMMIT, nothing has begun.
   t.unended = load.rolls_back and number == DEADLOCK and (committing or pause == 0)
   if not t.unended and not roll_back(t) then
      drop(t)
      -- A server that shuts down first interrupts statements, then closes connections.
      if committing and number == INTERRUPTED then return "unknown" end
   end
   if committing and unsure[number] and not problem.sql_errmsg:find(VICTIM, 1, true) then return "unknown" end
   if pause > 0 then sleep_until(t, now() + pause) end
   return "retry"
end

-- ----------------------------------------------------------------------
-- Transactions
-- ----------------------------------------------------------------------

-- Adds the time lost since a moment; returns the moment from which the next loss counts.
local function lose(entry, since)
   local ended = now()
   entry.aborted_seconds = entry.aborted_seconds + ended - since
   return ended
end

local function attempts(t, entry, kind, input, began)
   local tries, without = 0, not t.con and t.lost > 0 and not t.reconnects
   while true do
      local there = connected(t)
      if tries > 0 or without then began = lose(entry, began) end -- a lost connection takes until there is another
      if not there then return tries > 0 and "failed" or nil, tries end
      tries = tries + 1
      t.committing = false
      local ok, result = pcall(load.execute, t, kind, input)
      if ok then return result and "rolled_back" or "committed", tries end
      local what = settle(t, result, tries)
      began = lose(entry, began)
      if what ~= "retry" then return what, tries end
      if tries >= t.attempts or began >= t.limit or not goes_on(t) then
         if t.unended and not roll_back(t) then drop(t) end
         t.unended = false
         return "failed", tries
      end
   end
end

-- Runs one transaction, which was due at start and begins at begins. Returns false when it could not begin, or when it
-- ends the load.
local function transaction(t, start, begins)
   local kind, input = load.draw(t)
   t.kind = kind
   local entry = t.entries[kind]
   local outcome, tries = attempts(t, entry, kind, input, begins)
   if not outcome then return false end
   entry[outcome] = entry[outcome] + 1
   if t.keeps then
      local ended = now()
      count(entry.attempts, tries)
      if outcome == "committed" or outcome == "rolled_back" then
         local key = bucket(ended - start)
         entry.latencies[key] = entry.latencies[key] + 1
         count(t.by_tenth, math.floor((ended - t.begun) * 10) + 1)
      end
   end
   if t.commits and outcome == "committed" then
      local moments = t.commits[kind]
      moments[#moments + 1] = math.floor((now() - t.begun) * 1000)
   end
   if load.done then load.done(t, kind, input, outcome) end
   if t.reconnects then drop(t) end
   return not t.problem
end

-- Seconds before the next transaction of a closed loop: those of the workload, or exponential around a mean.
local function pause(t)
   if load.pause then return load.pause(t) end
   return t.mean_pause * math.min(MOST_PAUSE, -math.log(1 - t.waits.unit()))
end

local function closed_loop(t)
   while goes_on(t) do
      if t.pauses and not sleep_until(t, math.min(now() + pause(t), t.deadline)) then return end
      local start = now()
      if start >= t.deadline or not transaction(t, start, start) then return end
   end
end

-- Counts the transactions that have certainly missed the objective: the one that was due at start, if it took longer,
-- and those that have waited for longer. t.unseen is the start of the first one that is not known to have missed; ahead
-- repeats the gaps. Threads count together without a lock, so they may count too few, and never too many.
local function count_missed(t, start)
   local at, missed = now(), 0
   local function step() t.unseen = t.unseen - math.log(1 - t.ahead.unit()) * t.mean_gap end
   while t.unseen < start - SAME do step() end -- they have ended in time
   while t.unseen < t.deadline and at - t.unseen > t.objective do
      missed = missed + 1
      step()
   end
   if t.unseen < start + SAME then step() end
   if missed > 0 then C.terminal_over = C.terminal_over + missed end
end

-- Transactions that were due before the deadline still start late, for up to the run's length after it. So a server
-- that stalls at the end of a run shows in the latencies too.
local function open_loop(t)
   local start = t.begun + gap(t)
   t.unseen = start
   if t.most_over then t.ahead.unit() end
   while start < t.deadline do
      t.offered = t.offered + 1
      if t.going then
         local in_time = now() < t.limit and sleep_until(t, start)
         local begins = now()
         t.delay = begins - start -- of the last one that began, or of the first that did not
         t.going = in_time and transaction(t, start, begins)
         if t.ended_early and start > t.deadline then t.offered = t.offered - 1 end -- it was not due yet
         if t.most_over then
            count_missed(t, start)
            t.going = t.going and goes_on(t) -- a thread that is late does not sleep, which looks too
         end
      end
      start = start + gap(t)
   end
   if t.going then sleep_until(t, t.deadline) end
end

-- ----------------------------------------------------------------------
-- What sysbench calls in each thread
-- ----------------------------------------------------------------------

-- The number of terminals of all load hosts.
function terminal.count()
   return terminals
end

function terminal.stop(t)
   t.deadline, t.going = 0, false
end

-- The time at which the first thread began, to a tenth of a millisecond, for all threads: with hundreds of threads the
-- last one starts late, but all have the same deadline.
local UNSET, TICKS, ROUND = 63, 1e4, 2147483648
local function set_start(moment)
   local ticks = math.floor(moment * TICKS) % ROUND
   C.terminal_start = ticks == UNSET and UNSET + 1 or ticks
end

local function common_start()
   local moment = now()
   local ticks = math.floor(moment * TICKS)
   if C.terminal_start == UNSET then set_start(moment) end
   local since = (ticks - C.terminal_start) % ROUND
   -- Another thread may have read the clock later, but written first.
   return moment - (since < ROUND / 2 and since or since - ROUND) / TICKS
end

-- One of several load hosts: says that all threads are connected, and waits for the time, by this host's clock, at
-- which all hosts begin. Then sysbench lets the threads run.
local function begin_with_other_hosts(t)
   local ready, go = option("ready"), option("go")
   assert(assert(io.open(ready, "w")):close())
   while C.sb_more_events(t.thread) do
      local file = io.open(go)
      local said = file and file:read("*a"):match("^(%S+)\n")
      if file then file:close() end
      if said then
         os.remove(ready)
         os.remove(go)
         local start = now() + assert(tonumber(said), "the load ended before its begin") - clock(REALTIME)
         set_start(start)
         sleep_until(t, start)
         return
      end
      sleep_until(t, now() + LOOK)
   end
end

-- Opens this thread's share of the connections that stay idle, after all threads have their own ones.
local function open_idle(t)
   local limit = ffi.new("terminal_limit[1]")
   if C.terminal_get_limit(OPEN_FILES, limit) == 0 then
      limit[0].soft = limit[0].hard
      C.terminal_set_limit(OPEN_FILES, limit)
   end
   for number = t.id + 1, option("idle"), terminals do
      local ok, con = pcall(t.driver.connect, t.driver)
      if not ok then error(("idle connection %d of %d: %s"):format(number, option("idle"), tostring(con)), 0) end
      t.idle[#t.idle + 1] = con
   end
end

local function begin_thread(thread)
   local threads, seed = sysbench.opt.threads, option("seed")
   terminals = option("terminals") > 0 and option("terminals") or threads
   local id = option("first") + thread
   local t = {
      id = id, thread = thread, attempts = option("attempts"), seconds = tonumber(option("seconds")), nodes = {},
      errors = {}, lost = 0, by_tenth = {}, offered = 0, going = true, entries = {}, keeps = option("ledger"),
      random = seeded.generator(seed, id, 0).range, gaps = seeded.generator(seed, id, 1),
      waits = seeded.generator(seed, id, 2), mean_pause = tonumber(option("pause")), reconnects = option("reconnect"),
      idle = {}, stop = option("stop"), stopped = false, looks = 0, outlives = option("outlives"),
      commits = option("times") and {} or nil, failures = {},
   }
   local rate, objective = tonumber(option("arrival_rate")), tonumber(option("objective"))
   if objective > 0 then
      t.objective, t.most_over, t.ahead = objective, option("most_over"), seeded.generator(seed, id, 1)
   end
   C.terminal_over = 0 -- all threads do this before the first one runs
   t.mean_gap = rate > 0 and terminals / rate or 0
   t.driver = driver()
   if load.start then load.start(t) end
   conflicts = set(CONFLICTS, load.conflicts or {}) -- start may have changed them
   for kind in ipairs(load.kinds) do
      t.entries[kind] = {
         attempts = {}, committed = 0, rolled_back = 0, failed = 0, unknown = 0, aborted_seconds = 0,
         latencies = terminal.histogram(),
      }
      if t.commits then t.commits[kind] = {} end
   end
   local ok, problem = pcall(connect, t)
   if option("idle") > 0 then -- a second turn, which begins when all threads are connected
      wait_for_turn(threads + thread + 1)
      C.terminal_turn = threads + thread + 2
      if ok then ok, problem = pcall(open_idle, t) end
   end
   if option("go") ~= "" then -- one more turn, which the last thread has when all others have done all this
      local begin = (option("idle") > 0 and 2 or 1) * threads + thread + 1
      wait_for_turn(begin)
      C.terminal_turn = begin + 1
      if ok and thread == threads - 1 then begin_with_other_hosts(t) end
   end
   if not ok then error(words(t, problem), 0) end
   t.pauses = load.pause ~= nil or t.mean_pause > 0
   mine = t
end

local end_thread -- below

local function run_thread(id)
   local t = mine
   local paced = t.mean_gap > 0
   C.terminal_prctl(SET_TIMERSLACK, 1) -- 50 us otherwise, which every latency from an intended start would contain
   local cpu, process = clock(THREAD_CPU), clock(PROCESS_CPU)
   t.begun = common_start()
   t.late = now() - t.begun
   t.began_at = clock(REALTIME) - t.late
   t.deadline = t.begun + t.seconds
   t.limit = t.deadline + (paced and t.seconds or 0)
   if paced then open_loop(t) else closed_loop(t) end
   t.ended = now()
   t.cpu, t.process_cpu = clock(THREAD_CPU) - cpu, clock(PROCESS_CPU) - process
   if t.problem then
      end_thread(id) -- sysbench does not call it for a thread that failed
      error(t.words, 0) -- ends the other threads, which leave their reports too
   end
end

-- JSON of a report's values: numbers, strings, booleans, arrays (empty ones too) and tables with names.
local function json(value)
   if type(value) == "number" then return string.format("%.17g", value) end
   if type(value) == "string" then
      return '"' .. value:gsub('[%c"\\]', function(c) return string.format("\\u%04x", c:byte()) end) .. '"'
   end
   if type(value) ~= "table" then return tostring(value) end
   local parts = {}
   if next(value) == nil or value[1] ~= nil then
      for n, item in ipairs(value) do parts[n] = json(item) end
      return "[" .. table.concat(parts, ",") .. "]"
   end
   for name, item in pairs(value) do parts[#parts + 1] = json(tostring(name)) .. ":" .. json(item) end
   return "{" .. table.concat(parts, ",") .. "}"
end
terminal.json = json

-- Counts by number as pairs: {[3] = 5} is [[3, 5]].
local function pairs_of(counts)
   local found = {}
   for key, value in pairs(counts) do found[#found + 1] = {key, value} end
   return found
end

-- The counts of a histogram, as pairs of bucket and count.
function terminal.counts(histogram)
   local found = {}
   for key = 0, TOP do found[key] = histogram[key] > 0 and histogram[key] or nil end
   return pairs_of(found)
end

local function reported(t)
   local found = {
      token = option("token"), id = t.id, begun = t.begun, ended = t.ended, cpu = t.cpu, process_cpu = t.process_cpu,
      late = t.late, lost = t.lost, offered = t.offered, delay = t.delay, by_second = {}, by_tenth = {}, nodes = {},
      errors = {}, kinds = {}, problem = t.problem, ended_early = t.ended_early or false,
   }
   for node in pairs(t.nodes) do table.insert(found.nodes, node) end
   for node, numbers in pairs(t.errors) do
      for number, times in pairs(numbers) do table.insert(found.errors, {number, node, times}) end
   end
   for tenth = 1, table.maxn(t.by_tenth) do
      local second, good = math.ceil(tenth / 10), t.by_tenth[tenth] or 0
      found.by_tenth[tenth] = good
      found.by_second[second] = (found.by_second[second] or 0) + good
   end
   for kind, name in ipairs(load.kinds) do
      local entry = t.entries[kind]
      entry.attempts, entry.latencies = pairs_of(entry.attempts), terminal.counts(entry.latencies)
      found.kinds[name] = entry
   end
   if t.commits then
      found.began_at, found.commits, found.failures = t.began_at, {}, pairs_of(t.failures)
      for kind, name in ipairs(load.kinds) do found.commits[name] = t.commits[kind] end
   end
   for name, value in pairs(load.report and load.report(t) or {}) do found[name] = value end
   return found
end

function end_thread(id)
   local t = mine
   if load.leave then
      local ok, problem = pcall(load.leave, t)
      if not ok and not t.problem then
         if type(problem) ~= "table" or not problem.sql_errno then error(problem, 0) end
         ends(t, problem, true)
      end
   end
   local path = string.format("%s/report-%d.json", option("reports"), id)
   local file = assert(io.open(path, "w"))
   assert(file:write(json(reported(t))))
   assert(file:close())
   drop(t)
   for _, con in ipairs(t.idle) do pcall(con.disconnect, con) end
end

-- Name of each of our options -> description and default.
terminal.options = {
   seconds = {"how long new transactions start", "2"},
   arrival_rate = {"transactions a second over all threads, 0 for a closed loop", "0"},
   objective = {"seconds that transactions of an open loop should not exceed, 0 for none", "0"},
   most_over = {"how many may exceed them, before an open loop ends early", 0},
   attempts = {"tries of one transaction", 100},
   isolation = {"isolation level, empty for the server's own", ""},
   pause = {"mean seconds before each transaction of a closed loop", "0"},
   reconnect = {"whether each transaction has a connection of its own", false},
   idle = {"connections of all load hosts that stay idle", 0},
   seed = {"of the inputs", 1},
   first = {"number of the first terminal, where several hosts divide them", 0},
   terminals = {"terminals of all load hosts, 0 for the threads of this one", 0},
   ready = {"file that says that all threads are connected, with go", ""},
   go = {"file with the time to begin (seconds since 1970), empty to begin at once", ""},
   reports = {"directory of the reports", "."},
   stop = {"file that tells the load to stop, empty for none", ""},
   times = {"whether the time of each commit and error is kept", false},
   outlives = {"whether the load goes on after errors that no retry solves", false},
   token = {"goes into the reports", ""},
   ledger = {"whether more is kept than outcomes; off only to measure what keeping it takes", true},
}

-- Runs the threads of this script for a workload, given as the table described above.
function terminal.load(given)
   load = given
   conflicts = set(CONFLICTS, load.conflicts or {})
   -- Every error is returned as a table with its number, and sysbench does not print it.
   sysbench.hooks.sql_error_ignorable = function() return true end
   local quiet = {}
   for number in pairs(conflicts) do quiet[#quiet + 1] = number end
   local options = sysbench.cmdline.options or {}
   sysbench.cmdline.options = options
   options["mysql-ignore-errors"] = {"errors that are retried", table.concat(quiet, ","), sysbench.cmdline.ARG_LIST}
   for name, value in pairs(terminal.options) do options[(load.prefix or "") .. name] = value end
   thread_init, thread_run, thread_done = begin_thread, run_thread, end_thread
   event = event or function() end -- sysbench wants one
end

return terminal
