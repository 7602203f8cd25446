-- sysbench's own OLTP scripts, run by our terminals: --script names one of them.
--
-- Every random number of a transaction comes from a generator that is seeded with its input, so that a retry sends the
-- same statements, and a run with the same seed sends the same transactions.

local terminal = require("terminal")
require("oltp_common")

local TWO_31 = 2147483648 -- what oltp_insert takes off a unique number, to make an INT of it
local TWO_52 = 4503599627370496
-- sysbench's defaults of --rand-spec-iter, --rand-spec-pct, --rand-spec-res and --rand-pareto-h
local ITERATIONS, HOT_SHARE, HOT_REQUESTS, PARETO_H = 12, 0.01, 0.75, 0.2

local random = math.random
local begin_script = thread_init -- of oltp_common; a script may bring its own
local writing = {
   oltp_write_only = true, oltp_read_write = true, oltp_update_index = true, oltp_update_non_index = true,
   oltp_insert = true, oltp_delete = true,
}
local alone = {oltp_update_index = true, oltp_update_non_index = true, oltp_insert = true, oltp_delete = true}

local options = sysbench.cmdline.options
options.script = {"the OLTP script", "oltp_read_write"}
options.distribution = {"of ids: uniform, gaussian, special, pareto", "special"}
options.isolation = {"isolation level, empty for the server's own", ""}
options.random_points = {"points of select_random_points", 10}
options.number_of_ranges = {"ranges of select_random_ranges", 10}
options.delta = {"size of the ranges of select_random_ranges", 5}

-- ----------------------------------------------------------------------
-- sysbench's distributions (sb_rand.c) over LuaJIT's generator, which can be seeded
-- ----------------------------------------------------------------------

local function irwin_hall() -- the mean of uniform numbers, close to a normal one
   local sum = 0
   for _ = 1, ITERATIONS do sum = sum + random() end
   return sum / ITERATIONS
end

local distributions = {
   uniform = function(low, high) return random(low, high) end,
   gaussian = function(low, high) return low + math.floor(irwin_hall() * (high - low + 1)) end,
   pareto = function(low, high)
      local power = math.log(PARETO_H) / math.log(1 - PARETO_H)
      return low + math.floor((high - low + 1) * random() ^ power)
   end,
   special = function(low, high)
      local width, at = high - low, random()
      if at < 1 - HOT_REQUESTS then return low + math.floor(irwin_hall() * width) end
      return low + math.floor(at * (width * HOT_SHARE + 1) + width / 2 - width * HOT_SHARE / 2)
   end,
}

local formats = {} -- of templates: groups of eleven digits
local function digits(template)
   local known = formats[template]
   if not known then
      local _, groups = template:gsub("###########", "")
      known = {groups, (template:gsub("###########", "%%011.0f"))}
      formats[template] = known
   end
   local drawn = {}
   for group = 1, known[1] do drawn[group] = random(0, 99999999999) end
   return string.format(known[2], unpack(drawn))
end

local fresh -- an id beyond those of the preload that no other transaction inserts

local function take_over(t)
   sysbench.rand.uniform = distributions.uniform
   sysbench.rand.default = distributions[sysbench.opt.distribution]
   sysbench.rand.string = digits
   sysbench.rand.unique = function() return fresh + TWO_31 end
   sb_rand = sysbench.rand.default
   -- A script that connects gets the connection of its terminal.
   local proxy = {connect = function() return t.con end, name = function() return "mysql" end}
   sysbench.sql.driver = function() return proxy end
   local before = {thread_init, thread_run, thread_done}
   require(sysbench.opt.script)
   if thread_init ~= before[1] then begin_script = thread_init end
   thread_init, thread_run, thread_done = unpack(before)
end

local load = {kinds = {}, conflicts = {1062}} -- without a transaction two threads may delete and insert one row

function load.start(t)
   load.kinds[1] = sysbench.opt.script
   take_over(t)
   t.number, t.chain = 0, random(1, TWO_52)
   t.commits_itself = writing[sysbench.opt.script] and (alone[sysbench.opt.script] or sysbench.opt.skip_trx) or false
   if writing[sysbench.opt.script] and commit then
      local send = commit
      function commit()
         t.committing = true
         send()
         t.committing = false
      end
   end
end

function load.connect(t)
   if sysbench.opt.isolation ~= "" then
      t.con:query("SET SESSION TRANSACTION ISOLATION LEVEL " .. sysbench.opt.isolation)
   end
   begin_script(t.id)
   if stmt and not t.strings then
      t.strings = true
      for _, of_table in pairs(param or {}) do
         for _, values in pairs(of_table) do
            getmetatable(values[1]).set_rand_str = function(self, template) self:set(digits(template)) end
         end
      end
   end
end

function load.draw(t)
   t.number = t.number + 1
   math.randomseed(t.chain)
   t.chain = random(1, TWO_52)
   return 1, t.chain
end

function load.execute(t, _, input)
   math.randomseed(input)
   fresh = sysbench.opt.table_size + t.number * sysbench.opt.threads + t.id
   t.committing = t.commits_itself
   event(t.id)
   t.committing = false
end

terminal.load(load)
