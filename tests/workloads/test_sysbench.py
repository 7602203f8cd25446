"""sysbench: its scripts on real servers, its parameters, and tables or programs that are not as they were."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, NodeDied, WorkloadError
from pytest_dbcluster.workloads.sysbench import ONE_TABLE, SCHEMA, SCRIPTS, SysBench
from pytest_dbcluster.workloads.workload import Setting
from tests.support.facts import missing

SMALL = SysBench(table_count=2, size=500, threads=4, seconds=0.1)


@pytest.fixture
def setting(standalone, client, said):
    """The lone server; the load's schema is dropped afterwards."""
    yield setting_of(standalone, client, said)
    SMALL.clean(setting_of(standalone, client, said))


def setting_of(cluster, client, said):
    """What a load may use."""
    return Setting(cluster, client, cluster.nodes[0].release, "quick", said.append)


def rows(setting, load):
    """How many rows each table has, and its ends."""
    node = setting.cluster.nodes[0]
    return [node.query(f"SELECT COUNT(*), MIN(id), MAX(id) FROM {table}")[0] for table in load.tables]


def of(script, **changed):
    """A small load of a script."""
    tables = 1 if script in ONE_TABLE else 2
    return dataclasses.replace(SMALL, script=script, table_count=tables, **changed)


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_runs(setting, script):
    """As sysbench ships it, with a ledger; what it commits is counted where it writes."""
    load = of(script)
    load.prepare(setting)
    outcome = load.run(setting)

    assert outcome.good > 0
    assert list(outcome.ledger.entries) == [script]
    assert outcome.commits == (outcome.ledger.total.committed if load.writes else None)
    assert outcome.client_seconds > 0
    assert 0 < outcome.busiest <= 1


@pytest.mark.parametrize(("script", "prepared"), [("oltp_read_write", True), ("oltp_insert", False)])
def test_it_reaches_the_other_vendor(mysql_setting, script, prepared):
    """MySQL's accounts have another kind of password, which sysbench's client library has a plugin for."""
    load = of(script, prepared=prepared)
    load.prepare(mysql_setting)
    outcome = load.run(mysql_setting)
    load.reset(mysql_setting)

    assert outcome.good > 0
    assert rows(mysql_setting, load) == [(500, 1, 500)] * 2


@pytest.fixture(scope="module")
def mysql_setting(bring, mysql, client):
    """A lone server of MySQL."""
    cluster = bring("standalone", 1, mysql)
    yield setting_of(cluster, client, [])
    cluster.close()


def test_inserts_go_beyond_the_preload_and_a_reset_removes_them(setting):
    """As many rows more as were committed."""
    load = of("oltp_insert")
    load.prepare(setting)
    outcome = load.run(setting)
    grown = rows(setting, load)
    load.reset(setting)

    assert sum(count for count, _, _ in grown) == 1000 + outcome.good
    assert {first for _, first, _ in grown} == {1}
    assert rows(setting, load) == [(500, 1, 500)] * 2
    assert load.run(setting).ledger.errors == {}  # the same ids once more


def test_a_reset_brings_deleted_rows_back(setting):
    """With values of the kind that sysbench makes."""
    load, node = of("oltp_delete"), setting.cluster.nodes[0]
    load.prepare(setting)
    load.run(setting)
    left = rows(setting, load)
    node.query(f"DELETE FROM {load.tables[0]}")
    load.reset(setting)

    assert all(0 < count < 500 for count, _, _ in left)
    assert rows(setting, load) == [(500, 1, 500)] * 2
    digits = "NOT RLIKE '^([0-9]{11}-){%d}[0-9]{11}$'"
    odd = f"k NOT BETWEEN 1 AND 500 OR c {digits % 9} OR pad {digits % 4}"
    assert node.query(f"SELECT COUNT(*) FROM {load.tables[0]} WHERE {odd}") == [(0,)]
    assert node.query(f"SELECT COUNT(DISTINCT c), COUNT(DISTINCT pad) FROM {load.tables[0]}") == [(500, 500)]


def test_more_rows_than_a_statement_looks_at_come_back(setting):
    """The last ones of each hundred thousand, and the first of the next."""
    load, node = SysBench("oltp_delete", size=100_002, threads=2, seconds=0.05), setting.cluster.nodes[0]
    load.prepare(setting)
    node.query(f"DELETE FROM {load.tables[0]} WHERE id > 99998")
    load.reset(setting)

    assert rows(setting, load) == [(100_002, 1, 100_002)]


def test_without_transactions_each_statement_commits(setting):
    """Four writing statements of an event, which is not tried again: some of them would be there twice."""
    load = of("oltp_read_write", skip_trx=True)
    load.prepare(setting)
    outcome = load.run(setting)
    load.reset(setting)

    assert outcome.commits == 4 * outcome.ledger.total.committed > 0
    assert {number for number, _ in outcome.ledger.errors} <= {1062, 1213}
    assert set(outcome.ledger.total.attempts) == {1}
    assert rows(setting, load) == [(500, 1, 500)] * 2


def test_a_second_prepare_finds_the_tables(setting, said):
    """A load of another scale makes its own."""
    SMALL.prepare(setting)
    SMALL.at_rate(50).prepare(setting)
    of("oltp_insert", threads=1).prepare(setting)
    assert len(said) == 1

    other = dataclasses.replace(SMALL, size=700)
    other.prepare(setting)
    _, line = said
    assert missing(line, "sysbench oltp_read_write t4: ", "2 x 700 rows") == []
    assert rows(setting, other) == [(700, 1, 700)] * 2


def test_tables_of_another_version_are_refused(setting):
    """What to do is said; nothing is dropped unasked."""
    SMALL.prepare(setting)
    setting.cluster.nodes[0].query(f"UPDATE {SCHEMA}.dbcluster_schema SET version = 0")

    with pytest.raises(WorkloadError) as caught:
        SMALL.prepare(setting)
    for fact in (f"schema {SCHEMA} on node1", "version 0", "needs version 1", f"DROP DATABASE {SCHEMA}"):
        assert fact in str(caught.value)
    assert rows(setting, SMALL) == [(500, 1, 500)] * 2


@pytest.mark.parametrize("broken", ["DROP TABLE {0}.sbtest2", "DROP TABLE {0}.dbcluster_schema"])
def test_what_is_not_whole_is_made_anew(setting, said, broken):
    """A table that vanished, or a fill that did not come to its end."""
    SMALL.prepare(setting)
    setting.cluster.nodes[0].query(broken.format(SCHEMA))
    SMALL.prepare(setting)

    assert len(said) == 2
    assert rows(setting, SMALL) == [(500, 1, 500)] * 2


def test_the_isolation_level_is_that_of_the_sessions(setting):
    """Each connection says it before anything else."""
    node, load = setting.cluster.nodes[0], of("oltp_point_select", isolation="SERIALIZABLE", threads=1)
    load.prepare(setting)
    node.query("SET GLOBAL log_output = 'TABLE'")
    node.query("TRUNCATE mysql.general_log")
    node.query("SET GLOBAL general_log = ON")
    load.run(setting)
    node.query("SET GLOBAL general_log = OFF")
    node.query("SET GLOBAL log_output = 'FILE'")
    sent = node.query(
        "SELECT argument FROM mysql.general_log WHERE user_host LIKE 'dbcluster_load%' AND argument LIKE 'S%'"
    )

    assert sent[1] == ("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",)


def once_it_runs(act):
    """A thread that calls ``act`` with the process of the tool, once there is one."""

    def look():
        tools = []

        def missing_tool():
            with contextlib.suppress(psutil.NoSuchProcess):
                tools.extend(one for one in psutil.Process().children() if "oltp.lua" in str(one.cmdline()))
            return [] if tools else ["no process of the tool"]

        wait.until(missing_tool, "the tool runs", seconds=60)
        act(tools[0])

    thread = threading.Thread(target=look)
    thread.start()
    return thread


def test_a_killed_tool_is_said_to_have_been_killed(setting):
    """Its servers live, so it is the load that ended."""
    load = of("oltp_read_only", seconds=20)
    load.prepare(setting)
    thread = once_it_runs(psutil.Process.kill)

    with pytest.raises(WorkloadError) as caught:
        load.run(setting)
    thread.join()
    assert missing(caught.value, "sysbench oltp_read_only t4", "SIGKILL on standalone1", "printed nothing") == []


def test_a_server_that_dies_in_a_round_is_the_cause(briefly, client, said):
    """Not the tool's lost connections are the message, but the node and the last lines of its error log."""
    cluster = briefly("standalone")
    setting = setting_of(cluster, client, said)
    load = of("oltp_read_write", seconds=20)
    load.prepare(setting)
    thread = once_it_runs(lambda _: os.kill(cluster.nodes[0].process.pid, signal.SIGKILL))

    with pytest.raises(NodeDied) as caught:
        load.run(setting)
    thread.join()
    assert str(caught.value).startswith("node node1 was ended by SIGKILL; the last lines of its error log (")


def test_a_share_needs_a_number_first(setting):
    """Measuring what the variants can do is not the load's."""
    with pytest.raises(ConfigError, match="measure the capacity of the variants first"):
        dataclasses.replace(SMALL, rate="70 %").run(setting)


@pytest.mark.parametrize(
    ("field", "given", "words"),
    [
        ("script", "oltp_readwrite", "unknown sysbench script 'oltp_readwrite'; known: oltp_delete, oltp_insert, "),
        ("to", "raeder", "unknown sysbench to 'raeder'; known: all, reader, writer; did you mean reader?"),
        (
            "distribution",
            "zipfian",
            "unknown sysbench distribution 'zipfian'; known: gaussian, pareto, special, uniform",
        ),
        ("isolation", "SNAPSHOT", "unknown sysbench isolation 'SNAPSHOT'; known: READ UNCOMMITTED, READ COMMITTED, "),
        ("size", 0, "sysbench size=0: it accepts 1 or more"),
        ("table_count", 0, "sysbench table_count=0: it accepts 1 or more"),
        ("threads", 0, "sysbench threads=0: it accepts 1 or more"),
        ("attempts", 0, "sysbench attempts=0: it accepts 1 or more"),
        ("point_selects", -1, "sysbench point_selects=-1: it accepts 0 or more"),
        ("seconds", 0, "sysbench seconds=0: it accepts a finite number of seconds above 0"),
        ("threads", "4", "sysbench threads='4': it accepts a whole number, 1 or more"),
        ("threads", 2.5, "sysbench threads=2.5: it accepts a whole number, 1 or more"),
        ("table_count", True, "sysbench table_count=True: it accepts a whole number, 1 or more"),
        ("index_updates", "1", "sysbench index_updates='1': it accepts a whole number, 0 or more"),
        ("seed", "1", "sysbench seed='1': it accepts a whole number, 0 or more"),
        ("seconds", "2", "sysbench seconds='2': it accepts a number of seconds above 0"),
        ("rate", "fast", "rate='fast': it accepts operations a second above 0, or a share "),
        ("rate", "170 %", "rate='170 %': it accepts operations a second above 0, or a share "),
        ("rate", -5, "rate=-5: it accepts operations a second above 0, or a share "),
    ],
)
def test_bad_input_is_refused_before_anything_starts(field, given, words):
    """A closed vocabulary lists itself, a number says from where on it is taken."""
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(SMALL, **{field: given})

    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("script", ["oltp_read_write", "oltp_insert"])
def test_what_writes_is_refused_at_a_replica(replicated, script):
    """Before anything is made; without a place it goes to the primary."""
    with pytest.raises(ConfigError) as caught:
        SysBench(script, to="reader").prepare(Setting(replicated, None, None, "quick", print))
    for fact in (f"sysbench {script} t16 to reader", "node2 of async_replication3", "only node1", 'to="writer"'):
        assert fact in str(caught.value)


def test_scripts_of_one_table_take_no_second():
    """Sysbench itself says so, only later."""
    with pytest.raises(ConfigError, match="sysbench table_count=2: select_random_points reads one table"):
        SysBench("select_random_points", table_count=2)


def test_its_name_says_what_it_is():
    """Script, threads, pace and endpoint; the store only what the tables hold."""
    load = SysBench("oltp_write_only", threads=8, to="writer")

    assert str(load) == "sysbench oltp_write_only t8 to writer"
    assert str(load.at_rate(120)) == "sysbench oltp_write_only t8 at 120/s to writer"
    assert str(dataclasses.replace(load, rate="70 %")) == "sysbench oltp_write_only t8 at 70 % to writer"
    assert str(dataclasses.replace(load, rate=770.1202595)) == "sysbench oltp_write_only t8 at 770.1/s to writer"
    assert load.at_rate(120).at_rate(None) == load
    assert load.data_set == SysBench("oltp_insert", seed=2).data_set == "sysbench v1 1x100000"
    assert SysBench(size=5).data_set != load.data_set
    assert SysBench(table_count=8, size=1).data_scale == "8 tables of 1 row"
