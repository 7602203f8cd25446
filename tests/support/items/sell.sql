\set id random_zipfian(1, :items, 0.9)
SELECT name FROM items WHERE id = :id \gset
BEGIN;
INSERT INTO sales (item, name) VALUES (:id, :name);
UPDATE items SET stock = stock - 1 WHERE id = :id;
COMMIT;
