"""A plain TPC-C client with mysql-connector-python, for the comparison in tpcc_client.py; no workload of the plugin.

    python benchmarks/tpcc_connector.py --port 3306 --user me --schema dbcluster_tpcc [--threads 4] [--seconds 5]

The password is read from standard input. Each connection has its own thread. As in go-tpc, one statement reads the
items of an order, one reads its stock, and executemany inserts the order lines; each stock row has its own UPDATE.
After a deadlock or a lock wait timeout the transaction is rolled back, and another transaction follows.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import random
import sys
import time
from collections.abc import Callable
from typing import Any

CUSTOMERS, DISTRICTS, ITEMS = 3000, 10, 100000
SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")
CONFLICTS = (1020, 1205, 1213)
WHERE_CUSTOMER = "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"


def nurand(draw: random.Random, a: int, c: int, low: int, high: int) -> int:
    """NURand of clause 2.1.6."""
    return ((draw.randint(0, a) | draw.randint(low, high)) + c) % (high - low + 1) + low


def a_customer(draw: random.Random) -> int | str:
    """A customer's last name with probability 60 %, otherwise the customer's number (clause 2.5.1.2)."""
    if draw.randint(1, 100) > 60:
        return nurand(draw, 1023, 517, 1, CUSTOMERS)
    number = nurand(draw, 255, 173, 0, 999)
    return SYLLABLES[number // 100] + SYLLABLES[number // 10 % 10] + SYLLABLES[number % 10]


def customer_of(cursor: Any, warehouse: int, district: int, who: int | str) -> int:
    """The customer's number; for a last name the middle one of its customers (clause 2.5.2.2)."""
    if isinstance(who, int):
        return who
    cursor.execute(
        "SELECT c_id FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_last = %s ORDER BY c_first",
        (warehouse, district, who),
    )
    numbers = cursor.fetchall()
    return int(numbers[(len(numbers) - 1) // 2][0])


def new_order(cursor: Any, draw: random.Random, warehouse: int) -> bool:
    """New-Order, clause 2.4; False if the transaction has to be rolled back."""
    district, customer = draw.randint(1, DISTRICTS), nurand(draw, 1023, 517, 1, CUSTOMERS)
    lines = {nurand(draw, 8191, 4337, 1, ITEMS): draw.randint(1, 10) for _ in range(draw.randint(5, 15))}
    unused = draw.randint(1, 100) == 1
    cursor.execute(
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse "
        "WHERE w_id = %s AND c_w_id = w_id AND c_d_id = %s AND c_id = %s",
        (warehouse, district, customer),
    )
    cursor.fetchone()
    cursor.execute(
        "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %s AND d_id = %s FOR UPDATE", (warehouse, district)
    )
    order = cursor.fetchone()[0]
    cursor.execute(
        "UPDATE district SET d_next_o_id = %s WHERE d_w_id = %s AND d_id = %s", (order + 1, warehouse, district)
    )
    cursor.execute(
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) "
        "VALUES (%s, %s, %s, %s, NOW(), %s, 1)",
        (order, district, warehouse, customer, len(lines)),
    )
    cursor.execute(
        "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (%s, %s, %s)", (order, district, warehouse)
    )
    _order_lines(cursor, (order, district, warehouse), lines)
    return not unused


def _order_lines(cursor: Any, order: tuple[int, int, int], lines: dict[int, int]) -> None:
    """Insert the lines of an order and reduce the stock; ``lines`` maps items to quantities."""
    district, warehouse = order[1:]
    marks = ", ".join(["%s"] * len(lines))
    cursor.execute(f"SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN ({marks})", tuple(lines))
    prices = {item: price for item, price, _, _ in cursor.fetchall()}
    cursor.execute(
        f"SELECT s_i_id, s_quantity, s_data, s_dist_{district:02} FROM stock "
        f"WHERE s_w_id = %s AND s_i_id IN ({marks}) FOR UPDATE",
        (warehouse, *lines),
    )
    rows = []
    for number, (item, left, _, district_info) in enumerate(cursor.fetchall(), start=1):
        quantity = lines[item]
        rest = left - quantity if left >= quantity + 10 else left - quantity + 91
        cursor.execute(
            "UPDATE stock SET s_quantity = %s, s_ytd = s_ytd + %s, s_order_cnt = s_order_cnt + 1 "
            "WHERE s_w_id = %s AND s_i_id = %s",
            (rest, quantity, warehouse, item),
        )
        rows.append((*order, number, item, warehouse, quantity, quantity * prices[item], district_info))
    cursor.executemany(
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, "
        "ol_amount, ol_dist_info) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        rows,
    )


def payment(cursor: Any, draw: random.Random, warehouse: int) -> bool:
    """Payment, clause 2.5."""
    district, amount = draw.randint(1, DISTRICTS), draw.randint(100, 500000) / 100
    who = a_customer(draw)
    cursor.execute("UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s", (amount, warehouse))
    cursor.execute(
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = %s", (warehouse,)
    )
    name = cursor.fetchone()[0]
    district_key = (warehouse, district)
    cursor.execute("UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s", (amount, *district_key))
    cursor.execute(
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = %s AND d_id = %s",
        district_key,
    )
    name = f"{name}    {cursor.fetchone()[0]}"
    number = customer_of(cursor, warehouse, district, who)
    cursor.execute(
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, "
        f"c_credit_lim, c_discount, c_balance FROM customer {WHERE_CUSTOMER} FOR UPDATE",
        (*district_key, number),
    )
    values: tuple[float | str, ...] = (amount, amount)
    noted = ""
    if cursor.fetchone()[10] == "BC":
        noted = ", c_data = LEFT(CONCAT(%s, c_data), 500)"
        values = (*values, f"{number} {district} {warehouse} {district} {warehouse} {amount}|")
    cursor.execute(
        "UPDATE customer SET c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s, "
        f"c_payment_cnt = c_payment_cnt + 1{noted} {WHERE_CUSTOMER}",
        (*values, *district_key, number),
    )
    cursor.execute(
        "INSERT INTO history (h_session, h_number, h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, "
        "h_data) VALUES (%s, %s, %s, %s, %s, %s, %s, NOW(), %s, %s)",
        (time.time_ns(), draw.randint(1, 10**9), number, district, warehouse, district, warehouse, amount, name),
    )
    return True


def order_status(cursor: Any, draw: random.Random, warehouse: int) -> bool:
    """Order-Status, clause 2.6."""
    district_key = (warehouse, draw.randint(1, DISTRICTS))
    number = customer_of(cursor, *district_key, a_customer(draw))
    cursor.execute(
        f"SELECT c_balance, c_first, c_middle, c_last FROM customer {WHERE_CUSTOMER}", (*district_key, number)
    )
    cursor.fetchone()
    cursor.execute(
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = %s AND o_d_id = %s AND o_c_id = %s "
        "ORDER BY o_id DESC LIMIT 1",
        (*district_key, number),
    )
    cursor.execute(
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line "
        "WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s",
        (*district_key, cursor.fetchone()[0]),
    )
    cursor.fetchall()
    return True


def delivery(cursor: Any, draw: random.Random, warehouse: int) -> bool:
    """Delivery, clause 2.7: the oldest order of each district."""
    carrier = draw.randint(1, 10)
    for district_key in ((warehouse, district) for district in range(1, DISTRICTS + 1)):
        cursor.execute(
            "SELECT no_o_id FROM new_order WHERE no_w_id = %s AND no_d_id = %s ORDER BY no_o_id LIMIT 1 FOR UPDATE",
            district_key,
        )
        if not (oldest := cursor.fetchone()):
            continue
        order = (*district_key, oldest[0])
        cursor.execute("DELETE FROM new_order WHERE no_w_id = %s AND no_d_id = %s AND no_o_id = %s", order)
        cursor.execute("SELECT o_c_id FROM orders WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s", order)
        customer = cursor.fetchone()[0]
        cursor.execute(
            "UPDATE orders SET o_carrier_id = %s WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s", (carrier, *order)
        )
        lines = "WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s"
        cursor.execute(f"UPDATE order_line SET ol_delivery_d = NOW() {lines}", order)
        cursor.execute(f"SELECT SUM(ol_amount) FROM order_line {lines}", order)
        total = cursor.fetchone()[0]
        cursor.execute(
            "UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1 " + WHERE_CUSTOMER,
            (total, *district_key, customer),
        )
    return True


def stock_level(cursor: Any, draw: random.Random, warehouse: int) -> bool:
    """Stock-Level, clause 2.8."""
    district_key = (warehouse, draw.randint(1, DISTRICTS))
    cursor.execute("SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s", district_key)
    last = cursor.fetchone()[0]
    cursor.execute(
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id >= %s "
        "AND ol_o_id < %s AND s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < %s",
        (*district_key, last - 20, last, draw.randint(10, 20)),
    )
    cursor.fetchone()
    return True


Transaction = Callable[[Any, random.Random, int], bool]
MIX: tuple[tuple[Transaction, int], ...] = (  # clause 5.2.3
    (new_order, 45), (payment, 43), (order_status, 4), (delivery, 4), (stock_level, 4),
)  # fmt: skip


def attempt(connection: Any, transaction: Transaction, draw: random.Random, warehouse: int) -> bool:
    """Run one transaction; False after a conflict."""
    from mysql.connector import errors

    try:
        with connection.cursor() as cursor:
            ended = transaction(cursor, draw, warehouse)
        (connection.commit if ended else connection.rollback)()
    except errors.Error as error:
        if error.errno not in CONFLICTS:
            raise
        connection.rollback()
        return False
    return True


def terminal(arguments: argparse.Namespace, password: str, number: int) -> int:
    """Run transactions on one connection until the time is up; returns the number of finished transactions."""
    import mysql.connector

    connection = mysql.connector.connect(
        host=arguments.host,
        port=arguments.port,
        user=arguments.user,
        password=password,
        database=arguments.schema,
        ssl_disabled=True,
    )
    draw, done, until = random.Random(), 0, time.monotonic() + arguments.seconds
    kinds, shares = zip(*MIX, strict=True)
    while time.monotonic() < until:
        done += attempt(connection, draw.choices(kinds, shares)[0], draw, number % arguments.warehouses + 1)
    connection.close()
    return done


def main() -> None:
    """Reads the command line and the password, and runs all terminals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=3306)
    parser.add_argument("--user", required=True)
    parser.add_argument("--schema", required=True)
    parser.add_argument("--warehouses", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    run = functools.partial(terminal, arguments, sys.stdin.readline().strip())
    with concurrent.futures.ThreadPoolExecutor(arguments.threads) as threads:
        print(sum(threads.map(run, range(arguments.threads))))


if __name__ == "__main__":
    main()
