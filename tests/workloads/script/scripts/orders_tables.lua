-- The tables of orders.lua.

TABLES = {"warehouse", "district", "customer", "stock", "orders", "order_line"}
DISTRICTS = 4

function create_tables(con)
   con:query("CREATE TABLE warehouse (w INT PRIMARY KEY, paid BIGINT NOT NULL)")
   con:query("CREATE TABLE district (w INT, d INT, next_order INT NOT NULL, PRIMARY KEY (w, d))")
   con:query("CREATE TABLE customer (w INT, d INT, c INT, balance BIGINT NOT NULL, PRIMARY KEY (w, d, c))")
   con:query("CREATE TABLE stock (w INT, i INT, quantity INT NOT NULL, PRIMARY KEY (w, i))")
   con:query("CREATE TABLE orders (w INT, d INT, number INT, c INT, note VARCHAR(40), PRIMARY KEY (w, d, number))")
   con:query("CREATE TABLE order_line (w INT, d INT, number INT, line INT, i INT, PRIMARY KEY (w, d, number, line))")
end

function fill_tables(con, scale, customers, items)
   for w = 1, scale do
      con:query(("INSERT INTO warehouse VALUES (%d, 0)"):format(w))
      for d = 1, DISTRICTS do
         con:query(("INSERT INTO district VALUES (%d, %d, 1)"):format(w, d))
         con:bulk_insert_init("INSERT INTO customer VALUES")
         for c = 1, customers do con:bulk_insert_next(("(%d, %d, %d, %d)"):format(w, d, c, sb_rand(1, 1000))) end
         con:bulk_insert_done()
      end
      con:bulk_insert_init("INSERT INTO stock VALUES")
      for i = 1, items do con:bulk_insert_next(("(%d, %d, %d)"):format(w, i, math.random(1000000, 2000000))) end
      con:bulk_insert_done()
   end
end
