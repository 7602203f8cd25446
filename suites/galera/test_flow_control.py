"""What do flow control and causal reads cost, and what do retries inside the server save?"""

import dataclasses

import pytest

from fixtures.clusters import GALERA
from fixtures.loads import oltp, tpcc

pytestmark = pytest.mark.expected_seconds(150)

LIMIT_1000 = GALERA.with_options(wsrep_provider_options="gcs.fc_limit=1000;gcs.fc_factor=0.9").named("limit_1000")
SYNC_WAIT = GALERA.with_options(wsrep_sync_wait=1).named("sync_wait")
NO_RETRY = GALERA.with_options(wsrep_retry_autocommit=0).named("no_retry")
RETRY_10 = GALERA.with_options(wsrep_retry_autocommit=10).named("retry_10")


def test_a_longer_queue_pauses_less(measure, db_profile):
    """Flow control pauses writers while a node's queue exceeds gcs.fc_limit; a limit of 1000 is rarely exceeded."""
    default, longer = measure(tpcc(db_profile, to="all"), on=[GALERA, LIMIT_1000])

    assert longer.lower("paused_share", than=default)
    longer.against(default)


def test_reading_only_what_is_applied_costs_throughput(measure, db_profile):
    """With wsrep_sync_wait a read waits until its node has applied all earlier commits."""
    # Reads of one row: a TPC-C transaction waits once, and the rest of its work hides that.
    sync_wait, default = measure(oltp("point_select", db_profile, threads=4), on=[SYNC_WAIT, GALERA])

    assert default.beats(sync_wait)


def test_reading_only_what_is_applied_aborts_less(measure, db_profile):
    """A transaction that has waited for the commits of other nodes passes certification more often."""
    default, sync_wait = measure(tpcc(db_profile, to="all"), on=[GALERA, SYNC_WAIT])

    assert default.lower("causal_reads_per_commit", than=sync_wait)
    assert sync_wait.lower("abort_share", than=default)
    sync_wait.against(default)  # on shared cores the waits cost less than the aborts did


def test_retries_in_the_server_spare_the_client_errors(measure, db_profile):
    """The server retries an autocommit statement that fails certification."""
    # Few rows, so that writers conflict. Text protocol, because the server does not retry prepared statements.
    workload = dataclasses.replace(oltp("update_index", db_profile, to="all"), size=1000, prepared=False)
    without, with_retries = measure(workload, on=[NO_RETRY, RETRY_10])

    assert with_retries.lower("abort_share", than=without)
