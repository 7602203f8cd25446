-- Two writing statements that each commit by themselves, and a table of numbers that no two events share.

sysbench.cmdline.options = {}

function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE numbers (id BIGINT PRIMARY KEY)")
   con:query("CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL)")
   con:query("INSERT INTO counter VALUES (1, 0)")
end

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   con:query("INSERT INTO numbers VALUES (" .. ("%.0f"):format(sysbench.rand.unique()) .. ")")
   con:query("UPDATE counter SET n = n + 1 WHERE id = 1")
end
