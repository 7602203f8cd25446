"""A whole digest: the files that it writes, what they hide, and what it refuses."""

from __future__ import annotations

import random
import re
import tomllib

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.digest import digest_directory, digest_report
from pytest_dbcluster.workloads.digest.digest_directory import write_digest
from pytest_dbcluster.workloads.sql import SQLFiles
from tests.support import golden
from tests.workloads.digest.logs import BEGIN, COLUMNS, HEAD, SCHEMA, shop, slow, write


@pytest.fixture
def digest(tmp_path):
    """``digest(log, schema)``: what became of a log, and the files of its directory, which is written."""

    def digest(text, schema=SCHEMA, **how):
        log, tables = write(tmp_path / "slow.log", text), write(tmp_path / "given.sql", schema)
        directory = tmp_path / "shop"
        found, _, files = write_digest(
            log, tables, directory, **{"keep_literals": False, "progress": lambda line: None, **how}
        )
        directory.mkdir()
        for name, content in files.items():
            write(directory / name, content)
        return found, files

    return digest


def orders(statement, values, count=100):
    """A log with transactions of one INSERT, each with other values."""
    drawn = random.Random(1)
    return slow([text for _ in range(count) for text in ("BEGIN", statement.format(*values(drawn)), "COMMIT")])


def test_a_log_becomes_a_directory_that_sqlfiles_reads(digest, tmp_path):
    """One file for each class of transactions, with its share, and weights as in the log."""
    found, files = digest(slow(shop()))
    workload = SQLFiles(tmp_path / "shop")

    assert sorted(files) == [
        "digest.md", "fit.sql", "insert_orders.sql", "schema.sql", "select_customers.sql", "select_orders.sql",
        "workload.toml",
    ]  # fmt: skip
    assert {script.name: weight for script, weight in workload.read.scripts} == {
        "select_customers": 200,
        "insert_orders": 100,
        "select_orders": 40,
    }
    assert found.coverage == pytest.approx(1)
    assert re.match(r"-- \d+ % of the log's time, 29 % of its transactions \(100\)\.\n", files["insert_orders.sql"])


def test_an_order_has_its_items(digest):
    """The new AUTO_INCREMENT value is the key of a loop of items whose lines count up."""
    text = digest(slow(shop()))[1]["insert_orders.sql"]

    assert "\\insert_id orders_id" in text
    assert re.search(r"\\set copies random_weighted\(1, \d+, 2, \d+, 3, \d+\)", text)
    assert text.count("INSERT INTO items VALUES (:orders_id, :line, :product);") == 3
    assert text.count("\\set line :line + 1") == 2
    assert text.count("\\if :copies >= ") == 2


def test_a_value_that_is_read_keeps_the_letters_of_its_column(digest, tmp_path):
    r"""``\gset`` names the variable after the column as the statement writes it."""
    schema = (
        "CREATE TABLE Customer (Id INT PRIMARY KEY AUTO_INCREMENT, email VARCHAR(40), UNIQUE KEY (email));\n"
        "CREATE TABLE Orders (Id INT PRIMARY KEY AUTO_INCREMENT, customerId INT NOT NULL, total INT, "
        "FOREIGN KEY (customerId) REFERENCES Customer (Id));\n"
    )
    statements = []
    for number in range(200):
        customer = random.Random(number).randint(1, 60)
        search = f"SELECT c.Id FROM Customer c WHERE email = 'a{customer}@b.c'"
        order = f"INSERT INTO Orders (customerId, total) VALUES ({1000 + customer * 13}, {number % 9})"
        statements += ["BEGIN", search, order, "COMMIT"]
    found, files = digest(slow(statements), schema)
    text = next(content for name, content in files.items() if "INSERT INTO Orders" in content)

    prefix, given = re.search(r"\\gset (\w+)\n", text)[1], re.search(r"VALUES \(:(\w+), ", text)[1]
    assert given == f"{prefix}Id"
    SQLFiles(tmp_path / "shop")
    assert found.coverage == pytest.approx(1)


def test_columns_of_a_type_get_values_of_it(digest, tmp_path):
    """A server would refuse random texts, and stand-ins for few of them."""
    states = ", ".join(f"'state{number}'" for number in range(30))
    schema = (
        "CREATE TABLE docs (id INT PRIMARY KEY AUTO_INCREMENT, body JSON, at TIME, made DATETIME, "
        f"state ENUM ({states}));\n"
    )
    statement = "INSERT INTO docs (body, at, made, state) VALUES ('{{\"a\": {0}}}', '0{1}:00:0{1}', '{2}', 'state{3}')"

    def values(drawn):
        one, day = drawn.randint(1, 3), drawn.randint(10, 28)
        return drawn.randint(1, 10**6), one, f"2023-11-{day}T22:13", drawn.randint(0, 29)

    text = digest(orders(statement, values), schema)[1]["insert_docs.sql"]

    assert "\\set body concat('{\"number\": ', random(1, 1000000), '}')" in text
    assert "\\set at random_digits('1#:2#:3#')" in text
    assert "\\set made random_digits('2023-01-1# 1#:2#:3#')" in text
    assert "\\set state random_weighted('state0', " in text
    SQLFiles(tmp_path / "shop")


@pytest.mark.parametrize("keep", [True, False])
def test_literals_of_any_type_stay_if_the_user_wants_them(digest, keep):
    """Few times of the day are then values of the log; otherwise they are drawn."""
    schema = "CREATE TABLE shops (id INT PRIMARY KEY AUTO_INCREMENT, opens TIME, KEY (opens));\n"
    log = slow([f"SELECT id FROM shops WHERE opens = '0{number % 2 + 8}:00:00'" for number in range(100)])
    variables = tomllib.loads(digest(log, schema, keep_literals=keep)[1]["workload.toml"]).get("variables", {})

    assert ({"08:00:00", "09:00:00"} <= set(variables.values())) is keep


def test_rows_come_from_the_log(digest):
    """Keys, new AUTO_INCREMENT values, and the INSERTs for each row of another table."""
    manifest = tomllib.loads(digest(slow(shop()))[1]["workload.toml"])

    assert manifest["rows"]["customers"] == 100
    assert manifest["rows"]["orders"] == 500


@pytest.mark.parametrize("form", ["mariadb", "mysql"])
def test_no_text_of_the_log_is_in_a_file(digest, form):
    """Emails, statuses and products become drawings and stand-ins."""
    _, files = digest(slow(shop(), vendor=form))
    words = "".join(text for name, text in files.items() if name != "schema.sql")

    for secret in ("secret", "ann", "paid", "hold", "lamp"):
        assert secret not in words
    assert "concat('email', " in files["select_customers.sql"]
    assert 'status_1 = "status_1"' in files["workload.toml"]


def test_literals_stay_if_the_user_wants_them(digest):
    """The stand-ins have the texts of the log as their values."""
    _, files = digest(slow(shop()), keep_literals=True)
    variables = tomllib.loads(files["workload.toml"])["variables"]

    assert {variables["status_1"], variables["status_2"]} == {"paid-in-full", "on-hold"}


def test_generated_rows_get_the_values_that_are_searched(digest):
    """A search found 3 of the 5 orders of a customer, so 3 of 5 orders have its status; the rest has the other one."""
    fit = digest(slow(shop()))[1]["fit.sql"]

    assert re.search(
        r"UPDATE orders SET status = CASE WHEN id \* 7919 % 500 < 300 THEN :status_[12] ELSE :status_[12] END;", fit
    )


def test_nothing_is_fitted_if_no_statement_searches(digest, tmp_path):
    """Then there is no such file."""
    _, files = digest(slow([f"SELECT id FROM orders WHERE id = {number + 1}" for number in range(50)]))

    assert "fit.sql" not in files
    assert "after_load" not in files["workload.toml"]
    assert SQLFiles(tmp_path / "shop").read.manifest.after_load == ()


def test_refused_transactions_do_not_decide_the_rows(digest):
    """Here they read larger keys than others do."""
    drawn = random.Random(1)
    lines = [f"SELECT status FROM orders WHERE id = {number % 40 + 1}" for number in range(100)]
    for number in range(100):
        read = f"SELECT status FROM orders WHERE id = {9000 - number}"
        lines += [
            "BEGIN",
            read,
            f"INSERT INTO items VALUES ({drawn.randint(1, 9)}, {drawn.randint(1, 9)}, 'a')",
            "COMMIT",
        ]
    found, _ = digest(slow(lines))

    assert [one.file for one in found.refused] == ["insert_items.sql"]
    assert found.rows["orders"] == 40


def test_generated_keys_stay_below_new_ones(digest):
    """Also in a table whose key begins with them, and which declares no foreign key."""
    insert = "INSERT INTO orders (customer_id, status, created) VALUES (1, 'a', NOW())"
    lines = [
        (statement, {"time": BEGIN + number})
        for number in range(60)
        for statement in ("BEGIN", insert, f"INSERT INTO items VALUES ({31 + number}, 1, 'a')", "COMMIT")
    ]
    found, _ = digest(slow(lines))

    assert (found.rows["orders"], found.rows["items"]) == (30, 30)


def test_new_texts_are_removed_by_their_keys(digest, tmp_path):
    """The reset finds them, so that no file of its own is written."""
    schema = "CREATE TABLE sessions (id VARCHAR(40) PRIMARY KEY, words TEXT);"
    text = orders("INSERT INTO sessions VALUES ('{:x}', 'a')", lambda drawn: (drawn.getrandbits(60),))
    _, files = digest(text, schema)

    assert "concat('new', unique_id())" in files["insert_sessions.sql"]
    assert SQLFiles(tmp_path / "shop").read.manifest.reset == "surplus"


def test_tables_without_a_primary_key_are_not_reset(digest):
    """No new row could be found."""
    text = orders("INSERT INTO notes VALUES ('{}')", lambda drawn: (drawn.getrandbits(60),))

    assert 'reset = "none"' in digest(text, "CREATE TABLE notes (words TEXT);")[1]["workload.toml"]


@pytest.mark.parametrize("used", [True, False])
def test_a_returned_id_is_read_if_a_statement_uses_it(digest, used):
    """Otherwise the statement stays as it is."""
    insert = "INSERT INTO orders (customer_id, status, created) VALUES ({}, 'a', NOW()) RETURNING orders.id"
    item = "INSERT INTO items VALUES ({}, 1, 'lamp')" if used else "SELECT id FROM customers WHERE id = {}"
    lines = []
    for number in range(60):
        second = item.format(number + 700 if used else number % 30 + 1)
        statements = ("BEGIN", insert.format(number % 40 + 1), second, "COMMIT")
        lines += [(statement, {"time": BEGIN + number}) for statement in statements]
    text = digest(slow(lines))[1]["insert_orders.sql"]

    assert ("\\gset" in text) == used
    assert (" RETURNING orders.id;" in text) != used


def test_transactions_that_differ_are_left_out(digest, tmp_path):
    """Their files stay, and the report says how they differ."""
    found, _ = digest(slow(shop()))
    (orders_,) = [one for one in found.runnable if one.file == "insert_orders.sql"]
    digest_directory.leave_out(found, tmp_path / "shop", orders_, "Rows_sent is 2 in the log, 7 in the check")
    report = (tmp_path / "shop" / "digest.md").read_text()

    assert {script.name for script, _ in SQLFiles(tmp_path / "shop").read.scripts} == {
        "select_customers",
        "select_orders",
    }
    assert (tmp_path / "shop" / "insert_orders.sql").exists()
    assert "- insert_orders.sql: Rows_sent is 2 in the log, 7 in the check" in report
    assert any(line.startswith("refused: insert_orders.sql, ") for line in digest_report.terminal(found, "shop"))


def test_rows_are_spread_evenly_if_each_search_finds_equally_many(digest):
    """Otherwise generated rows refer to their parents by chance."""
    search = "SELECT id FROM orders WHERE customer_id = {}"
    even = [(search.format(number % 50 + 1), {"sent": 2, "examined": 2}) for number in range(100)]
    _, files = digest(slow(even))

    assert "UPDATE orders SET customer_id = 1 + (id - 1) % 50;" in files["fit.sql"]


def test_a_large_constant_does_not_leave(digest):
    """A key that is equal in all samples is a literal too."""
    statement = "UPDATE orders SET status = 'done' WHERE id = 987654 AND customer_id = {}"
    _, files = digest(orders(statement, lambda drawn: (drawn.randint(1, 500),)))

    assert "987654" not in "".join(files.values())
    assert "id = :id" in files["update_orders.sql"]


def test_a_key_that_nothing_explains_is_refused(digest, tmp_path):
    """Its file says so and is not in workload.toml; it does not run if the user adds it."""
    insert = "INSERT INTO items VALUES ({}, {}, 'lamp')"
    text = orders(insert, lambda drawn: (drawn.randint(1, 9), drawn.randint(1, 9))) + slow(
        ["SELECT id FROM orders"] * 50
    )
    found, files = digest(text)

    assert "-- unexplained: items.line is part of the unique key (order_id, line)" in files["insert_items.sql"]
    assert tomllib.loads(files["workload.toml"])["transactions"] == ["select_orders.sql@50"]
    assert "- insert_items.sql: items.line is part of the unique key" in files["digest.md"]
    assert any(line.startswith("refused: insert_items.sql, ") for line in digest_report.terminal(found, "shop"))
    with pytest.raises(ConfigError, match="unknown variable :unexplained_line"):
        SQLFiles(tmp_path / "shop", transactions=["insert_items.sql"])


def test_a_row_that_is_deleted_before_can_come_back(digest):
    """As sysbench does it."""
    drawn = random.Random(1)
    text = slow([each for _ in range(100) for one in [drawn.randint(1, 500)] for each in (
        "BEGIN", f"DELETE FROM customers WHERE id = {one}",
        f"INSERT INTO customers (id, email, country) VALUES ({one}, 'x{drawn.random()}', 'AT')", "COMMIT",
    )])  # fmt: skip
    _, files = digest(text)

    assert "(:id, :email, " in files["delete_customers.sql"]
    assert "concat('new', unique_id())" in files["delete_customers.sql"]
    assert "unexplained" not in files["delete_customers.sql"]


def test_a_rolled_back_begin_of_a_transaction_is_a_conflict(digest):
    """The load makes conflicts itself."""
    drawn = random.Random(1)
    begin = [("BEGIN", f"UPDATE orders SET status = 'a' WHERE id = {drawn.randint(1, 500)}") for _ in range(100)]
    text = slow(
        [each for number, one in enumerate(begin) for each in (*one, "ROLLBACK" if number % 10 == 0 else "COMMIT")]
    )
    found, files = digest(text)

    assert [one.file for one in found.classes if one.file] == ["update_orders.sql"]
    assert "Rolled back before their end: 10 transactions." in files["digest.md"]


def test_every_part_of_the_log_is_named(digest):
    """The shares of all parts together are the whole log."""
    text = slow([*shop(), "SET NAMES utf8", "SELECT 1 FROM mysql.user", "BEGIN", "SELECT id FROM orders"])
    found, files = digest(text)
    parts = {name: share for name, _, share in digest_report.parts(found)}

    assert sum(parts.values()) == pytest.approx(1)
    assert {"written", "tables of the server", "statements that set up a session"} < set(parts)
    assert "transactions without an end in the log" in files["digest.md"]


def test_a_general_log_is_covered_in_statements(digest):
    """It has no times."""
    lines = "".join(
        f"2023-11-14T22:13:{number % 60:02}.000001Z\t    8 Query\tSELECT id FROM orders WHERE id = {number + 1}\n"
        for number in range(100)
    )
    found, files = digest(HEAD + COLUMNS + lines)

    assert (found.measure, found.coverage) == ("statements", 1)
    assert files["select_orders.sql"].startswith("-- 100 % of the log's statements, 100 % of its transactions (100).\n")


def test_the_name_of_the_database_leaves_statements(digest):
    """A workload has a database of its own."""
    _, files = digest(slow([f"SELECT id FROM `shop`.`orders` WHERE id = {number + 1}" for number in range(100)]))

    assert "SELECT id FROM `orders` WHERE id = :id;" in files["select_orders.sql"]


def test_times_of_the_application_are_the_time_of_the_run(digest):
    """So rows are as new as in production."""
    insert = "INSERT INTO orders (customer_id, status, created) VALUES ({}, 'a', '2023-11-14 22:13:20')"
    statements = [(insert.format(number % 50 + 1), {"time": BEGIN}) for number in range(60)]

    assert ", NOW());" in digest(slow(statements))[1]["insert_orders.sql"]


def test_messages_say_what_to_do(digest, tmp_path):
    """For each log and schema that cannot be used."""
    fast = slow(["SELECT id FROM orders"])
    cases = {
        "a log has no fast statement": (slow([("SELECT id FROM orders", {"seconds": 0.02})] * 9), SCHEMA),
        "a schema lacks tables": (slow(["SELECT id FROM orders", "SELECT 1 FROM payments JOIN refunds"]), SCHEMA),
        "a schema has no table": (fast, "SET NAMES utf8;"),
        "a log has no statement": (slow(["# administrator command: Ping"]), SCHEMA),
        "no transaction can be written": (slow(["CALL refresh(1)"]), SCHEMA),
        "a log is empty": ("", SCHEMA),
        "a file is no log": ("SELECT 1;\n", SCHEMA),
    }
    messages = {title: golden.message_of(digest, *case) for title, case in cases.items()}

    golden.compare("log_digest", messages, {tmp_path: "LOGS"})
