"""Keys of rows that other transactions of the log have inserted."""

from __future__ import annotations

import random
import re

import pytest

from pytest_dbcluster.workloads.digest.digest_directory import write_digest
from pytest_dbcluster.workloads.sql import SQLFiles
from tests.workloads.digest.logs import BEGIN, SCHEMA, slow, write

MORE = """\
CREATE TABLE payments (order_id INT PRIMARY KEY, FOREIGN KEY (order_id) REFERENCES orders (id));
CREATE TABLE tokens (token VARCHAR(40) PRIMARY KEY, used INT NOT NULL);
CREATE TABLE events (id BIGINT PRIMARY KEY, kind INT NOT NULL);
"""
ORDER = "INSERT INTO orders (customer_id, status, created) VALUES ({}, 'new', NOW())"
FIRST = 501  # new order


@pytest.fixture
def digest(tmp_path):
    """``digest(statements)``: what became of a log of two connections, and the files of its directory."""

    def digest(statements):
        log = write(
            tmp_path / "slow.log",
            slow(
                [
                    (text, {"thread": thread, "time": BEGIN + number // 10})
                    for number, (thread, text) in enumerate(statements)
                ]
            ),
        )
        schema, directory = write(tmp_path / "schema.sql", SCHEMA + MORE), tmp_path / "shop"
        found, _, files = write_digest(log, schema, directory, keep_literals=False, progress=lambda line: None)
        directory.mkdir()
        for name, content in files.items():
            write(directory / name, content)
        return found, files

    return digest


def orders(use, *, items=False, age=3, count=200):
    """Orders of one connection, each followed by a transaction of another one, with a key and a random number."""
    drawn, found = random.Random(1), []
    for number in range(count):
        key = FIRST + number
        inserts = [ORDER.format(drawn.randint(1, 90)), f"INSERT INTO items VALUES ({key}, 1, 'cup')"]
        found += [(1, text) for text in (["BEGIN", *inserts, "COMMIT"] if items else inserts[:1])]
        if number > age:
            found.append((2, use.format(key - drawn.randint(0, age))))
    return found


@pytest.mark.parametrize("items", [True, False], ids=["a key that the log has", "a key that only its uses have"])
def test_a_recent_key_is_one_of_the_newest(digest, tmp_path, items):
    """A SELECT finds it, before the transaction; the loaded rows end before the new ones."""
    found, files = digest(orders("UPDATE orders SET status = 'paid' WHERE id = {}", items=items))
    text = files["update_orders.sql"]

    assert found.rows["orders"] == pytest.approx(500, abs=10)
    ages = re.search(r"\\set orders_age random_weighted\(((?:\d, \d+(?:, )?)+)\)\n", text)[1].split(", ")[::2]
    assert set(ages) == ({"1", "2", "3", "4"} if items else {"1", "2"})  # without the key, those of the uses count
    select, update = [line for line in text.splitlines() if line.startswith(("SELECT", "UPDATE"))]
    assert select == (
        "SELECT COALESCE(MIN(id), 0) AS id FROM (SELECT id FROM orders ORDER BY id DESC LIMIT :orders_age) AS newest "
        "\\gset new_orders_"
    )
    assert re.fullmatch(r"UPDATE orders SET status = :status_\d WHERE id = :new_orders_id;", update)
    assert "- update_orders.sql: id: one of the newest keys of orders, since another transaction" in files["digest.md"]
    assert "update_orders" in [script.name for script, _ in SQLFiles(tmp_path / "shop").read.scripts]


def test_a_select_for_a_recent_key_stands_before_begin(digest):
    """So it is not part of the transaction; later uses of the key are the same one."""
    log = []
    for thread, one in orders("{}", items=True):
        texts = (f"SELECT id FROM orders WHERE id = {one}", f"UPDATE orders SET status = 'paid' WHERE id = {one}")
        log += [(thread, text) for text in (["BEGIN", *texts, "COMMIT"] if thread == 2 else [one])]
    lines = digest(log)[1]["update_orders.sql"].splitlines()

    begin = lines.index("BEGIN;")
    assert [line.split()[0] for line in lines[begin - 2 : begin]] == ["\\set", "SELECT"]
    assert lines[begin + 1] == "SELECT id FROM orders WHERE id = :new_orders_id;"


@pytest.mark.parametrize(
    "key",
    [lambda drawn, number: drawn.randint(1, FIRST + number), lambda drawn, number: drawn.randint(1, 400),
     lambda drawn, number: 1 + number % 400],
    ids=["all rows", "old rows", "a scan of old rows"],
)  # fmt: skip
def test_keys_of_other_rows_are_not_recent(digest, key):
    """They are drawn from the loaded rows."""
    drawn = random.Random(2)
    log = [(thread, text if thread == 1 else f"UPDATE orders SET status = 'a' WHERE id = {key(drawn, number)}")
           for number, (thread, text) in enumerate(orders("{}", items=True))]  # fmt: skip
    text = digest(log)[1]["update_orders.sql"]

    assert "newest" not in text
    assert "WHERE id = :id;" in text


def test_keys_that_grow_without_inserts_are_not_recent(digest):
    """A job that goes through a table does not use new rows."""
    log = [(1, f"UPDATE orders SET status = 'a' WHERE id = {number + 1}") for number in range(300)]

    assert "newest" not in digest(log)[1]["update_orders.sql"]


def test_a_unique_key_of_a_recent_row_stays_unexplained(digest):
    """Two transactions would draw the same one; the reason names the other table."""
    found, files = digest(orders("INSERT INTO payments VALUES ({})", age=0, items=True))

    assert [one.file for one in found.refused] == ["insert_payments.sql"]
    assert (
        "payments.order_id is part of the unique key (order_id), and its value is the key of a row that another "
        "transaction inserted (orders.id)"
    ) in files["digest.md"]


def test_large_numbers_of_the_application_are_recent_too(digest):
    """They do not decide how many rows are loaded."""
    drawn = random.Random(1)
    keys = [7 * 10**14 + number * 4096 + drawn.randrange(4096) for number in range(200)]
    log = [(thread, text) for number, key in enumerate(keys) for thread, text in (
        (1, f"INSERT INTO events VALUES ({key}, 1)"),
        (2, f"SELECT kind FROM events WHERE id = {keys[max(0, number - drawn.randint(0, 2))]}"))]  # fmt: skip
    found, files = digest(log)

    assert "FROM events WHERE id = :new_events_id;" in files["select_events.sql"]
    assert "unique_id()" in files["insert_events.sql"]
    assert found.rows["events"] == 100


def test_texts_that_another_transaction_inserted_are_named(digest):
    """No order of such keys tells which rows are new, so the rows are generated ones."""
    drawn = random.Random(1)
    tokens = [f"{drawn.getrandbits(120):030x}" for _ in range(200)]
    log = [(thread, text) for token in tokens for thread, text in (
        (1, f"INSERT INTO tokens VALUES ('{token}', 0)"), (2, f"UPDATE tokens SET used = 1 WHERE token = '{token}'"))
    ]  # fmt: skip
    files = digest(log)[1]

    assert (
        "- update_tokens.sql: token: in the log a key that another transaction inserted into tokens"
        in (files["digest.md"])
    )
    assert "concat('token', " in files["update_tokens.sql"]
