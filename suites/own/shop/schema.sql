CREATE TABLE customers (
    id INT PRIMARY KEY,
    email VARCHAR(64) NOT NULL UNIQUE,
    country ENUM('AT', 'CH', 'DE', 'FR') NOT NULL
);

CREATE TABLE products (
    id INT PRIMARY KEY,
    name VARCHAR(64) NOT NULL,
    price DECIMAL(8, 2) NOT NULL,
    stock INT NOT NULL
);

CREATE TABLE orders (
    id INT AUTO_INCREMENT PRIMARY KEY,
    customer_id INT NOT NULL,
    status VARCHAR(16) NOT NULL,
    created DATETIME NOT NULL,
    FOREIGN KEY (customer_id) REFERENCES customers (id)
);

CREATE TABLE order_items (
    order_id INT,
    line TINYINT,
    product_id INT NOT NULL,
    quantity TINYINT NOT NULL,
    PRIMARY KEY (order_id, line),
    FOREIGN KEY (order_id) REFERENCES orders (id),
    FOREIGN KEY (product_id) REFERENCES products (id)
);
