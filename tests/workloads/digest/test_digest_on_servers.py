"""Logs of real servers: what ran before comes back, by the counters of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dbcluster.workloads.digest import digest_check
from pytest_dbcluster.workloads.digest.digest_directory import write_digest
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sysbench import SCHEMA, SysBench
from pytest_dbcluster.workloads.workload import Setting
from tests.workloads.sql.directories import directory

SHOP = Path(__file__).parents[3] / "suites" / "own" / "shop"
COUNTED = ("com_", "handler_", "innodb_rows_")
# Not of a transaction: prepared statements, and conflicts, whose number differs from run to run.
LEFT_OUT = ("com_stmt_", "com_show_", "com_rollback", "handler_rollback", "handler_read_first")
WITHIN, LEAST = 0.1, 0.02


@pytest.fixture(scope="module")
def setting(request, provisioner, bring, client):
    """A lone server of each vendor; tests drop what they have made."""
    cluster = bring("standalone", 1, request.getfixturevalue(request.param))
    yield Setting(cluster, client, cluster.nodes[0].release, "quick", lambda line: None)
    cluster.close()
    provisioner.give_back(cluster.hosts)


def counted(node, action):
    """What an action returns, and the counters that it moved."""
    before = node.status()
    result = action()
    after = node.status()
    names = [name for name in after if name.startswith(COUNTED) and not name.startswith(LEFT_OUT)]
    return result, {name: int(after[name]) - int(before.get(name, 0)) for name in names}


def log_of(setting, workload, database, path):
    """The counters of a round, with its slow log at ``path``.

    Seed and rate are fixed, so that each run of the test has the same statements.
    """
    node = setting.cluster.nodes[0]
    workload.prepare(setting)
    for (table,) in node.query(f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{database}'"):
        node.query(f"ANALYZE LOCAL TABLE `{database}`.`{table}`")
    path.touch()
    path.chmod(0o666)
    for parent in list(path.parents)[:3]:
        parent.chmod(0o755)
    with digest_check.logging_everything(node, path):
        return counted(node, lambda: workload.run(setting))[1]


def digested(setting, log, schema, directory):
    """The number of transactions in a log, those of the digest's run, and the counters of this run."""
    found, _, files = write_digest(log, schema, directory, keep_literals=False, progress=lambda line: None)
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)
    count = sum(one.of.count for one in found.runnable)
    workload = SQLFiles(directory, threads=2, seconds=3, rate=count / 3)
    workload.prepare(setting)
    result, counters = counted(setting.cluster.nodes[0], lambda: workload.run(setting))
    workload.clean(setting)
    return count, result.operations, counters


def apart(first, count, second, operations):
    """The counters of a transaction that differ by more than WITHIN."""
    shares = {name: (first[name] / count, second.get(name, 0) / operations) for name in first}
    return {
        name: (round(a, 3), round(b, 3))
        for name, (a, b) in shares.items()
        if max(a, b) >= LEAST and abs(b / a - 1 if a else 1) > WITHIN
    }


@pytest.mark.parametrize("setting", ["mariadb", pytest.param("mysql", marks=pytest.mark.thorough)], indirect=True)
def test_sysbench_comes_back_from_its_log(setting, tmp_path):
    """One transaction of twenty statements; every counter of it agrees within 10 %."""
    workload = SysBench("oltp_read_write", threads=2, size=2000, seconds=3, rate=100, distribution="uniform")
    first = log_of(setting, workload, SCHEMA, tmp_path / "slow.log")
    ((_, table),) = setting.cluster.nodes[0].query(f"SHOW CREATE TABLE {SCHEMA}.sbtest1")
    (tmp_path / "schema.sql").write_text(table + ";\n")
    workload.clean(setting)
    count, operations, second = digested(setting, tmp_path / "slow.log", tmp_path / "schema.sql", tmp_path / "bench")

    assert (tmp_path / "bench" / "update_sbtest1.sql").exists()
    assert apart(first, count, second, operations) == {}


# The statements of sysbench above are prepared, on either vendor.
@pytest.mark.parametrize(
    ("setting", "prepared"),
    [
        pytest.param("mariadb", True, marks=pytest.mark.thorough),
        pytest.param("mariadb", False, marks=pytest.mark.thorough),
        ("mysql", False),
    ],
    indirect=["setting"],
)
def test_a_shop_comes_back_from_its_log(setting, tmp_path, prepared):
    """Five classes with skewed keys, new ids and loops; every counter agrees within 10 %."""
    workload = SQLFiles(SHOP, threads=2, seconds=3, rate=400, prepared=prepared)  # more threads make more conflicts
    first = log_of(setting, workload, workload.database, tmp_path / "slow.log")
    workload.clean(setting)
    count, operations, second = digested(setting, tmp_path / "slow.log", SHOP / "schema.sql", tmp_path / "again")

    assert apart(first, count, second, operations) == {}


MARKET = {
    "schema.sql": "CREATE TABLE customers (id INT PRIMARY KEY, vip TINYINT(1) NOT NULL);\n"
    "CREATE TABLE products (id INT PRIMARY KEY, kind ENUM('a', 'b', 'c', 'd') NOT NULL, special TINYINT(1) NOT NULL);\n"
    "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, product INT NOT NULL, customer INT NOT NULL, "
    "paid INT NOT NULL, FOREIGN KEY (customer) REFERENCES customers (id));\n"
    "CREATE TABLE visits (id INT PRIMARY KEY, customer INT NOT NULL, page INT NOT NULL, done TINYINT(1) NOT NULL, "
    "FOREIGN KEY (customer) REFERENCES customers (id));",
    "workload.toml": "rows = {customers = 50, products = 60, orders = 400, visits = 1000}\n",
    "browse.sql": "SELECT id FROM products WHERE kind = 'a' OR kind = 'b';\n",
    "visits.sql": "\\set id random(1, 50)\nSELECT v.id FROM visits v JOIN customers c ON c.id = v.customer "
    "WHERE c.id = :id AND v.done = 1;\n",
    "count.sql": "SELECT id FROM customers;\nSELECT id FROM visits;\nSELECT id FROM products;\n",
    "order.sql": "\\set id random(1, 50)\nINSERT INTO orders (product, customer, paid) VALUES (1, :id, 0);\n",
    "pay.sql": "SELECT MAX(id) AS id FROM orders \\gset newest_\n\\set id :newest_id - random(0, 3)\n"
    "UPDATE orders SET paid = paid + 1 WHERE id = :id;\n",
}


@pytest.mark.parametrize("setting", ["mariadb"], indirect=True)
def test_joins_alternatives_and_keys_of_others_come_back(setting, tmp_path):
    """Statements find as many rows, and the rows that another transaction has inserted are paid.

    The statements are sent as text.
    """
    workload = SQLFiles(directory(tmp_path / "market", MARKET), threads=2, seconds=2, rate=300, prepared=False)
    log_of(setting, workload, workload.database, tmp_path / "slow.log")
    workload.clean(setting)
    found, read, files = write_digest(
        tmp_path / "slow.log",
        tmp_path / "market" / "schema.sql",
        tmp_path / "again",
        keep_literals=False,
        progress=lambda line: None,
    )
    again = SQLFiles(directory(tmp_path / "again", {"browse.sql": None, **files}), threads=2)
    run = digest_check.check(found, read, again, setting)
    ((paid,),) = setting.cluster.nodes[0].query(
        f"SELECT SUM(paid) FROM {again.database}.orders WHERE id > {found.rows['orders']}"
    )
    classes = run.sessions.classes.found.values()
    updates = sum(one.count for one in classes if run.roles[one.runs[0][0]].verb == "UPDATE")
    again.clean(setting)

    assert found.unfitted == []
    assert "WHERE id = :new_orders_id;" in files["update_orders.sql"]
    assert [str(one) for one in digest_check.compare(found, read, run) if not one.fits] == []
    assert updates >= paid > 0.8 * updates  # the first ones find loaded rows
