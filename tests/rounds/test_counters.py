"""Counters of a round: deltas over nodes, states at their largest, values per commit."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds import counters
from pytest_dbcluster.rounds.counters import Nature
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.testbed import sampler
from tests.support.facts import missing

BEFORE = [
    {"innodb_data_fsyncs": 10.0, "wsrep_flow_control_paused_ns": 0.0, "wsrep_local_recv_queue_max": 3.0},
    {"innodb_data_fsyncs": 20.0, "wsrep_flow_control_paused_ns": 5e8, "wsrep_local_recv_queue_max": 4.0},
]
AFTER = [
    {"innodb_data_fsyncs": 15.0, "wsrep_flow_control_paused_ns": 1e9, "wsrep_local_recv_queue_max": 7.0},
    {"innodb_data_fsyncs": 40.0, "wsrep_flow_control_paused_ns": 1.5e9, "wsrep_local_recv_queue_max": 5.0},
]


def test_deltas_are_summed_over_nodes():
    """What a status had before the round does not count."""
    found = counters.deltas(BEFORE, AFTER, seconds=2.0, commits=None)

    assert found["fsyncs"] == 25.0
    assert found["paused_ns"] == 2e9


def test_what_every_member_counts_is_counted_once():
    """A group of three that saw one conflict had one; a member that came late has seen fewer."""
    before = [{"count_conflicts_detected": 1.0}, {"count_conflicts_detected": 1.0}, {"count_conflicts_detected": 0.0}]
    after = [{"count_conflicts_detected": 3.0}, {"count_conflicts_detected": 3.0}, {"count_conflicts_detected": 1.0}]
    found = counters.deltas(before, after, seconds=1.0, commits=4)

    assert (found["conflicts"], found["conflicts_per_commit"]) == (2, 0.5)


def test_states_are_the_largest_after_the_round():
    """A queue on one node is what slows all of them down."""
    assert counters.deltas(BEFORE, AFTER, seconds=2.0, commits=None)["recv_queue_max"] == 7.0


def test_the_paused_share_is_of_all_nodes_time():
    """Two nodes, two seconds, two seconds paused in all: a half."""
    assert counters.deltas(BEFORE, AFTER, seconds=2.0, commits=None)["paused_share"] == 0.5


def test_a_counter_has_other_names_elsewhere():
    """The vendors count the same under names of their own; the first that every node has is taken."""
    old = [{"rpl_semi_sync_master_yes_tx": 1.0}, {"rpl_semi_sync_master_yes_tx": 0.0}]
    new = [{"rpl_semi_sync_source_yes_tx": 5.0}, {"rpl_semi_sync_source_yes_tx": 0.0}]
    none = [{"rpl_semi_sync_master_yes_tx": 0.0}, {"rpl_semi_sync_source_yes_tx": 0.0}]
    states = [{"trx_rseg_history_len": 7.0}, {"innodb_history_list_length": 8.0}]

    assert counters.deltas(none, old, seconds=1.0, commits=None) == {}
    assert counters.deltas(old, old, seconds=1.0, commits=None) == {"semisync_acknowledged": 0.0}
    assert counters.deltas(new, new, seconds=1.0, commits=None) == {"semisync_acknowledged": 0.0}
    assert counters.deltas([], states, seconds=1.0, commits=None) == {"history_list": 8.0}


def test_values_per_commit_need_commits():
    """A load that writes nothing has none."""
    assert counters.deltas(BEFORE, AFTER, seconds=2.0, commits=5)["fsyncs_per_commit"] == 5.0
    assert "fsyncs_per_commit" not in counters.deltas(BEFORE, AFTER, seconds=2.0, commits=None)


def test_what_one_node_lacks_is_no_counter():
    """A sum over some of the nodes would be wrong."""
    assert "fsyncs" not in counters.deltas(BEFORE, [AFTER[0], {}], seconds=2.0, commits=None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fsync", "unknown counter 'fsync'; known: "),
        ("fsyncs_per_commit", "counter 'fsyncs_per_commit': a load commits nothing, so there is no value per commit"),
        ("paused_ns", "counter 'paused_ns': these servers do not have wsrep_flow_control_paused_ns"),
        ("appliers", "counter 'appliers': these servers do not have wsrep_applier_thread_count"),
        ("deadlocks", "counter 'deadlocks': these servers do not have innodb_deadlocks or lock_deadlocks"),
    ],
)
def test_a_counter_that_is_not_there_says_why(name, words):
    """Unknown, without commits, or not kept by these servers."""
    with pytest.raises(ConfigError) as caught:
        counters.value({}, name, load="a load")

    assert str(caught.value).startswith(words)


def test_who_has_no_semi_sync_has_waited_for_nobody():
    """MySQL keeps these counts with the plugin alone; a claim compares such a server with one that waits."""
    assert counters.value({}, "semisync_waits", load="a load") == 0.0
    assert counters.value({}, "semisync_wait_us_per_commit", load="a load") == 0.0
    with pytest.raises(ConfigError, match="a load commits nothing, so there is no value per commit"):
        counters.value({"semisync_wait_us": 5.0}, "semisync_wait_us_per_commit", load="a load")


def test_real_servers_have_the_counters_of_the_suites(galera2):
    """Read from each node; a write on one is seen in them."""
    before = sampler.read_counters(galera2.nodes)
    galera2.nodes[0].query("CREATE DATABASE IF NOT EXISTS counted")
    galera2.settle(10)
    galera2.nodes[1].query("SET STATEMENT wsrep_sync_wait = 1 FOR SELECT COUNT(*) FROM mysql.db")
    found = counters.deltas(before, sampler.read_counters(galera2.nodes), seconds=1.0, commits=1)

    assert found["replicated"] >= 1
    assert found["causal_reads"] >= 1
    assert found["received"] >= 1
    assert found["fsyncs"] > 0
    for name in ("cert_deps_distance", "bf_aborts", "recv_queue_max", "log_waits", "fsyncs_per_commit", "appliers"):
        assert name in found


@pytest.fixture
def counted(briefly):
    """Servers with a table, and their counters while twenty rows are committed in it one by one."""

    def server(*release, shape=("standalone", 1), **options):
        cluster = briefly(*shape, *release, **options)
        nodes, node = cluster.nodes, cluster.nodes[0]
        node.query("CREATE DATABASE counted")
        node.query("CREATE TABLE counted.table_of_it (id INT AUTO_INCREMENT PRIMARY KEY)")

        def counted(**settings):
            for name, setting in settings.items():
                node.query(f"SET GLOBAL {name} = {setting}")
            before = sampler.read_counters(nodes)
            for _ in range(20):
                node.query("INSERT INTO counted.table_of_it VALUES ()")
            assert cluster.settle(60)
            return counters.deltas(before, sampler.read_counters(nodes), seconds=1.0, commits=20)

        return counted

    return server


def test_mysql_counts_the_fsyncs_of_log_and_binlog_apart(mysql, counted):
    """Each falls to nothing when its own durability is given up, and not with the other's."""
    server = counted(mysql)
    durable = server()
    lazy_log = server(innodb_flush_log_at_trx_commit=2)
    lazy_binlog = server(innodb_flush_log_at_trx_commit=1, sync_binlog=0)

    assert durable["log_fsyncs"] >= 20 <= lazy_binlog["log_fsyncs"]
    assert durable["binlog_fsyncs"] == 20 == lazy_log["binlog_fsyncs"]
    assert lazy_log["log_fsyncs"] < 10
    assert lazy_binlog["binlog_fsyncs"] == 0
    assert durable["binlog_fsyncs_per_commit"] == 1.0
    for name in ("deadlocks", "history_list", "checkpoint_age", "dirty_pages", "row_lock_waits", "log_waits"):
        assert name in durable
    for name in ("certified", "semisync_acknowledged", "paused_share"):  # without group, plugin or Galera
        assert name not in durable


def test_a_mysql_that_keeps_no_account_has_fewer_counters(mysql, counted):
    """With performance_schema=OFF what only that tells is missing, and the rest is there."""
    found = counted(mysql, performance_schema="OFF")()

    assert "binlog_fsyncs" not in found
    assert found["log_fsyncs"] >= 20


def test_mariadb_counts_the_groups_of_its_binlog(counted):
    """Commits that went to the binlog together are one group: here each is alone."""
    assert counted(log_bin="binlog")()["binlog_groups"] == 20


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_semi_sync_counts_what_was_acknowledged(vendor, request, counted):
    """Under the same names on both vendors: each commit waited and was acknowledged."""
    found = counted(request.getfixturevalue(vendor), shape=("semisync", 2))()

    assert found["semisync_acknowledged"] == 20
    assert found["semisync_unacknowledged"] == 0
    assert found["semisync_waits"] <= 20
    assert found["semisync_wait_us_per_commit"] == found["semisync_wait_us"] / 20


def test_a_group_counts_what_it_certified(mysql, counted):
    """Each of its two members certifies every transaction, and it counts once; one sent it, the other received it."""
    found = counted(mysql, shape=("group_replication", 2))()

    assert (found["certified"], found["replicated"], found["received"]) == (20, 20, 20)
    assert (found["conflicts"], found["rolled_back"], found["cert_queue"]) == (0, 0, 0)


@pytest.mark.parametrize("name", ["abort_share", "retries", "retries_per_commit"])
def test_what_a_ledger_counts_takes_a_ledger(name):
    """The error says what the load lacks; the servers have nothing to do with it."""
    with pytest.raises(ConfigError) as caught:
        counters.value({}, name, load="mysqlslap write c50")
    assert missing(caught.value, f"counter {name!r}: ", "mysqlslap write c50", "no ledger") == []


def test_retries_per_commit_take_commits():
    """A load that reads only has retries, and none of them by commit."""
    ledger = Ledger({"x": LedgerEntry({1: 10, 3: 1}, committed=11)})
    found = counters.deltas([{}], [{}], seconds=1.0, commits=None, ledger=ledger)

    assert found["retries"] == 2.0
    with pytest.raises(ConfigError, match="commits nothing, so there is no value per commit"):
        counters.value(found, "retries_per_commit", load="sysbench")


def test_every_counter_has_a_nature():
    """A status that is read after the round is no count of the round, and every other counter is one."""
    read_after = (Nature.GAUGE, Nature.MAXIMUM, Nature.AVERAGE)

    assert sorted(counters.NATURES) == sorted(counters.NAMES)
    assert {name for name, nature in counters.NATURES.items() if nature in read_after} == set(counters.STATES)
    for per, name in counters.PER_COMMIT.items():
        assert counters.NATURES[per] is counters.NATURES[name]


@pytest.mark.parametrize("name", counters.NAMES)
def test_statuses_of_a_server_are_not_compared_across_clusters(name):
    """The reason says what the value is; what it advises is counted in each round."""
    why = counters.not_across(name)

    assert bool(why) is (name in counters.STATES)
    if why:
        assert counters.NATURES[name].value in why
        assert all(other in why and not counters.not_across(other) for other in counters.INSTEAD.get(name, ()))
        assert "variants that share a cluster" in why


def test_every_counter_has_a_meaning():
    """One sentence each; a counter per commit has that of its counter."""
    assert set(counters.MEANINGS) == set(counters.NAMES)
    assert [name for name, text in counters.MEANINGS.items() if not text.endswith(".") or "\n" in text] == []
    assert counters.MEANINGS["fsyncs_per_commit"].startswith(counters.MEANINGS["fsyncs"].rstrip("."))
