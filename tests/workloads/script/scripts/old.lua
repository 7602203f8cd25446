-- A script of sysbench 0.5: options are global variables, and one connection belongs to the thread.

pathtest = string.match(test, "(.*/)")
dofile(pathtest .. "lib/old_names.lua")

function prepare()
   db_connect()
   db_query("CREATE TABLE " .. table_name .. " (id INT PRIMARY KEY, k INT NOT NULL)")
   db_bulk_insert_init("INSERT INTO " .. table_name .. " VALUES")
   for id = 1, old_rows do db_bulk_insert_next("(" .. id .. ", " .. sb_rand(1, 100) .. ")") end
   db_bulk_insert_done()
   db_disconnect()
end

function thread_init(thread_id)
   bound = {1, 1}
   change = db_prepare("UPDATE " .. table_name .. " SET k = k + ? WHERE id = ?")
   db_bind_param(change, bound)
end

function event(thread_id)
   bound[1], bound[2] = sb_rand_uniform(1, 9), sb_rand_uniq(1, 4294967295) % old_rows + 1
   db_execute(change)
   db_query("SELECT k FROM " .. table_name .. " WHERE id = " .. bound[2])
end

function cleanup()
   db_query("DROP TABLE IF EXISTS " .. table_name)
end
