-- Texts of orders.lua, from a file beside it.

local words = {}
for line in assert(io.open("words.txt")):lines() do words[#words + 1] = line end

local texts = {}

function texts.note()
   return words[math.random(#words)] .. sysbench.rand.string(" ###-@@@")
end

return texts
