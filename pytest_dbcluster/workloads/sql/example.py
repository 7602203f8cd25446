"""An example of a directory of SQL files: a small shop with generated rows and three transactions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SCHEMA = """\
CREATE TABLE customers (
    id INT PRIMARY KEY,
    email VARCHAR(64) NOT NULL UNIQUE,
    country ENUM('AT', 'CH', 'DE', 'FR') NOT NULL
);
CREATE TABLE products (
    id INT PRIMARY KEY,
    name VARCHAR(64) NOT NULL,
    price DECIMAL(8, 2) NOT NULL
);
CREATE TABLE orders (
    id INT AUTO_INCREMENT PRIMARY KEY,
    customer_id INT NOT NULL,
    product_id INT NOT NULL,
    created DATETIME NOT NULL,
    FOREIGN KEY (customer_id) REFERENCES customers (id),
    FOREIGN KEY (product_id) REFERENCES products (id)
);
"""
MANIFEST = """\
# Seven of ten transactions are those of browse.sql.
transactions = ["browse.sql@70", "history.sql@20", "order.sql@10"]

# Tables with generated rows. In place of them, data/customers.csv has rows of your own.
[rows]
customers = 20000
products = 1000
orders = 50000

# In a transaction, :customers is this number.
[variables]
customers = 20000
products = 1000
"""
BROWSE = r"""-- A visitor looks at a product. A few products are popular.
\set product permute(random_zipfian(1, :products, 1.1), :products) + 1
SELECT name, price FROM products WHERE id = :product;
"""
HISTORY = r"""-- A customer reads the last orders.
\set customer random(1, :customers)
SELECT o.id, o.created, p.name FROM orders o JOIN products p ON p.id = o.product_id
WHERE o.customer_id = :customer ORDER BY o.id DESC LIMIT 10;
"""
ORDER = r"""-- A customer, found by the email, orders a product.
\set email concat('email', random(1, :customers))
\set product permute(random_zipfian(1, :products, 1.1), :products) + 1
SELECT id FROM customers WHERE email = :email \gset customer_
BEGIN;
INSERT INTO orders (customer_id, product_id, created) VALUES (:customer_id, :product, NOW());
COMMIT;
"""
# By name in the directory, the text of each file.
FILES: Mapping[str, str] = MappingProxyType(
    {
        "schema.sql": SCHEMA,
        "workload.toml": MANIFEST,
        "browse.sql": BROWSE,
        "history.sql": HISTORY,
        "order.sql": ORDER,
    }
)
