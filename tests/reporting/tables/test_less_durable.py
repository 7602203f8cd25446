"""The line about a faster variant that guarantees less after a commit."""

from __future__ import annotations

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.reporting.tables import less_durable
from tests.support.facts import missing
from tests.support.records import beside, failed, record, undecided

FLUSH = "innodb_flush_log_at_trx_commit"


def differing(**values):
    """A faster candidate with these server variables: (baseline's value, candidate's)."""
    return record(differences=values)


def test_a_faster_variant_that_flushes_less_is_named_once():
    """Both values stand there, and what a crash can cost; claims of other workloads repeat nothing."""
    (line,) = less_durable.lines([record(), record(load="mysqlslap mixed c50"), record(kinds.no_slower_than(0.05))])

    facts = ("less durable: flush_2", f"{FLUSH}=2", "(galera3: 1)", "a crash can lose its last commits")
    assert missing(line, *facts) == []


def test_the_baseline_is_named_if_it_is_the_faster_one():
    """A refuted claim shows that, too."""
    (line,) = less_durable.lines([failed(differences={FLUSH: ("0", "1")})])

    assert line.startswith(f"less durable: galera3 has {FLUSH}=0 (flush_2: 1)")
    assert less_durable.lines([failed()]) == []  # the slower one flushes less


@pytest.mark.parametrize(
    "slow",
    [undecided(faster=1.0), beside(), record(faster=1.0, sd=0.01), record(kinds.lower(), metric="fsyncs_per_commit")],
    ids=["inconclusive", "compared", "equal", "counter"],
)
def test_variants_of_which_neither_is_faster_have_no_line(slow):
    """Their interval includes equal speed, or the claim compares no speeds."""
    assert less_durable.lines([slow]) == []


@pytest.mark.parametrize(
    ("name", "values", "weaker"),
    [
        (FLUSH, ("1", "0"), True),
        (FLUSH, ("2", "0"), True),
        (FLUSH, ("1", "3"), False),
        (FLUSH, ("2", "1"), False),
        (FLUSH, ("1", ""), False),
        ("sync_binlog", ("1", "0"), True),
        ("sync_binlog", ("1", "1000"), True),
        ("sync_binlog", ("1000", "0"), True),
        ("sync_binlog", ("0", "1"), False),
        ("sync_binlog", ("", "1"), False),
        ("drbd_protocol", ("C", "A"), True),
        ("drbd_protocol", ("B", "A"), True),
        ("drbd_protocol", ("A", "C"), False),
        ("innodb_io_capacity", ("200", "100"), False),
    ],
)
def test_each_setting_is_ranked_by_what_a_crash_can_lose(name, values, weaker):
    """A lower number is the stronger one of ``sync_binlog``, but 0 is the weakest."""
    assert bool(less_durable.lines([differing(**{name: values})])) is weaker


def test_two_weaker_settings_stand_in_one_line():
    """Each with its value, and those of the other variant in the same order."""
    (line,) = less_durable.lines([differing(**{"sync_binlog": ("1", "0"), FLUSH: ("1", "2"), "port": ("1", "2")})])

    assert missing(line, "sync_binlog=0 and innodb_flush_log_at_trx_commit=2", "(galera3: 1 and 1)") == []


def test_a_binlog_that_is_off_needs_no_flush():
    """Its setting then guarantees nothing on either side."""
    off = dict.fromkeys(("flush_2", "galera3"), "flush=1, binlog off")

    assert less_durable.lines([record(differences={"sync_binlog": ("1", "0")}, durability=off)]) == []
