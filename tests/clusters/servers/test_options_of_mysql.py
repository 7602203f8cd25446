"""Options of MySQL, checked against the list of a real server, and refused by one."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.errors import ConfigError, NodeDied
from pytest_dbcluster.spec import ClusterSpec
from tests.support.clusters import bring_up


@pytest.fixture(scope="module")
def made(mysql, provisioner):
    """The server's own list."""
    return ready_template(mysql, provisioner, {}, print)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("innodb_flush_log_at_trx_comit", "2", "did you mean innodb_flush_log_at_trx_commit?"),
        ("group_replication_consistancy", "EVENTUAL", "did you mean group_replication_consistency?"),
        ("rpl_semi_sync_source_wait_pont", "AFTER_SYNC", "did you mean rpl_semi_sync_source_wait_point?"),
        ("wsrep_slave_threads", "4", "unknown option 'wsrep_slave_threads' of mysql:9.7"),
        ("innodb_flush_log_at_trx_commit", "3", "the server accepts a number from 0 to 2"),
        ("innodb_redo_log_capacity", "1M", "the server accepts a number from 8388608 to 549755813888"),
        ("replica_parallel_workers", "0", "the server accepts a number from 1 to 1024"),
        ("innodb_adaptive_hash_index", "sometimes", "the server accepts ON or OFF"),
        ("innodb_max_dirty_pages_pct", "many", "the server accepts a number"),
        ("query_cache_size", "1M", "behaves as with 0: there is no query cache"),
    ],
)
def test_what_the_server_would_refuse_is_refused_before(made, mysql, name, value, says):
    """Names are those of the server and of its replication plugins, bounds are its own."""
    with pytest.raises(ConfigError) as caught:
        opts.fit({name: value}, made, mysql)

    assert says in str(caught.value)


def test_what_the_server_takes_passes(made, mysql):
    """Numbers with suffixes, names of a choice, a file for the binlog; what it always does is left out."""
    asked = {
        "binlog_row_image": "minimal",
        "group_replication_consistency": "BEFORE",
        "innodb_doublewrite": "DETECT_ONLY",
        "innodb_redo_log_capacity": "64M",
        "log_bin": "binlog",
        "rpl_semi_sync_source_timeout": "1000",
        "skip_replica_start": "",
    }
    always = {"binlog_transaction_dependency_tracking": "writeset", "transaction_write_set_extraction": "XXHASH64"}
    found, lines = opts.fit(asked | always, made, mysql)

    assert found == asked
    tracking, extraction = lines
    assert "binlog_transaction_dependency_tracking and behaves as with writeset" in tracking
    assert "transaction_write_set_extraction and behaves as with XXHASH64" in extraction


def test_a_choice_that_the_server_lacks_is_refused_in_its_own_words(briefly, mysql):
    """MySQL does not list its choices, so it is the start that fails: the error has the server's line."""
    with pytest.raises(NodeDied, match=r"Error while setting value 'SMALL' to 'binlog_row_image'"):
        briefly("standalone", 1, mysql, binlog_row_image="SMALL")


def test_a_value_that_the_server_rounds_is_said(mysql, provisioner):
    """The cluster starts, and one line has both values."""
    said = []
    spec = ClusterSpec("standalone")
    cluster = bring_up(spec, mysql, provisioner, options={"max_allowed_packet": "1500000"}, progress=said.append)
    cluster.close()
    provisioner.give_back(cluster.hosts)

    assert said[-1].startswith("mysql:9.7 was started with max_allowed_packet=1500000 and runs with 1499136")
