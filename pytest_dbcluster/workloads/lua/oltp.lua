-- Runs sysbench's own OLTP scripts on the runtime of terminal.lua. The option --script names one of them.
--
-- The random numbers of a transaction come from a generator that is seeded with the transaction's input. So a retry
-- sends the same statements, and a run with the same seed sends the same transactions.

local ffi = require("ffi")
local distributions = require("distributions")
local seeded = require("seeded")
local terminal = require("terminal")
require("oltp_common")

local TWO_31 = 2147483648 -- what oltp_insert takes off a unique number, to make an INT of it
local DUPLICATE = 1062 -- without a transaction two threads may delete and insert one row
local GROUPS = 11 -- digits of a group in sysbench's templates, which dashes part
local DASH, ZERO = 45, 48

local drawn = seeded.generator() -- seeded anew for each attempt
local unit = drawn.unit
local begin_script = thread_init -- of oltp_common; a script may bring its own
local writing = {
   oltp_write_only = true, oltp_read_write = true, oltp_update_index = true, oltp_update_non_index = true,
   oltp_insert = true, oltp_delete = true,
}
local alone = {oltp_update_index = true, oltp_update_non_index = true, oltp_insert = true, oltp_delete = true}

local options = sysbench.cmdline.options
options.script = {"the OLTP script", "oltp_read_write"}
options.distribution = {"of ids: uniform, gaussian, special, pareto", "special"}
options.random_points = {"points of select_random_points", 10}
options.number_of_ranges = {"ranges of select_random_ranges", 10}
options.delta = {"size of the ranges of select_random_ranges", 5}

local by_name = distributions.over(drawn, distributions.usual)

-- The text of a template, "###########-###########...", into a buffer. One random number gives eight digits.
local function write_digits(buffer, length)
   local rest, left = 0, 0
   for at = 0, length - 1 do
      if at % (GROUPS + 1) == GROUPS then
         buffer[at] = DASH
      else
         if left == 0 then rest, left = unit(), 8 end
         rest = rest * 10
         local digit = math.floor(rest)
         buffer[at] = ZERO + digit
         rest, left = rest - digit, left - 1
      end
   end
end

local text = ffi.new("char[?]", 256)
local function digits(template)
   write_digits(text, #template)
   return ffi.string(text, #template)
end

-- Replaces set_rand_str of sysbench's bound parameters.
local function set_digits(self, template)
   local length = math.min(#template, self.max_len)
   write_digits(self.buffer, length)
   self.data_len[0] = length
   self.is_null[0] = 0
end

local fresh -- an id beyond those of the preload that no other transaction inserts

local function take_over(t)
   sysbench.rand.uniform = by_name.uniform
   sysbench.rand.default = by_name[sysbench.opt.distribution]
   sysbench.rand.string = digits
   sysbench.rand.unique = function() return fresh + TWO_31 end
   sb_rand = sysbench.rand.default
   -- A script that connects gets its terminal's connection.
   local proxy = {connect = function() return t.con end, name = function() return "mysql" end}
   sysbench.sql.driver = function() return proxy end
   local before = {thread_init, thread_run, thread_done}
   require(sysbench.opt.script)
   if thread_init ~= before[1] then begin_script = thread_init end
   thread_init, thread_run, thread_done = unpack(before)
end

local load = {kinds = {}, conflicts = {DUPLICATE}}

function load.start(t)
   load.kinds[1] = sysbench.opt.script
   take_over(t)
   t.number = 0
   if sysbench.opt.script == "oltp_insert" then load.conflicts = {} end
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
   begin_script(t.id)
   if stmt and not t.strings then
      t.strings = true
      for _, of_table in pairs(param or {}) do
         for _, values in pairs(of_table) do
            getmetatable(values[1]).set_rand_str = set_digits
         end
      end
   end
end

function load.draw(t)
   t.number = t.number + 1
   return 1, t.number
end

function load.execute(t, _, number)
   drawn.seed(sysbench.opt.seed, t.id, number)
   fresh = sysbench.opt.table_size + number * terminal.count() + t.id
   t.committing = t.commits_itself
   event(t.id)
   t.committing = false
end

terminal.load(load)
