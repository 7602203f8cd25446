\set id random(1, :items)
SELECT name, stock FROM items WHERE id = :id;
