-- A customer is found by email and orders two products.
\set customer permute(random_zipfian(1, :customers, 0.9), :customers) + 1
\set email concat('email', :customer)
\set a random_zipfian(1, :products, 1.1)
\set b random_zipfian(1, :products, 1.1)
SELECT id, country FROM customers WHERE email = :email \gset buyer_
BEGIN;
INSERT INTO orders (customer_id, status, created) VALUES (:buyer_id, 'new', NOW());
\insert_id order_id
INSERT INTO order_items VALUES (:order_id, 1, :a, 1), (:order_id, 2, :b, 2);
UPDATE products SET stock = stock - 1 WHERE id = :a;
UPDATE products SET stock = stock - 2 WHERE id = :b;
COMMIT;
