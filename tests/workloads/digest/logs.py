"""Small logs for tests, in the forms of both vendors."""

from __future__ import annotations

import datetime
import random

SCHEMA = """\
CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(64) NOT NULL UNIQUE, country ENUM('AT', 'DE') NOT NULL);
CREATE TABLE orders (
    id INT AUTO_INCREMENT PRIMARY KEY, customer_id INT NOT NULL, status VARCHAR(16) NOT NULL, created DATETIME NOT NULL,
    KEY (status), FOREIGN KEY (customer_id) REFERENCES customers (id)
);
CREATE TABLE items (order_id INT, line INT, product VARCHAR(20), PRIMARY KEY (order_id, line));
"""
BEGIN = 1_700_000_000


def entry(statement, *, thread=1, time=BEGIN, seconds=0.0001, sent=1, examined=1, affected=0, vendor="mariadb", use=""):
    """One entry of a slow log."""
    stamp = datetime.datetime.fromtimestamp(time, datetime.UTC)
    begin = f"use {use};\n" if use else ""
    if vendor == "mariadb":
        return (
            f"# Time: {stamp:%y%m%d %H:%M:%S}\n# User@Host: app[app] @ localhost []\n"
            f"# Thread_id: {thread}  Schema: shop  QC_hit: No\n"
            f"# Query_time: {seconds:.6f}  Lock_time: 0.000000  Rows_sent: {sent}  Rows_examined: {examined}\n"
            f"# Rows_affected: {affected}  Bytes_sent: 64\n{begin}SET timestamp={time};\n{statement};\n"
        )
    return (
        f"# Time: {stamp:%Y-%m-%dT%H:%M:%S}.000001Z\n# User@Host: app[app] @ localhost []  Id: {thread:5}\n"
        f"# Query_time: {seconds:.6f}  Lock_time: 0.000000 Rows_sent: {sent}  Rows_examined: {examined}\n"
        f"{begin}SET timestamp={time};\n{statement};\n"
    )


HEAD = (
    "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB (Debian 12). started with:\nTcp port: 3306  Unix socket: /sql.sock\n"
)
COLUMNS = "Time                 Id Command    Argument\n"


def slow(statements, **how):
    """A slow log of these statements; each is a text, or a text and its figures."""
    entries = [
        entry(each, **how) if isinstance(each, str) else entry(each[0], **{**how, **each[1]}) for each in statements
    ]
    return HEAD + COLUMNS + "".join(entries)


def shop(count=200, seed=1):
    """The statements of a small shop: reads by email, and orders with one to three items."""
    drawn = random.Random(seed)
    found, order = [], 500
    for number in range(count):
        customer, time = drawn.randint(1, 100), BEGIN + number
        found.append(
            (f"SELECT id, country FROM customers WHERE email = 'ann{customer}@secret.example'", {"time": time})
        )
        if number % 2:
            order += 1
            status = drawn.choice(["paid-in-full"] * 3 + ["on-hold"])
            found.append(("BEGIN", {"time": time, "sent": 0, "examined": 0}))
            found.append((
                f"INSERT INTO orders (customer_id, status, created) VALUES ({customer}, '{status}', NOW())",
                {"time": time, "sent": 0, "examined": 0, "affected": 1},
            ))  # fmt: skip
            found += [
                (
                    f"INSERT INTO items VALUES ({order}, {line}, 'lamp {drawn.randrange(10**6)}')",
                    {"time": time, "sent": 0, "examined": 0, "affected": 1},
                )
                for line in range(1, drawn.randint(2, 4))
            ]
            found.append(("COMMIT", {"time": time, "sent": 0, "examined": 0}))
        if number % 5 == 0:
            found.append((
                f"SELECT id FROM orders WHERE status = 'paid-in-full' AND customer_id = {customer} LIMIT 10",
                {"time": time, "sent": 3, "examined": 5},
            ))  # fmt: skip
    return found


def write(path, text):
    """A file with this text; its path."""
    path.write_text(text)
    return path
