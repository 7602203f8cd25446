-- A customer reads the last orders.
\set customer permute(random_zipfian(1, :customers, 0.9), :customers) + 1
SELECT o.id, o.status, COUNT(*) AS items, SUM(i.quantity) AS pieces
FROM orders o JOIN order_items i ON i.order_id = o.id
WHERE o.customer_id = :customer
GROUP BY o.id, o.status ORDER BY o.id DESC LIMIT 10;
