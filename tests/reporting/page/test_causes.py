"""Counters and resources that moved."""

import dataclasses

import pytest

from pytest_dbcluster.reporting.page import causes, claim_view
from tests.support.records import record
from tests.support.results import with_counters


def by_name(made):
    """What moved, by name."""
    return {one.name: one for one in causes.causes(made)}


def test_what_moved_most_comes_first():
    """Fsyncs fell from 3 a commit to .001; CPU of the machine stands last, though it did not move."""
    found = causes.causes(with_counters(record(pairs=20)))

    assert [one.name for one in found[:2]] == ["fsyncs", "log waits"]
    assert found[-1].name == "CPU milliseconds, whole machine"
    assert not found[-1].moved


def test_work_is_counted_by_commit():
    """A faster variant does more in the same time; by commit that makes no difference."""
    fsyncs = by_name(with_counters(record(pairs=20)))["fsyncs"]

    assert fsyncs.per == "commit"
    assert round(fsyncs.baseline, 2) == 3.0
    assert fsyncs.candidate < 0.01
    assert fsyncs.high < 1


def test_reads_are_counted_by_operation():
    """A load that writes nothing has no commits."""
    made = with_counters(record(pairs=20))
    many = {
        name: tuple(dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, commits=None)) for one in rounds)
        for name, rounds in made.rounds.items()
    }

    assert by_name(dataclasses.replace(made, rounds=many))["fsyncs"].per == "operation"


def test_what_did_not_move_is_not_named():
    """A counter whose interval includes 1 explains nothing; nor does one that is the same in all rounds."""
    assert "rows read" not in by_name(with_counters(record(pairs=20)))
    assert "share of time in which a task waited for the disk" not in by_name(with_counters(record(pairs=20)))


def test_the_counter_of_the_claim_is_no_cause():
    """It would explain itself."""
    made = with_counters(record(pairs=20, metric="fsyncs"))

    assert "fsyncs" not in by_name(made)


@pytest.mark.parametrize("parts", [21, 1000])
def test_options_that_share_an_error_have_causes(parts):
    """Six options and their pairs share it in 21 parts. The table has no values for that, so a smaller level counts."""
    made = with_counters(record(pairs=40))
    verdict = dataclasses.replace(made.verdict, alpha=0.0005 / parts)
    shared = by_name(dataclasses.replace(made, verdict=verdict))["fsyncs"]

    usual = by_name(made)["fsyncs"]
    assert shared.ratio == usual.ratio
    assert shared.low <= usual.low < usual.high <= shared.high < 1


def test_few_pairs_show_nothing():
    """Before the first look that can speak, no counter is named."""
    assert [one for one in causes.causes(with_counters(record(pairs=4))) if one.moved] == []
    assert causes.causes(dataclasses.replace(record(), rounds={"flush_2": (), "galera3": ()})) == []


def test_a_counter_that_one_variant_lacks_is_left_out():
    """Releases differ in their counters."""
    made = with_counters(record(pairs=20))
    bare = tuple(dataclasses.replace(one, counters={}) for one in made.rounds["galera3"])

    assert "fsyncs" not in by_name(dataclasses.replace(made, rounds={**made.rounds, "galera3": bare}))


def test_cpu_by_commit_is_in_milliseconds():
    """A commit takes far less than a second of it."""
    cpu = by_name(with_counters(record(pairs=20)))["CPU milliseconds, node1"]

    assert 0.1 < cpu.candidate < cpu.baseline < 1


def test_what_comes_from_nothing_has_no_ratio():
    """Neither 501 times as much nor infinitely more would say anything; that it moved is shown."""
    made = with_counters(record(pairs=20))
    many = {
        name: tuple(
            dataclasses.replace(one, counters={"drain_seconds": 0.5 if name == made.candidate else 0.0}) for one in some
        )
        for name, some in made.rounds.items()
    }
    [row] = [row for row in claim_view.view(dataclasses.replace(made, rounds=many), "c").why.rows if "drain" in row[0]]

    assert row == ("drain seconds", "0", "0.5", "from 0", "above 1")
