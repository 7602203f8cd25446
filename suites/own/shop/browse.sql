-- A visitor looks at one product, and at ten others.
\set product random_zipfian(1, :products, 1.1)
\set others list(10, random(1, :products))
SELECT name, price, stock FROM products WHERE id = :product;
SELECT id, name, price FROM products WHERE id IN (:others);
