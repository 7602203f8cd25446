"""``LuaScript`` on real servers: scripts of sysbench and of users run unchanged."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import defaultdict
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.errors import WorkloadError
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.workloads.script import LuaScript
from pytest_dbcluster.workloads.workload import Setting
from tests.support.clusters import bring_up
from tests.support.query_log import logging_queries
from tests.workloads.sysbench_driver.calls import when

SCRIPTS = Path(__file__).parent / "scripts"
# Script of sysbench -> its options, and whether it writes.
BUNDLED = {
    "bulk_insert": ({}, True),
    "oltp_delete": ({"tables": 2, "table_size": 500}, True),
    "oltp_insert": ({"tables": 2, "table_size": 500}, True),
    "oltp_point_select": ({"tables": 2, "table_size": 500, "rand_type": "pareto"}, False),
    "oltp_read_only": ({"tables": 2, "table_size": 500}, False),
    "oltp_read_write": ({"tables": 2, "table_size": 500, "rand-type": "uniform"}, True),
    "oltp_update_index": ({"tables": 2, "table_size": 500}, True),
    "oltp_update_non_index": ({"tables": 2, "table_size": 500}, True),
    "oltp_write_only": ({"tables": 2, "table_size": 500, "auto_inc": False}, True),
    "select_random_points": ({"table_size": 500}, False),
    "select_random_ranges": ({"table_size": 500}, False),
}
ORDERS = LuaScript(SCRIPTS / "orders.lua", options={"rollbacks": 10}, data_files=["words.txt"], threads=4, seconds=0.4)


def bundled(name, **given):
    """A script of sysbench, unchanged."""
    options, writes = BUNDLED[name]
    path = find.find("sysbench").scripts / f"{name}.lua"
    return LuaScript(path, options=options, writes=writes, threads=2, seconds=1.0, **given)


def sent(node, deed):
    """What each connection of the load sends while something is done, in the order of connecting."""
    with logging_queries(node):
        deed()
    rows = node.query(
        f"SELECT thread_id, argument FROM mysql.general_log WHERE user_host LIKE '{LOAD}%' "
        "AND command_type IN ('Query', 'Execute') AND argument NOT LIKE '%@@hostname%'"
    )
    found = defaultdict(list)
    for connection, statement in rows:
        found[connection].append(statement)
    return [found[connection] for connection in sorted(found)]


def firsts(lists, others):
    """The beginnings of lists of statements that both runs have, each of at least ten statements."""
    pairs = list(zip(lists, others, strict=True))
    lengths = [min(len(one), len(other)) for one, other in pairs]
    assert min(lengths) > 10
    return [(one[:length], other[:length]) for (one, other), length in zip(pairs, lengths, strict=True)]


@pytest.mark.parametrize("name", BUNDLED)
def test_the_scripts_of_sysbench_run_unchanged(setting, name):
    """Twice, with prepare and cleanup; what they commit is counted if they write."""
    load = bundled(name, restore=name == "bulk_insert").with_seconds(0.1)
    load.prepare(setting)
    for _ in range(2):
        done = load.run(setting)
        load.reset(setting)

        assert list(done.ledger.entries) == [name]
        assert done.good == done.ledger.total.committed > 0
        assert {number for number, _ in done.ledger.errors} <= {1020, 1205, 1213}
        counted = None if not load.writes or name == "bulk_insert" else done.good
        assert done.commits == counted
    assert load.tables
    load.clean(setting)
    assert setting.cluster.nodes[0].query("SHOW DATABASES LIKE 'sbtest%'") == []


def books(node):
    """What must agree after any rounds of orders.lua: numbers of orders, money, and lines of orders."""
    return [
        node.query(
            "SELECT COUNT(*) FROM sbtest.district JOIN (SELECT w, d, COUNT(*) n FROM sbtest.orders GROUP BY w, d) o "
            "USING (w, d) WHERE next_order <> n + 1"
        ),
        node.query(
            "SELECT COUNT(*) FROM sbtest.order_line LEFT JOIN sbtest.orders USING (w, d, number) WHERE c IS NULL"
        ),
    ]


def test_a_script_with_modules_options_and_files_runs_unchanged(setting, said):
    """Its options may have the names of ours; conflicts are retried, cancelled orders are rolled back by design."""
    node = setting.cluster.nodes[0]
    ORDERS.prepare(setting)
    ((before,),) = node.query("SELECT SUM(balance) FROM sbtest.customer")
    done = ORDERS.run(setting)
    total = done.ledger.total

    assert sorted(ORDERS.tables) == sorted(
        f"sbtest.{name}" for name in ("customer", "district", "order_line", "orders", "stock", "warehouse")
    )
    assert total.committed > total.rolled_back > 0
    assert total.unknown == 0
    assert total.failed <= ORDERS.threads  # a conflict at the end of the round is not retried
    assert books(node) == [[(0,)], [(0,)]]
    ((after,),) = node.query("SELECT SUM(balance) FROM sbtest.customer")
    assert node.query("SELECT SUM(paid) FROM sbtest.warehouse") == [(before - after,)]
    assert 0 < done.commits < total.committed  # the status of a customer commits nothing
    assert node.query(
        "SELECT COUNT(*) > 0 FROM sbtest.orders WHERE note REGEXP '^(red|green|blue) [0-9]{3}-[a-z]{3}$'"
    ) == [(1,)]
    assert said == ["script orders t4 rollbacks=10: prepare of " + str(SCRIPTS / "orders.lua")]


def test_a_second_prepare_finds_the_tables(setting, said):
    """Other rates and lengths share them; other options and other threads have their own."""
    ORDERS.prepare(setting)
    ORDERS.at_rate(50).with_seconds(1).prepare(setting)
    assert len(said) == 1

    dataclasses.replace(ORDERS, options={"scale": 2}).prepare(setting)
    assert len(said) == 2
    assert setting.cluster.nodes[0].query("SELECT COUNT(*) FROM sbtest.warehouse") == [(2,)]


def test_prepare_makes_the_same_rows_each_time(setting):
    """Its random values depend on nothing else."""
    node, sums = setting.cluster.nodes[0], []
    for _ in range(2):
        ORDERS.populate(setting)
        sums.append(node.query(f"CHECKSUM TABLE {', '.join(ORDERS.tables)}"))
        ORDERS.clean(setting)

    assert sums[0] == sums[1]


def of_block(setting, load, number, rate=None):
    """What the connections of a load send in a block, on fresh tables."""
    load.populate(setting)
    node, one = setting.cluster.nodes[0], dataclasses.replace(setting, block=number)
    return sent(node, lambda: load.at_rate(rate).run(one))


@pytest.mark.parametrize(
    "load", [dataclasses.replace(ORDERS, threads=1), bundled("oltp_read_only"), bundled("oltp_update_index")], ids=str
)
def test_all_variants_of_a_block_get_the_same_transactions(setting, load):
    """sysbench.rand, math.random and sb_rand alike, at any rate; another block gets others."""
    third, again, fourth = (of_block(setting, load, *which) for which in ((3,), (3, 200), (4,)))

    assert len(third) == load.threads
    assert all(one == other for one, other in firsts(third, again))
    assert all(one != other for one, other in firsts(third, fourth))


def test_several_load_hosts_send_what_one_sends(setting, others):
    """Each terminal has its number over all hosts as sysbench.tid, and the transactions that it has on one host."""
    load = dataclasses.replace(bundled("oltp_read_only"), threads=5)
    alone = of_block(setting, load, 0)
    divided = of_block(dataclasses.replace(setting, others=others), load, 0)

    assert len(alone) == len(divided) == 5
    shortest = min(20, *map(len, (*alone, *divided)))  # on a busy machine a terminal has sent a transaction or two
    assert shortest > 10
    assert sorted(one[:shortest] for one in alone) == sorted(one[:shortest] for one in divided)


NUMBERS = """
ffi.cdef("void sb_counter_inc(int, sb_counter_type);")
sysbench.cmdline.options = {}
local mine = sysbench.tid -- at load
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE seen (at_load INT, tid INT, id INT, threads INT, n INT AUTO_INCREMENT PRIMARY KEY)")
end
function thread_init(id)
   con = sysbench.sql.driver():connect()
   con:query(("INSERT INTO seen VALUES (%d, %d, %d, %d, NULL)"):format(mine, sysbench.tid, id, sysbench.opt.threads))
end
function event(id)
   assert(id == mine and thread_id == mine)
   con:query("SELECT 1")
   ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_OTHER)
end
"""


def test_the_number_of_a_thread_is_that_of_its_terminal(setting, others, script):
    """When the script is loaded and later, on each load host; the number of threads is that of all hosts."""
    load = script(NUMBERS, threads=5)
    load.prepare(setting)
    done = load.run(dataclasses.replace(setting, others=others))
    rows = setting.cluster.nodes[0].query("SELECT at_load, tid, id, threads FROM sbtest.seen ORDER BY id")

    assert rows == [(number, number, number, 5) for number in range(5)]
    assert done.commits == 5
    assert len(done.load_hosts) == 3


def test_a_lost_connection_is_made_again_with_thread_init(setting, script):
    """The prepared statements of the script belong to the new connection."""
    node = setting.cluster.nodes[0]
    load = script(NUMBERS, threads=2, seconds=3.0)
    load.prepare(setting)
    before = selects(node)
    # An error in thread_init itself ends the round, so events have begun.
    kill = when(lambda: [] if selects(node) > before + 20 else ["no events"], "the load", lambda: kill_all(node))
    done = load.run(setting)
    kill.join()

    assert done.good > 100
    assert done.ledger.total.failed <= 2  # at the end of the round
    assert node.query("SELECT id, COUNT(*) FROM sbtest.seen GROUP BY id") == [(0, 2), (1, 2)]


def selects(node):
    """The number of SELECT statements since the start of the server; two of them at most come from a look here."""
    return int(node.query("SHOW GLOBAL STATUS LIKE 'Com_select'")[0][1])


def connections(node):
    """The connections of the load."""
    return [one for (one,) in node.query(f"SELECT id FROM information_schema.processlist WHERE user = '{LOAD}'")]


def kill_all(node):
    """End every connection of the load; one may have ended meanwhile."""
    for one in connections(node):
        with contextlib.suppress(SQLError):
            node.query(f"KILL {one}")


HOT = """
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE hot (id INT PRIMARY KEY, n INT NOT NULL)")
   con:query("INSERT INTO hot VALUES (1, 0), (2, 0)")
   con:query("CREATE TABLE hooks (id INT AUTO_INCREMENT PRIMARY KEY, number INT)")
end
function thread_init() con = sysbench.sql.driver():connect() end
function event(id)
   local a = sysbench.rand.uniform(1, 2)
   con:query("BEGIN")
   con:query("UPDATE hot SET n = n + 1 WHERE id = " .. a)
   con:query("UPDATE hot SET n = n + 1 WHERE id = " .. 3 - a)
   con:query("COMMIT")
end
function sysbench.hooks.before_restart_event(problem)
   con:query("INSERT INTO hooks (number) VALUES (" .. problem.sql_errno .. ")")
end
"""


def test_a_conflict_is_tried_again_after_the_hook_of_the_script(setting, script):
    """before_restart_event sees each error, and nothing is counted twice."""
    node, load = setting.cluster.nodes[0], script(HOT, threads=4, seconds=0.5)
    load.prepare(setting)
    done = load.run(setting)
    total = done.ledger.total

    assert done.ledger.errors[1213, "node1"] > 0
    assert max(total.attempts) > 1
    assert node.query("SELECT n FROM sbtest.hot") == [(total.committed,)] * 2
    retries = sum(done.ledger.errors.values()) - total.failed  # at the end of the round there is no time for more
    assert node.query("SELECT number, COUNT(*) FROM sbtest.hooks GROUP BY number") == [(1213, retries)]
    assert done.commits == total.committed + retries


IGNORING = """
function prepare()
   sysbench.sql.driver():connect():query("CREATE TABLE small (id INT PRIMARY KEY)")
end
function thread_init() con = sysbench.sql.driver():connect() end
function event(id) con:query("INSERT INTO small VALUES (" .. sysbench.rand.uniform(1, 10) .. ")") end
function thread_done() con:query("DELETE FROM small") end
"""
HOOK = "function sysbench.hooks.sql_error_ignorable(problem) return problem.sql_errno == 1062 end"


@pytest.mark.parametrize(
    ("text", "options"),
    [(IGNORING + HOOK, {}), (IGNORING, {"mysql-ignore-errors": "1062,1146"})],
    ids=["hook", "option"],
)
def test_errors_that_the_script_ignores_are_tried_again(setting, script, text, options):
    """As in sysbench, by its hook or by its option; the event counts as failed after its last attempt."""
    load = script(text, options=options, attempts=2)
    load.prepare(setting)
    done = load.run(setting)

    assert done.good <= 20  # the thread that ends first empties the table under the other one
    assert done.ledger.errors[1062, "node1"] > done.ledger.total.failed > 0
    assert set(done.ledger.total.attempts) <= {1, 2}
    assert setting.cluster.nodes[0].query("SELECT COUNT(*) FROM sbtest.small") == [(0,)]


def test_other_errors_end_the_round_with_the_statement(setting, script):
    """The message has the number, the node and the text of the statement."""
    load = script(IGNORING)
    load.prepare(setting)
    with pytest.raises(WorkloadError) as caught:
        load.run(setting)

    assert str(caught.value).startswith(
        "script mine t2 ended early on standalone1: error 1062 on node1 at INSERT INTO small VALUES ("
    )


def test_an_error_of_the_script_has_its_file_and_line(setting, script):
    """Relative to what the test wrote, also in a module."""
    load = script("function event() local nothing; return nothing.field end", threads=1)
    load.prepare(setting)
    with pytest.raises(WorkloadError) as caught:
        load.run(setting)

    assert f"{load.script}:1: attempt to index local 'nothing' (a nil value)" in str(caught.value)


def test_an_event_of_several_commits_says_once_that_it_repeats_them(setting, script, said):
    """With one attempt it counts as failed instead."""
    twice = HOT.replace('con:query("BEGIN")', 'con:query("INSERT INTO hooks (number) VALUES (0)") con:query("BEGIN")')
    load = script(twice, threads=4)
    load.prepare(setting)
    for _ in range(2):
        done = load.run(setting)
    once = dataclasses.replace(load, attempts=1).run(setting)

    assert done.ledger.errors[1213, "node1"] > 0
    warned = [line for line in said if "repeated committed work" in line]
    assert len(warned) == 1
    assert warned[0].startswith("script mine t4: an event commits more than once, so ")
    assert once.ledger.total.failed == sum(once.ledger.errors.values()) > 0


def test_a_script_that_only_reads_may_say_so(setting, script):
    """Then it may not write."""
    load = script(HOT, writes=False)
    load.prepare(setting)

    with pytest.raises(WorkloadError, match=r"^script mine t2 has writes=False, and its events made \d+ commits: set"):
        load.run(setting)


COUNTER = LuaScript(SCRIPTS / "counter.lua", threads=3, seconds=1.0)


def test_unique_numbers_are_unique_in_all_rounds(setting, others):
    """Over threads, load hosts and rounds; after a restoring reset they begin again."""
    node = setting.cluster.nodes[0]
    COUNTER.prepare(setting)
    runs = [COUNTER.run(dataclasses.replace(setting, others=some)) for some in ((), others, ())]
    ((rows, least, most),) = node.query("SELECT COUNT(*), MIN(id), MAX(id) FROM sbtest.numbers")

    assert rows == sum(done.good for done in runs)
    assert {number for done in runs for number, _ in done.ledger.errors} == set()
    assert 0 <= least < 2**28
    assert 2**32 - 2**28 < most < 2**32
    assert [done.commits for done in runs] == [2 * done.good for done in runs]


def test_a_restoring_reset_brings_the_rows_of_prepare_back(setting):
    """And the round after it gets the same unique numbers."""
    load, node = dataclasses.replace(COUNTER, restore=True, threads=1), setting.cluster.nodes[0]
    load.prepare(setting)
    first = of_rows(node, lambda: load.run(setting))
    load.reset(setting)
    assert node.query("SELECT * FROM sbtest.counter") == [(1, 0)]
    assert node.query("SELECT COUNT(*) FROM sbtest.numbers") == [(0,)]

    again = of_rows(node, lambda: load.run(setting))
    assert len(first & again) == min(len(first), len(again)) > 10
    load.clean(setting)
    assert node.query("SHOW DATABASES LIKE 'sbtest%'") == []


def of_rows(node, deed):
    """The unique numbers that are there after something."""
    deed()
    return {number for (number,) in node.query("SELECT id FROM sbtest.numbers")}


def test_a_script_of_the_old_interface_runs_unchanged(setting):
    """Its options are global variables, and its connection belongs to the thread."""
    load = LuaScript(SCRIPTS / "old.lua", options={"old_rows": 20}, threads=2, seconds=1.0)
    load.prepare(setting)
    node = setting.cluster.nodes[0]
    before = node.query("SELECT COUNT(*), SUM(k) FROM sbtest.old")
    done = load.run(setting)

    assert load.tables == ("sbtest.old",)
    assert done.commits == done.good > 10
    ((count, total),) = node.query("SELECT COUNT(*), SUM(k) FROM sbtest.old")
    assert count == before[0][0] == 20
    assert done.good <= total - before[0][1] <= 9 * done.good
    load.clean(setting)


def test_a_script_may_have_several_connections(setting, script):
    """Each conflict rolls all of them back, and a lost connection makes them anew."""
    text = HOT.replace(
        "con = sysbench.sql.driver():connect() end",
        "local drv = sysbench.sql.driver() con, other = drv:connect(), drv:connect() end",
        1,
    ).replace('con:query("COMMIT")', 'other:query("SELECT 1") con:query("COMMIT")')
    load, node = script(text, threads=4, seconds=3.0), setting.cluster.nodes[0]
    load.prepare(setting)
    before = selects(node)
    kill = when(lambda: [] if selects(node) > before + 20 else ["no events"], "the load", lambda: kill_all(node))
    done = load.run(setting)
    kill.join()
    total = done.ledger.total

    assert total.failed <= 4  # at the end of the round
    assert total.committed <= node.query("SELECT n FROM sbtest.hot")[0][0] <= total.committed + total.unknown
    wait.until(lambda: [f"{one}" for one in connections(node)], "the end of its connections", seconds=60)


def test_a_script_may_connect_in_each_event(setting, script):
    """Then its connections are part of the work."""
    text = """
    function event()
       local con = sysbench.sql.driver():connect()
       con:query("SELECT 1")
       con:disconnect()
    end
    """
    load, node = script(text, threads=2, writes=False), setting.cluster.nodes[0]
    load.prepare(setting)
    before = int(node.status("connections")["connections"])
    done = load.run(setting)
    made = int(node.status("connections")["connections"]) - before

    assert done.good > 10
    assert done.good <= made <= done.good + 4
    wait.until(lambda: [f"{one}" for one in connections(node)], "the end of its connections", seconds=60)


def test_an_event_that_returns_true_ends_its_thread(setting, script):
    """As in sysbench."""
    load = script("n = 0 function event() n = n + 1 return n == 5 end", threads=3, writes=False, seconds=5.0)
    load.prepare(setting)
    done = load.run(setting)

    assert done.good == 15
    assert done.seconds < 4


def test_the_isolation_level_is_that_of_the_sessions(setting, script):
    """It is set before thread_init."""
    text = """
    function thread_init()
       con = sysbench.sql.driver():connect()
       assert(con:query_row("SELECT @@tx_isolation") == "SERIALIZABLE")
    end
    function event() con:query("SELECT 1") end
    """
    load = script(text, isolation="SERIALIZABLE", writes=False)
    load.prepare(setting)

    assert load.run(setting).good > 0


def test_a_data_set_starts_a_cluster_with_the_tables(setting, provisioner, mariadb, client, tmp_path, monkeypatch):
    """Equal files and options share it; the script's prepare does not run again."""
    monkeypatch.setattr(datasets, "datasets_directory", lambda: tmp_path / "stored")
    template = datasets.dataset_template(ORDERS, mariadb, provisioner, client, {})
    cluster = bring_up(ClusterSpec("standalone"), mariadb, provisioner, options={}, start=template)
    lines = []
    own = Setting(cluster, client, mariadb, "quick", lines.append)
    try:
        ORDERS.prepare(own)
        done = ORDERS.run(own)

        assert lines == []
        assert done.good > 0
        assert books(cluster.nodes[0]) == [[(0,)], [(0,)]]
    finally:
        cluster.close()
        provisioner.give_back(cluster.hosts)
