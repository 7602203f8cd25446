"""SQL files on real servers: their transactions, retries and inputs."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.workload import LoadEnded, Setting
from tests.support.clusters import bring_up
from tests.support.facts import missing
from tests.workloads.sql.directories import directory, query

SHOP = Path(__file__).parents[3] / "suites" / "own" / "shop"
SELL = """\
\\set id random(1, 3)
SELECT name, stock FROM items WHERE id = :id \\gset
BEGIN;
INSERT INTO sales (item, name) VALUES (:id, :name);
\\insert_id sale
UPDATE items SET stock = stock - 1 WHERE id = :id;
UPDATE items SET stock = stock - 1 WHERE id = 4 - :id;
UPDATE sales SET item = :id + 100 WHERE id = :sale;
COMMIT;
"""
# Which values each connection drew, in order.
NOTE = "\\set a random(1, 1000000000)\nINSERT INTO sales (item, name) VALUES (:a, CONNECTION_ID());"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The shop with a tenth of its rows."""
    path = tmp_path_factory.mktemp("own") / "shop"
    shutil.copytree(SHOP, path)
    manifest = path / "workload.toml"
    manifest.write_text(manifest.read_text().replace("0000\n", "000\n"))
    return path


@pytest.fixture(scope="module")
def mariadb_setting(standalone, client, shop):
    """The lone server of MariaDB."""
    made = Setting(standalone, client, standalone.nodes[0].release, "quick", lambda line: None)
    yield made
    SQLFiles(shop).clean(made)


def test_generated_rows_fit_the_schema(mariadb_setting, shop):
    """Foreign keys refer to rows that are there, and unique columns have no value twice."""
    setting, workload = mariadb_setting, SQLFiles(shop)
    workload.prepare(setting)
    lost = (
        "SELECT (SELECT COUNT(*) FROM orders LEFT JOIN customers c ON c.id = customer_id WHERE c.id IS NULL), "
        "(SELECT COUNT(*) FROM order_items LEFT JOIN products p ON p.id = product_id WHERE p.id IS NULL), "
        "(SELECT COUNT(*) FROM order_items LEFT JOIN orders o ON o.id = order_id WHERE o.id IS NULL)"
    )
    seen = query(setting, workload, "SELECT COUNT(DISTINCT email), COUNT(DISTINCT country), MIN(id) FROM customers")
    stored = [query(setting, workload, f"CHECKSUM TABLE {table}") for table in workload.read.tables]
    workload.populate(setting)

    assert query(setting, workload, lost) == [(0, 0, 0)]
    assert seen == [(2_000, 4, 1)]
    assert query(setting, workload, "SELECT name, price FROM products WHERE id = 1")[0][0] == "small red cup"
    assert stored == [query(setting, workload, f"CHECKSUM TABLE {table}") for table in workload.read.tables]


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_the_shop_runs_on_both_vendors(vendor, prepared, request, shop):
    """Every order is one row with two items, and the stock has moved by as much, whatever was tried again."""
    setting = request.getfixturevalue(f"{vendor}_setting")
    workload = SQLFiles(shop, threads=4, seconds=0.3, prepared=prepared)
    workload.prepare(setting)
    before = query(setting, workload, "SELECT SUM(stock) FROM products")[0][0]
    result = workload.run(setting)
    orders = result.ledger.entries["order"].committed
    (counts,) = query(
        setting,
        workload,
        "SELECT (SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM order_items), SUM(stock) FROM products",
    )
    workload.reset(setting)

    assert result.commits == orders > 0
    assert set(result.ledger.entries) == {"browse", "history", "order"}
    assert {number for number, _ in result.ledger.errors} <= {1205, 1213}
    assert counts == (2_000 + orders, 4_000 + 2 * orders, before - 3 * orders)
    assert result.statements["order:8"].total >= orders
    assert list(result.statements)[:3] == ["browse:4", "browse:5", "history:3"]
    assert query(setting, workload, "SELECT COUNT(*), MAX(id) FROM orders") == [(2_000, 2_000)]
    assert query(setting, workload, "SELECT COUNT(*) FROM order_items") == [(4_000,)]


@pytest.mark.parametrize("prepared", [True, False])
def test_a_conflict_repeats_one_unit(setting, files, prepared):
    """A statement before the transaction is committed once; the transaction itself is there once or not at all."""
    first = "INSERT INTO sales (item, name) VALUES (0, 'first');\n"
    workload = files({"browse.sql": None, "sell.sql": first + SELL}, threads=8, seconds=0.3, prepared=prepared)
    workload.prepare(setting)
    before = query(setting, workload, "SELECT SUM(stock) FROM items")[0][0]
    result = workload.run(setting)
    entry = result.ledger.entries["sell"]
    (after,) = query(setting, workload, "SELECT SUM(stock) FROM items")

    assert result.ledger.errors  # there were conflicts
    assert entry.tried > entry.committed > 0
    assert entry.unknown == 0
    begun = entry.committed + entry.failed  # at the end of the round
    assert query(setting, workload, "SELECT COUNT(*) FROM sales WHERE name = 'first'") == [(begun,)]
    assert query(setting, workload, "SELECT COUNT(*) FROM sales WHERE item BETWEEN 101 AND 103") == [(entry.committed,)]
    assert before - after[0] == 2 * entry.committed
    assert result.commits == begun + entry.committed


def drawn(setting, workload):
    """The values of each connection's first statements, as a set: connections have no names."""
    workload.prepare(setting)
    workload.reset(setting)
    workload.run(setting)
    by_connection = defaultdict(list)
    for connection, value in query(setting, workload, "SELECT name, item FROM sales WHERE id > 10 ORDER BY id"):
        by_connection[connection].append(value)
    return {tuple(values[:10]) for values in by_connection.values() if len(values) >= 10}


def test_blocks_have_equal_inputs(setting, files, provisioner):
    """For every variant, as text and prepared, at any rate, on one load host or two; other blocks have others."""
    workload = files({"browse.sql": None, "note.sql": NOTE}, threads=4, seconds=1.5)
    once = drawn(setting, workload)
    (other,) = provisioner.acquire(ClusterSpec("standalone", name="other"))
    two_hosts = dataclasses.replace(setting, others=(other,))

    assert len(once) == 4
    assert drawn(setting, dataclasses.replace(workload, prepared=False)) == once
    assert drawn(setting, workload.at_rate(400)) == once
    assert drawn(two_hosts, workload) == once
    assert drawn(dataclasses.replace(setting, block=1), workload).isdisjoint(once)
    assert drawn(setting, dataclasses.replace(workload, seed=2)).isdisjoint(once)
    provisioner.give_back([other])


def test_weights_decide_how_often_a_file_runs(setting, files):
    """As given, or as workload.toml says. Each 64 transactions of a connection have nearly the same mix."""
    workload = files({"other.sql": "SELECT 1;"}, transactions=["browse.sql@9", "other.sql"], threads=1, seconds=3.0)
    workload.prepare(setting)
    entries = workload.run(setting).ledger.entries

    other = entries["other"].committed
    decks = (entries["browse"].committed + other) // 64
    assert decks > 3
    assert 6 * decks <= other <= 7 * (decks + 1)  # a tenth of 64


def test_unique_ids_are_unique(setting, files):
    """Over all terminals, all calls and all retries; they begin above the largest key."""
    text = (
        "\\set a unique_id()\n\\set b unique_id()\nBEGIN;\nUPDATE items SET stock = stock - 1 WHERE id = 1;\n"
        "INSERT INTO sales (id, item) VALUES (:a, 1), (:b, 2);\nCOMMIT;"
    )
    workload = files({"browse.sql": None, "sell.sql": text}, threads=4, seconds=0.1)
    workload.prepare(setting)
    results = [workload.run(setting) for _ in range(2)]

    assert all({number for number, _ in result.ledger.errors} <= {1213} for result in results)
    committed = sum(result.commits for result in results)
    assert query(setting, workload, "SELECT COUNT(*) FROM sales WHERE id > 100") == [(2 * committed,)]


@pytest.mark.parametrize("reset", ["none", "surplus"])
def test_texts_with_unique_ids_are_new_keys(setting, files, reset):
    """In each round, whether the rows of rounds before are there or not."""
    changed = {
        "schema.sql": "CREATE TABLE names (name VARCHAR(30) PRIMARY KEY, code VARCHAR(30) NOT NULL UNIQUE);",
        "workload.toml": f'reset = "{reset}"\nrows = {{names = 50}}\n',
        "browse.sql": "\\set id unique_id()\n\\set name concat('new', :id)\n"
        "INSERT INTO names VALUES (:name, :name);\nSELECT 1;",
    }
    workload = files(changed, threads=3, seconds=0.1)
    workload.prepare(setting)
    committed = []
    for _ in range(3):
        workload.reset(setting)
        committed.append(workload.run(setting).commits)
    kept = sum(committed) if reset == "none" else committed[-1]

    assert query(setting, workload, "SELECT COUNT(*), COUNT(DISTINCT code) FROM names") == [(50 + kept, 50 + kept)]


@pytest.mark.parametrize("prepared", [True, False])
def test_rows_that_a_change_returns_may_stay_unread(setting, files, prepared):
    """INSERT, REPLACE and DELETE with RETURNING run, and so do statements after them."""
    text = (
        "\\set a random(1, 1000)\nINSERT INTO sales (item, name) VALUES (:a, 'gone') RETURNING id;\n"
        "REPLACE INTO sales (id, item) VALUES (5, :a) RETURNING id, item;\n"
        "DELETE FROM sales WHERE name = 'gone' RETURNING id;\n"
        "INSERT INTO sales (item, name) VALUES (:a, 'read') RETURNING id \\gset sale_\n"
        "UPDATE sales SET name = 'done' WHERE id = :sale_id;\n"
    )
    workload = files({"browse.sql": None, "sell.sql": text}, threads=1, prepared=prepared)
    workload.prepare(setting)
    entry = workload.run(setting).ledger.entries["sell"]

    assert entry.tried == entry.committed > 0
    assert query(setting, workload, "SELECT COUNT(*) FROM sales WHERE name = 'done'") == [(entry.committed,)]
    assert query(setting, workload, "SELECT COUNT(*) FROM sales WHERE name = 'gone'") == [(0,)]


@pytest.mark.parametrize("prepared", [True, False])
def test_a_procedure_may_return_rows(setting, files, prepared):
    """Any number of results, read or not; what it writes is there."""
    procedure = (
        "DELIMITER //\nCREATE PROCEDURE sell(item INT) BEGIN SELECT item AS sold, 5 AS left_over; "
        "INSERT INTO sales (item, name) VALUES (item, 'sold'); SELECT 2; END//\nDELIMITER ;\n"
    )
    text = "\\set a random(1, 9)\nCALL sell(:a);\nCALL sell(:a);\nSELECT 1;\n"
    manifest = 'after_load = ["sell.sql"]\ntransactions = ["call.sql"]\nrows = {items = 5, sales = 10}\n'
    changed = {"browse.sql": None, "call.sql": text, "sell.sql": procedure, "workload.toml": manifest}
    workload = files(changed, threads=1, prepared=prepared)
    workload.prepare(setting)
    entry = workload.run(setting).ledger.entries["call"]

    assert entry.committed > 0
    assert query(setting, workload, "SELECT COUNT(*) FROM sales WHERE name = 'sold'") == [(2 * entry.committed,)]


def test_sleeps_and_rollbacks_count(setting, files):
    """A sleep is part of the transaction; a rollback by design is one of the ledger's outcomes."""
    text = "BEGIN;\nDELETE FROM items;\n\\sleep 20 ms\nROLLBACK;"
    workload = files({"browse.sql": None, "undo.sql": text}, threads=1, seconds=1.0)
    workload.prepare(setting)
    result = workload.run(setting)
    entry = result.ledger.entries["undo"]

    assert (entry.committed, result.commits) == (0, 0)
    assert 3 <= entry.rolled_back <= 50
    assert entry.latencies.percentile(0.01) > 0.019
    assert query(setting, workload, "SELECT COUNT(*) FROM items") == [(100,)]


def test_values_of_all_types_go_through_prepared_statements(setting, files):
    """Numbers, texts, truth values and NULL, of expressions and of results; a text may be long, within a limit."""
    text = (
        "SELECT id, name, NULL AS none, 2.5 AS half, 9223372036854775807 AS large FROM items WHERE id = 1 \\gset\n"
        "\\set truth 1 < 2\n\\set double 1.25\n\\set long random_text(40)\n"
        "INSERT INTO kept VALUES (:id, :name, :none, :half, :large, :truth, :double, :long, NULL);\n"
    )
    schema = (
        "CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(40));\nCREATE TABLE kept (id INT, name VARCHAR(40), "
        "none INT, half DECIMAL(4, 2), large BIGINT, truth INT, twice DOUBLE, words VARCHAR(40), "
        "made INT AUTO_INCREMENT PRIMARY KEY);\n"
    )
    manifest = "rows = {items = 1}\n"
    found = []
    for prepared in (True, False):
        changed = {"workload.toml": manifest, "schema.sql": schema, "browse.sql": text}
        workload = files(changed, name=f"kept{prepared}", threads=1, prepared=prepared)
        workload.prepare(setting)
        workload.run(setting)
        found.append(query(setting, workload, "SELECT * FROM kept ORDER BY made LIMIT 1")[0][:7])

    assert found[0] == found[1]
    assert found[0][2:] == (None, pytest.approx(2.5), 9223372036854775807, 1, 1.25)


def test_a_second_prepare_finds_the_tables(setting, files, said):
    """Other data make other tables; other transactions do not."""
    workload = files({})
    workload.prepare(setting)
    workload.at_rate(50).prepare(setting)
    assert len(said) == 1

    more = files({"workload.toml": "rows = {items = 120, sales = 10}\nvariables = {items = 100}\n"}, name="other/shop")
    more.prepare(setting)
    assert len(said) == 2
    assert query(setting, more, "SELECT COUNT(*) FROM items") == [(120,)]


def test_servers_start_from_a_copy_of_the_data(files, provisioner, mariadb, client, tmp_path, monkeypatch):
    """Loaded once; a cluster that starts from the copy loads nothing."""
    monkeypatch.setattr(datasets, "datasets_directory", lambda: tmp_path / "stored")
    workload, lines = files({}), []
    template = datasets.dataset_template(workload, mariadb, provisioner, client, {}, lines.append)
    cluster = bring_up(ClusterSpec("standalone"), mariadb, provisioner, options={}, start=template)
    setting = Setting(cluster, client, mariadb, "quick", lines.append)
    populated = len(lines)
    try:
        workload.prepare(setting)
        result = workload.run(setting)

        assert len(lines) == populated
        assert result.good > 0
        assert sorted(result.ledger.errors) == []
        assert query(setting, workload, "SELECT COUNT(*) FROM items") == [(100,)]
    finally:
        cluster.close()
        provisioner.give_back(cluster.hosts)


# ----------------------------------------------------------------------
# What does not run
# ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT 1;\nSELECT nme FROM items;", r"shop/browse\.sql:2:1: error 1054: Unknown column 'nme' in "),
        ("SELECT 1 FROM itms;", r"shop/browse\.sql:1:1: error 1146: Table 'dbcluster_shop\.itms' doesn't exist"),
        ("SELECT id items FROM items WHERE id = :items LIMIT 1 FRM \\gset", r"shop/browse\.sql:1:1: error 1064: "),
    ],
)
def test_the_server_checks_statements_before_a_round(setting, files, text, words):
    """Names and syntax, with file, line and column; before a row is loaded."""
    workload = files({"browse.sql": text})
    with pytest.raises(ConfigError, match=words):
        workload.prepare(setting)

    assert query(setting, workload, "SELECT (SELECT COUNT(*) FROM items), (SELECT COUNT(*) FROM sales)") == [(0, 0)]


def test_a_later_file_may_make_what_a_statement_needs(setting, files, said):
    """A line of progress shows the error before rows are loaded; the file after them adds the column."""
    changed = {
        "workload.toml": 'rows = {items = 100}\nafter_load = ["more.sql"]\n',
        "more.sql": "ALTER TABLE items ADD price INT NOT NULL DEFAULT 5;",
        "browse.sql": "SELECT price FROM items LIMIT 1;",
    }
    workload = files(changed)
    workload.prepare(setting)

    assert [missing(line, "shop/browse.sql:1:1: error 1054", "more.sql") for line in said[1:]] == [[]]
    assert query(setting, workload, "SELECT MAX(price), COUNT(*) FROM items") == [(5, 100)]


def test_gset_needs_one_row(setting, files):
    """None or two end the workload, with the place of the statement."""
    for condition, found in (("id < 0", "none"), ("id < 3", "2")):
        workload = files({"browse.sql": f"SELECT name FROM items WHERE {condition} \\gset"}, name=f"{found}/shop")
        workload.prepare(setting)
        with pytest.raises(WorkloadError) as caught:
            workload.run(setting)
        assert f"shop/browse.sql:1:1: \\gset needs exactly one row, and the statement returned {found}" in str(
            caught.value
        )


@pytest.mark.parametrize("prepared", [True, False])
def test_an_error_that_no_retry_solves_names_the_statement(setting, files, prepared):
    """As file and line, with what was done until then."""
    text = "SELECT 1;\nINSERT INTO items VALUES (1, 'again', 1);"
    workload = files({"browse.sql": text}, prepared=prepared)
    workload.prepare(setting)

    with pytest.raises(LoadEnded) as caught:
        workload.run(setting)
    assert re.search(
        r"error 1062 on node1 at browse:2 \(while committing\) of browse: Duplicate entry", str(caught.value)
    )


def test_a_text_may_be_too_long_to_be_prepared(setting, files):
    """As text it is sent."""
    changed = {"browse.sql": "\\set a random_text(20000)\nSELECT :a;"}
    workload = files(changed)
    workload.prepare(setting)

    with pytest.raises(WorkloadError, match=r"shop/browse\.sql:2:1: a text of 20000 bytes, .* use prepared=False"):
        workload.run(setting)
    assert dataclasses.replace(workload, prepared=False).run(setting).good > 0


def test_a_directory_that_changes_during_a_run_is_noticed(setting, files):
    """Copies with another rate keep what was read first."""
    workload = files({})
    workload.prepare(setting)
    paced = workload.at_rate(100)
    path = Path(workload.directory) / "browse.sql"
    path.write_text("SELECT 'changed';")

    for each in (workload, paced, workload.at_rate(5)):
        with pytest.raises(WorkloadError, match=r"shop/browse\.sql has changed since this run read it"):
            each.run(setting)


def test_a_share_needs_a_number_first(setting, files):
    """Measuring what the variants can do is not the workload's."""
    with pytest.raises(ConfigError, match="measure the capacity of the variants first"):
        files({}, rate="70 %").run(setting)


def test_what_writes_is_refused_at_a_replica(replicated, monkeypatch, tmp_path):
    """Before anything is made."""
    from pytest_dbcluster.workloads import sysbench_driver

    monkeypatch.setattr(sysbench_driver, "sysbench", lambda setting: None)
    path = directory(tmp_path / "shop", {"browse.sql": "DELETE FROM items WHERE id = 1;"})
    with pytest.raises(ConfigError, match=r'sql shop t16 to reader writes, but node2 .* set to="writer"'):
        SQLFiles(path, to="reader").prepare(Setting(replicated, None, None, "quick", print))
