"""What the page says about one claim."""

from pytest_dbcluster import reasons
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.reporting.page import claim_view
from tests.support.facts import missing
from tests.support.observations import CUSTOMER, LOG, unindexed_comparison
from tests.support.records import failed, record, undecided
from tests.support.results import with_counters, with_transactions


def test_a_guard_that_holds_shows_the_interval_by_which_it_does():
    """The other one, which may have no ends yet, is a remark."""
    made = claim_view.view(record(kinds.no_slower_than(0.2), faster=1.02, sd=0.01, pairs=8), "claim1")

    assert made.interval.startswith("90 %: 1.")
    (remark,) = made.remarks
    assert "90 % interval" in remark
    assert remark.endswith("99.9 %: no interval yet")


def test_other_claims_show_the_interval_of_all_looks():
    """There is no other one."""
    made = claim_view.view(record(), "claim1")

    assert made.interval.startswith("99.9 %: 1.")
    assert made.remarks == ()


def test_the_round_trips_of_an_operation_are_a_remark():
    """As in the terminal."""
    trips = RoundTripsTaken(1.93, 1.8, 2.05, 8, (0.0, 0.01))

    assert claim_view.view(record(round_trips=trips), "claim1").remarks == (str(trips),)


def test_every_table_has_the_baseline_first():
    """A reader compares the same columns in all of them."""
    made = claim_view.view(with_counters(record(pairs=20)), "claim1")

    assert made.nodes.columns[1:] == made.why.columns[1:3] == made.variables.columns[1:] == ("galera3", "flush_2")
    assert [name for name, *_ in made.medians.rows] == ["galera3", "flush_2"]


def test_the_size_of_the_data_is_shown_once_if_variants_share_it():
    """Otherwise each variant has its own; a record without a size shows none."""
    shared, differing = {"galera3": "1 warehouse", "flush_2": "1 warehouse"}, {"galera3": "1 row", "flush_2": "2 rows"}

    assert claim_view.ClaimView(record(data=shared)).data == "1 warehouse"
    assert claim_view.ClaimView(record(data=differing)).data == "galera3 1 row; flush_2 2 rows"
    assert claim_view.ClaimView(record(data={"galera3": "1 row"})).data == "galera3 1 row"
    assert claim_view.ClaimView(record()).data == ""


def test_an_inconclusive_claim_says_what_to_do():
    """As the documentation does, for each of its reasons, with its page; a claim with a verdict needs no advice."""
    reason = "budget of 120 s of measured time used (--db-budget)"
    advice = claim_view.ClaimView(undecided()).advice

    assert advice == reasons.advice(reason)
    assert advice.address == reasons.address(reasons.find(reason))
    assert claim_view.ClaimView(failed()).advice is None


def test_the_parts_of_a_workload_have_a_table():
    """Each transaction comes before its statements, with a row for each variant; a claim without parts has no table."""
    rows = claim_view.view(with_transactions(record(), browse=70, order=30), "claim1").parts.rows

    assert [(part, variant) for part, variant, *_ in rows] == [
        (part, variant) for part in ("browse", "browse:3", "order", "order:3") for variant in ("galera3", "flush_2")
    ]
    assert {count for part, _, count, *_ in rows if part.startswith("order")} == {"360"}
    assert claim_view.view(record(), "claim1").parts is None


def test_what_servers_did_is_shown_in_tables():
    """Plans that differ, statements, waits, status and functions; a claim without extra rounds has none."""
    tables = dict(claim_view.view(failed(servers=unindexed_comparison()), "claim1").servers)
    plans, statements, waits, status, functions = tables.values()

    assert plans.columns == ("statement", "indexed", "unindexed")
    assert [row[0] for row in plans.rows] == [CUSTOMER]
    assert missing(plans.rows[0], "key email of customers (const)", "full scan of customers") == []
    assert statements.rows[0][:5] == (CUSTOMER, "1 v 1", "0.05 v 0.9", "18.00x", "1 v 2000")
    assert {LOG, "idle"} <= {row[0] for row in waits.rows}
    assert status.rows == (("innodb_data_fsyncs", "1", "3", "3.00x"),)
    assert functions.rows[0] == ("read_rows", "0.04", "0.8", "20.00x")
    assert claim_view.view(failed(), "claim1").servers == ()
