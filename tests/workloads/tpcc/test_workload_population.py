"""TPC-C as it is loaded: what the specification asks of the tables, what each condition finds, and a full disk."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.workloads.tpcc.conditions import AS_BEFORE, CONDITIONS, IN_MEMORY, SCANS, violations
from pytest_dbcluster.workloads.tpcc.digests import DIGESTS
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TABLES, TPCC

# Clause 4.3.3.1 for one warehouse; the lines of an order are random.
ROWS = {
    "warehouse": 1, "district": 10, "customer": 30_000, "history": 30_000, "orders": 30_000, "new_order": 9_000,
    "item": 100_000, "stock": 100_000,
}  # fmt: skip


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=pytest.mark.thorough)])
def fresh(request, loaded):
    """A server of each vendor that nothing has run on."""
    return loaded(request.param).cluster


def only(node, expression, table, where="1 = 1"):
    """One value."""
    return node.query(f"SELECT {expression} FROM {SCHEMA}.{table} WHERE {where}")[0][0]


def test_the_tables_have_the_rows_of_the_specification(fresh):
    """Their number is that of clause 4.3.3.1; an order has 5 to 15 lines, 10 on average."""
    node = fresh.nodes[0]

    assert {table: only(node, "COUNT(*)", table) for table in ROWS} == ROWS
    assert only(node, "COUNT(*)", "order_line") == only(node, "SUM(o_ol_cnt)", "orders")
    assert (only(node, "MIN(o_ol_cnt)", "orders"), only(node, "MAX(o_ol_cnt)", "orders")) == (5, 15)
    assert float(only(node, "AVG(o_ol_cnt)", "orders")) == pytest.approx(10, abs=0.1)


def test_the_values_are_those_of_the_specification(fresh):
    """Shares that clause 4.3.3.1 gives, names by syllables, and each customer's one order."""
    node = fresh.nodes[0]

    for table, column in (("item", "i_data"), ("stock", "s_data")):
        assert float(only(node, f"AVG({column} LIKE '%ORIGINAL%')", table)) == pytest.approx(0.1, abs=0.005)
    assert float(only(node, "AVG(c_credit = 'BC')", "customer")) == pytest.approx(0.1, abs=0.01)
    assert only(node, "COUNT(DISTINCT o_d_id, o_c_id)", "orders") == 30_000
    assert only(node, "SUM(o_c_id = o_id)", "orders") < 100
    assert only(node, "MIN(o_id)", "orders", "o_carrier_id IS NULL") == 2101
    assert only(node, "MAX(o_id)", "orders", "o_carrier_id IS NOT NULL") == 2100
    assert only(node, "MAX(ol_amount)", "order_line", "ol_o_id < 2101") == 0
    assert only(node, "MIN(ol_amount)", "order_line", "ol_o_id > 2100") > 0
    assert only(node, "COUNT(DISTINCT c_last)", "customer", "c_d_id = 1 AND c_id <= 1000") == 1000
    assert only(node, "c_last", "customer", "c_d_id = 3 AND c_id = 372") == "PRICALLYOUGHT"
    assert only(node, "MAX(ol_i_id)", "order_line") > 99_000
    lengths = node.query(
        f"SELECT MIN(LENGTH(c_data)), MAX(LENGTH(c_data)), MAX(LENGTH(c_first)) FROM {SCHEMA}.customer"
    )
    assert lengths == [(300, 500, 16)]
    assert only(node, "COUNT(*)", "warehouse", "w_zip LIKE '____11111' AND w_tax BETWEEN 0 AND 0.2") == 1


def test_dates_are_the_time_of_loading(fresh):
    """One for all rows, by the server's clock."""
    columns = {
        "customer": "c_since",
        "history": "h_date",
        "orders": "o_entry_d",
        "order_line": "ol_delivery_d",
    }
    found = {
        only(fresh.nodes[0], f"CONCAT(MIN({column}), ' ', MAX({column}))", table) for table, column in columns.items()
    }
    (both,) = found
    age = only(fresh.nodes[0], "TIMESTAMPDIFF(SECOND, MAX(o_entry_d), NOW())", "orders")

    assert both[:19] == both[20:]
    assert 0 <= int(age) < 3600


def test_every_table_has_a_primary_key(fresh):
    """Clusters ask for one; the specification gives HISTORY none."""
    found = fresh.nodes[0].query(
        "SELECT table_name FROM information_schema.table_constraints "
        f"WHERE table_schema = '{SCHEMA}' AND constraint_type = 'PRIMARY KEY'"
    )

    assert {name for (name,) in found} >= set(TABLES)


# Columns and their checksum, on each vendor and with any number of threads.
SUMS = {
    "stock": ("s_w_id, s_i_id, s_quantity, s_dist_01, s_dist_10, s_data", 4_090_848_714),
    "customer": ("c_d_id, c_id, c_first, c_last, c_zip, c_discount, c_data", 3_052_632_003),
    "order_line": ("ol_d_id, ol_o_id, ol_number, ol_i_id, ol_amount, ol_dist_info", 2_328_497_438),
    "orders": ("o_d_id, o_id, o_c_id, IFNULL(o_carrier_id, 0), o_ol_cnt", 823_737_150),
}


@pytest.mark.parametrize("table", SUMS)
def test_the_tables_are_the_same_on_every_vendor_and_with_any_number_of_threads(fresh, table):
    """Each part of a table has random numbers of its own, so what is stored is what its name says."""
    columns, checksum = SUMS[table]

    assert only(fresh.nodes[0], f"BIT_XOR(CRC32(CONCAT_WS(',', {columns})))", table) == checksum


def test_what_was_loaded_meets_all_conditions(fresh):
    """Clause 3.3.2 asks it of a database as it is loaded."""
    assert [one.number for one in CONDITIONS] == list(range(1, 21))
    assert TPCC().violations(fresh) == []


# A line of an order that nobody made.
LINE = (
    "INSERT INTO order_line SELECT 3001, 2, 1, 1, i_id, 1, NULL, 2, {amount}, {info} "
    "FROM item JOIN stock ON s_i_id = i_id WHERE i_id = {item}"
)
BROKEN = [
    (1, "UPDATE warehouse SET w_ytd = w_ytd + 1", "W_YTD = sum(D_YTD)", "warehouse 1: 300001.00 and 300000.00"),
    (
        2,
        "UPDATE district SET d_next_o_id = 3005 WHERE d_id = 3",
        "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        "warehouse 1, district 3: 3004 and 3000",
    ),
    (
        2,
        "DELETE FROM new_order WHERE no_d_id = 9 AND no_o_id = 3000",
        "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        "warehouse 1, district 9: 3000 and 2999 in NEW-ORDER",
    ),
    (
        3,
        "DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2500",
        "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
        "warehouse 1, district 4: 900 and 899",
    ),
    (
        4,
        "DELETE FROM order_line WHERE ol_d_id = 5",
        "sum(O_OL_CNT) = rows of ORDER-LINE",
        r"warehouse 1, district 5: \d{5} and 0",
    ),
    (
        5,
        "UPDATE orders SET o_carrier_id = 3 WHERE o_d_id = 6 AND o_id = 2999",
        "O_CARRIER_ID is null if and only if the order is in NEW-ORDER",
        "warehouse 1, district 6, order_number 2999: 0 and 1",
    ),
    (
        6,
        "UPDATE orders SET o_ol_cnt = 77 WHERE o_d_id = 7 AND o_id = 12",
        "O_OL_CNT = rows of ORDER-LINE of the order",
        r"warehouse 1, district 7, order 12: 77 and \d+",
    ),
    (
        7,
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 8 AND ol_o_id = 5 AND ol_number = 2",
        "OL_DELIVERY_D is null if and only if O_CARRIER_ID of its order is",
        r"warehouse 1, district 8, order 5, line 2: no delivery and \d+",
    ),
    (
        8,
        "DELETE FROM history WHERE h_c_d_id = 2 AND h_c_id = 3",
        "W_YTD = sum(H_AMOUNT)",
        "warehouse 1: 300000.00 and 299990.00",
    ),
    (
        9,
        "UPDATE district SET d_ytd = 7 WHERE d_id = 10",
        "D_YTD = sum(H_AMOUNT)",
        "warehouse 1, district 10: 7.00 and 30000.00",
    ),
    (
        10,
        "UPDATE customer SET c_balance = c_balance + 5 WHERE c_d_id = 2 AND c_id = 77",
        "C_BALANCE = sum(OL_AMOUNT) of delivered lines - sum(H_AMOUNT)",
        "warehouse 1, district 2, customer 77: -5.00 and -10.00",
    ),
    (
        11,
        "DELETE FROM orders WHERE o_d_id = 1 AND o_id = 1",
        "rows of ORDER - rows of NEW-ORDER = 2100 + sum(C_DELIVERY_CNT)",
        "warehouse 1, district 1: 2099 and 2100",
    ),
    (
        12,
        "UPDATE customer SET c_ytd_payment = 20 WHERE c_d_id = 3 AND c_id = 4",
        "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of delivered lines",
        "warehouse 1, district 3, customer 4: 10.00 and 0.00",
    ),
    (
        13,
        "UPDATE stock SET s_ytd = 7, s_order_cnt = 1 WHERE s_i_id = 9",
        "S_YTD, S_ORDER_CNT, S_REMOTE_CNT = sum(OL_QUANTITY), rows, remote rows of new ORDER-LINE",
        "warehouse 1, item 9: 7 1 0 and 0 0 0",
    ),
    (
        13,
        LINE.format(item=3, amount=1, info="''"),
        "S_YTD, S_ORDER_CNT, S_REMOTE_CNT = sum(OL_QUANTITY), rows, remote rows of new ORDER-LINE",
        "warehouse 1, item 3: 0 0 0 and 2 1 0",
    ),
    (
        14,
        "UPDATE customer SET c_payment_cnt = 2 WHERE c_d_id = 3 AND c_id = 4",
        "C_PAYMENT_CNT = rows of HISTORY of the customer",
        "warehouse 1, district 3, customer 4: 2 and 1",
    ),
    (
        15,
        LINE.format(item=3, amount="i_price * 3", info="''"),
        "OL_AMOUNT = OL_QUANTITY * I_PRICE of new lines",
        r"warehouse 1, district 2, order 3001, line 1: \d+.\d\d and \d+.\d\d",
    ),
    (
        15,
        LINE.format(item=3, amount="i_price * 2", info="''").replace("1, 1, i_id", "1, 1, 100001"),
        "OL_AMOUNT = OL_QUANTITY * I_PRICE of new lines",
        r"warehouse 1, district 2, order 3001, line 1: \d+.\d\d and no item",
    ),
    (
        16,
        LINE.format(item=3, amount="i_price * 2", info="s_dist_03"),
        "OL_DIST_INFO = S_DIST of new lines",
        r"warehouse 1, district 2, order 3001, line 1: \w{24} and \w{24}",
    ),
    (
        17,
        "UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_d_id = 3 AND c_id = 4",
        "C_DELIVERY_CNT = orders of the customer delivered since the load",
        "warehouse 1, district 3, customer 4: 1 and 0",
    ),
    (
        18,
        "INSERT INTO history SELECT 5000000000, 1, h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, 'x' "
        "FROM history WHERE h_c_d_id = 3 AND h_c_id = 4",
        "H_DATA = W_NAME, four spaces and D_NAME of new payments",
        r"session 5000000000, payment 1: x and \w+    \w+",
    ),
    (
        19,
        "UPDATE customer SET c_payment_cnt = 2 WHERE c_d_id = 3 AND c_credit = 'BC' AND c_id < 100",
        "C_DATA of a customer with bad credit begins with a note of each new payment",
        r"warehouse 1, district 3, customer \d+: 1 payments and \w{40}",
    ),
    (
        20,
        "UPDATE stock SET s_quantity = s_quantity + 91 WHERE s_i_id = 8",
        "what no transaction changes is as it was loaded",
        r"kind stock, warehouse 1: \d+ and \d+",
    ),
]
# A change of each kind of value that no transaction changes.
KEPT = {
    "items": "UPDATE item SET i_price = i_price + 1 WHERE i_id = 7",
    "warehouse": "UPDATE warehouse SET w_tax = 0.2001",
    "districts": "UPDATE district SET d_name = '' WHERE d_id = 7",
    "customers": "UPDATE customer SET c_discount = 0.9 WHERE c_d_id = 7 AND c_id = 7",
    "stock": "UPDATE stock SET s_quantity = s_quantity - 1 WHERE s_i_id = 7",
    "loaded orders": "UPDATE orders SET o_c_id = o_c_id + 1 WHERE o_d_id = 7 AND o_id = 7",
    "loaded lines": "UPDATE order_line SET ol_amount = 1 WHERE ol_d_id = 7 AND ol_o_id = 2500",
    "loaded payments": "UPDATE history SET h_date = NOW() WHERE h_c_d_id = 7 AND h_c_id = 7",
}


@pytest.mark.parametrize(("number", "deed", "sentence", "values"), BROKEN, ids=[str(one[0]) for one in BROKEN])
def test_each_condition_finds_what_breaks_it(fresh, number, deed, sentence, values):
    """Number, sentence, node, the first key and both values; the same together with the others of its scan."""
    node, together = fresh.nodes[0], {number}.union(*(scan.numbers for scan in SCANS if number in scan.numbers))
    node.query(f"USE {SCHEMA}")
    node.query("BEGIN")
    try:
        node.query(deed)
        (said,) = violations([node], [CONDITIONS[number - 1]])
        assert said in violations([node], [CONDITIONS[one - 1] for one in sorted(together)])
    finally:
        node.query("ROLLBACK")

    assert re.fullmatch(re.escape(f"condition {number} ({sentence}) on node1: ") + values, said), said


def test_a_session_has_its_limit_of_memory_again(fresh):
    """While conditions are asked it is 64 MiB, or more where the server has more; then as before."""
    node, limit = fresh.nodes[0], "SELECT @@SESSION.tmp_table_size, @@SESSION.max_heap_table_size"
    before = node.query(limit)
    node.query(IN_MEMORY)
    within = node.query(limit)
    violations([node], CONDITIONS[:1])

    assert within == [(64 * 2**20, 64 * 2**20)]
    assert before == node.query(limit) != within


def test_mysql_is_asked_for_all_conditions(loaded):
    """Its statements and settings are those of MariaDB."""
    assert violations(loaded("mysql").cluster.nodes) == []


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
@pytest.mark.parametrize("own", [2**24, 2**27])
def test_servers_of_each_vendor_take_the_limit_of_memory(vendor, own, briefly, request):
    """A server with a larger limit keeps it; MySQL takes an integer only."""
    given = {"tmp_table_size": str(own), "max_heap_table_size": str(own)}
    node = briefly("standalone", 1, request.getfixturevalue(vendor), **given).nodes[0]
    limit = "SELECT @@SESSION.tmp_table_size, @@SESSION.max_heap_table_size"
    node.query(IN_MEMORY)
    within = node.query(limit)
    node.query(AS_BEFORE)

    assert within == [(max(own, 2**26), max(own, 2**26))]
    assert node.query(limit) == [(own, own)]


def test_each_kind_of_value_that_no_transaction_changes_is_compared(fresh):
    """The condition shows the first of them; without its limit it shows all that were changed, and no other."""
    node, one = fresh.nodes[0], CONDITIONS[19]
    every = dataclasses.replace(one, sql=one.sql.removesuffix(" LIMIT 1"))
    node.query(f"USE {SCHEMA}")
    node.query("BEGIN")
    try:
        for change in KEPT.values():
            node.query(change)
        said = violations([node], [every])
    finally:
        node.query("ROLLBACK")

    kinds = [re.search(r"on node1: kind (.+), warehouse [01]: \d+ and \d+$", line)[1] for line in said]
    assert every.sql != one.sql
    assert sorted(kinds) == sorted(KEPT)
    assert list(KEPT) == [each.kind for each in DIGESTS]


ROOT = Path(__file__).parents[3]
ON_A_SMALL_DISK = """\
import sys
from pytest_dbcluster.errors import NodeDied, WorkloadError
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases.find import find
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.tpcc import TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.support.clusters import bring_up

local = LocalProvisioner()
server = find("mariadb:10.11")
cluster = bring_up(ClusterSpec("standalone"), server, local, options={})
client = local.acquire(ClusterSpec("standalone", name="client"))[0]
setting = Setting(cluster, client, server, "quick", lambda line: None)
try:
    TPCC().prepare(setting)
except (NodeDied, WorkloadError) as error:
    print("refused:", error)
local.close()
"""


def test_a_disk_that_fills_while_it_is_loaded_is_named(tmp_path):
    """In the server's words; a schema that was not loaded to its end is loaded anew the next time."""
    (tmp_path / "disk").mkdir()
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    mount = f"mount -t tmpfs -o size=160m dbcluster-test {tmp_path}/disk || exit 98\n" + '"$@"'
    done = subprocess.run(
        [*unshare, "sh", "-c", mount, "sh", sys.executable, "-c", ON_A_SMALL_DISK],
        env={**os.environ, "DBCLUSTER_DATA_DIR": str(tmp_path / "disk")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 98 or "unshare" in done.stderr:
        pytest.skip(f"a small disk needs unshare --mount and mount -t tmpfs, as root or for users: {done.stderr}")

    assert done.returncode == 0, done.stderr
    if "refused: node node1 " in done.stdout:  # now and then MariaDB ends itself: it cannot roll back on a full disk
        assert "Out of disk space" in done.stdout
        return
    assert "refused: tpcc w1 t4 prepare ended with 1 on standalone1: " in done.stdout
    assert " is full" in done.stdout
