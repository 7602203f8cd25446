-- The nine tables of TPC-C (specification 5.11, clause 1.3).
--
-- Every table has a primary key, because clusters require one. HISTORY has none in the specification; here its key is
-- the session of the terminal that wrote the row, and a number that the terminal counts. AUTO_INCREMENT would depend on
-- a cluster's step, and every payment would use the same counter. latin1 with binary order is the same on every release
-- and sorts equally fast on each. It holds the 128 different characters that clause 4.3.2.2 requires, but the texts that
-- are loaded have 62: digits and letters, which need no escape in a statement.

local schema = {}

schema.tables = {
   "warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item", "stock",
}

local ADDRESS = [[
   %s_street_1 VARCHAR(20) NOT NULL, %s_street_2 VARCHAR(20) NOT NULL, %s_city VARCHAR(20) NOT NULL,
   %s_state CHAR(2) NOT NULL, %s_zip CHAR(9) NOT NULL,]]

local function address(prefix)
   return (ADDRESS:gsub("%%s", prefix))
end

local CREATE = {
   warehouse = [[w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL,]] .. address("w") .. [[
      w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(12,2) NOT NULL, PRIMARY KEY (w_id)]],
   district = [[d_id TINYINT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL,]] .. address("d") .. [[
      d_tax DECIMAL(4,4) NOT NULL, d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INT NOT NULL,
      PRIMARY KEY (d_w_id, d_id)]],
   customer = [[c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL,
      c_middle CHAR(2) NOT NULL DEFAULT 'OE', c_last VARCHAR(16) NOT NULL,]] .. address("c") .. [[
      c_phone CHAR(16) NOT NULL, c_since DATETIME NOT NULL, c_credit CHAR(2) NOT NULL,
      c_credit_lim DECIMAL(12,2) NOT NULL DEFAULT 50000.00, c_discount DECIMAL(4,4) NOT NULL,
      c_balance DECIMAL(12,2) NOT NULL DEFAULT -10.00, c_ytd_payment DECIMAL(12,2) NOT NULL DEFAULT 10.00,
      c_payment_cnt INT NOT NULL DEFAULT 1, c_delivery_cnt INT NOT NULL DEFAULT 0, c_data VARCHAR(500) NOT NULL,
      PRIMARY KEY (c_w_id, c_d_id, c_id), KEY by_name (c_w_id, c_d_id, c_last, c_first)]],
   history = [[h_session BIGINT NOT NULL, h_number INT NOT NULL, h_c_id INT NOT NULL, h_c_d_id TINYINT NOT NULL,
      h_c_w_id INT NOT NULL, h_d_id TINYINT NOT NULL, h_w_id INT NOT NULL, h_date DATETIME NOT NULL,
      h_amount DECIMAL(6,2) NOT NULL DEFAULT 10.00, h_data VARCHAR(24) NOT NULL, PRIMARY KEY (h_session, h_number)]],
   new_order = [[no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id INT NOT NULL,
      PRIMARY KEY (no_w_id, no_d_id, no_o_id)]],
   orders = [[o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL,
      o_entry_d DATETIME NOT NULL, o_carrier_id TINYINT, o_ol_cnt TINYINT NOT NULL,
      o_all_local TINYINT NOT NULL DEFAULT 1,
      PRIMARY KEY (o_w_id, o_d_id, o_id), KEY by_customer (o_w_id, o_d_id, o_c_id, o_id)]],
   order_line = [[ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id INT NOT NULL, ol_number TINYINT NOT NULL,
      ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL, ol_delivery_d DATETIME,
      ol_quantity TINYINT NOT NULL DEFAULT 5, ol_amount DECIMAL(6,2) NOT NULL DEFAULT 0.00,
      ol_dist_info CHAR(24) NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)]],
   item = [[i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5,2) NOT NULL,
      i_data VARCHAR(50) NOT NULL, PRIMARY KEY (i_id)]],
   stock = [[s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity SMALLINT NOT NULL,
      s_dist_01 CHAR(24) NOT NULL, s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL,
      s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL, s_dist_06 CHAR(24) NOT NULL,
      s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL,
      s_dist_10 CHAR(24) NOT NULL, s_ytd INT NOT NULL DEFAULT 0, s_order_cnt INT NOT NULL DEFAULT 0,
      s_remote_cnt INT NOT NULL DEFAULT 0, s_data VARCHAR(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id)]],
}

-- Foreign keys of clause 1.4.4, off by default, since the cost of checking them differs between servers.
local REFERENCES = {
   {"district", "d_w_id", "warehouse (w_id)"},
   {"customer", "c_w_id, c_d_id", "district (d_w_id, d_id)"},
   {"history", "h_c_w_id, h_c_d_id, h_c_id", "customer (c_w_id, c_d_id, c_id)"},
   {"history", "h_w_id, h_d_id", "district (d_w_id, d_id)"},
   {"new_order", "no_w_id, no_d_id, no_o_id", "orders (o_w_id, o_d_id, o_id)"},
   {"orders", "o_w_id, o_d_id, o_c_id", "customer (c_w_id, c_d_id, c_id)"},
   {"order_line", "ol_w_id, ol_d_id, ol_o_id", "orders (o_w_id, o_d_id, o_id)"},
   {"order_line", "ol_supply_w_id, ol_i_id", "stock (s_w_id, s_i_id)"},
   {"stock", "s_w_id", "warehouse (w_id)"},
   {"stock", "s_i_id", "item (i_id)"},
}

-- Makes the tables again, with foreign keys when references is true.
function schema.create(con, references)
   for _, name in ipairs(schema.tables) do
      con:query(("CREATE TABLE %s (%s) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin"):format(
         name, CREATE[name]))
   end
   for _, one in ipairs(references and REFERENCES or {}) do
      con:query(("ALTER TABLE %s ADD FOREIGN KEY (%s) REFERENCES %s"):format(unpack(one)))
   end
end

return schema
