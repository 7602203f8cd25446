"""What became of every transaction."""

from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry

ONE = LedgerEntry({1: 8, 3: 2}, committed=9, rolled_back=1, aborted_seconds=0.5, latencies=Histogram.of([0.01] * 10))
OTHER = LedgerEntry({1: 1, 2: 2}, committed=1, failed=1, unknown=1, latencies=Histogram.of([0.02]))


def test_ledgers_of_threads_add_up():
    """Types, attempts, outcomes, errors and latencies of two threads are those of the run."""
    both = Ledger({"payment": ONE}, {(1213, "node1"): 4}) + Ledger(
        {"payment": OTHER, "delivery": ONE}, {(1213, "node1"): 1, (1205, "node2"): 2}
    )

    assert both.entries["payment"].attempts == {1: 9, 2: 2, 3: 2}
    assert both.entries["payment"].latencies.total == 11
    assert both.entries["delivery"] == ONE
    assert both.errors == {(1213, "node1"): 5, (1205, "node2"): 2}
    assert both.total.committed == 19
    assert both.total.aborted_seconds == 1.0


def test_good_are_those_that_ended_as_asked():
    """A rollback by design is asked for; a failed or unknown transaction is not good."""
    assert ONE.good == 10
    assert OTHER.good == 1


def test_the_abort_share_counts_attempts_that_ended_in_an_error():
    """Ten good transactions in fourteen attempts are four aborts."""
    assert ONE.tried == 14
    assert Ledger({"payment": ONE}).abort_share == 4 / 14
    assert Ledger().abort_share == 0.0


def test_retries_are_attempts_beyond_the_first():
    """Of whatever became of the transaction in the end."""
    assert Ledger({"x": LedgerEntry({1: 10, 2: 3, 5: 1}, committed=13, failed=1)}).retries == 7
    assert Ledger().retries == 0
