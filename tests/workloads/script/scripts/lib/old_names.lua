table_name = "old"
