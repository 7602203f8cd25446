-- sysbench's distributions of random integers (sb_rand.c) over one of our generators.

local floor = math.floor

local distributions = {
   -- sysbench's defaults of --rand-spec-iter, --rand-spec-pct, --rand-spec-res and --rand-pareto-h
   usual = {rand_spec_iter = 12, rand_spec_pct = 1, rand_spec_res = 75, rand_pareto_h = 0.2},
}

-- A function that returns the mean of so many uniform numbers, which is close to a normal one. It has no loop, because
-- LuaJIT 2.1.0-beta3 can run a loop around it once too often: its code is `return (unit() + unit() ...) / count`.
local function mean_of(count, unit)
   local sum = "unit()" .. (" + unit()"):rep(count - 1)
   return assert(loadstring(("local unit = ... return function() return (%s) / %d end"):format(sum, count)))(unit)
end

-- Name of each distribution -> function (low, high), both inclusive. given: values as in usual.
function distributions.over(generator, given)
   local unit, rounds = generator.unit, given.rand_spec_iter
   local hot_share, hot_requests = given.rand_spec_pct / 100, given.rand_spec_res / 100
   local power = math.log(given.rand_pareto_h) / math.log(1 - given.rand_pareto_h)

   local irwin_hall = mean_of(rounds, unit)

   return {
      uniform = generator.range,
      gaussian = function(low, high) return low + floor(irwin_hall() * (high - low + 1)) end,
      pareto = function(low, high) return low + floor((high - low + 1) * unit() ^ power) end,
      special = function(low, high)
         local width, at = high - low, unit()
         if at < 1 - hot_requests then return low + floor(irwin_hall() * width) end
         return low + floor(at * (width * hot_share + 1) + width / 2 - width * hot_share / 2)
      end,
   }
end

return distributions
