"""The table of the profile paper."""

import dataclasses

from pytest_dbcluster.reporting.tables import closing
from pytest_dbcluster.rounds.ledger import Ledger
from tests.support.records import record, rounds


def called(seconds, least, most):
    """Rounds with average, minimum and maximum, as of a tool that repeats its calls."""
    found = rounds("default", seconds, 1.0)
    return [dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, least=least, most=most)) for one in found]


def test_measured_and_published_seconds_stand_side_by_side():
    """A row has the mean of the averages, minimum, maximum, and the published seconds."""
    made = record(
        profile="paper",
        rounds={"default": called([0.4, 0.6], 0.3, 0.9)},
        published_seconds={"default": (0.474, 0.416, 0.652)},
    )

    block = closing.paper_block([made])

    assert block is not None
    assert block.rows[0].cells[-2:] == ("0.500 (0.300 .. 0.900)", "0.474 (0.416 .. 0.652)")


def test_a_variant_has_one_row_however_many_claims_it_is_in():
    """Two claims about the same rounds show them once."""
    made = record(profile="paper", rounds={"default": called([0.4], 0.3, 0.9)})

    assert len(closing.paper_block([made, made]).rows) == 1


def test_a_cell_that_was_not_published_is_a_dash():
    """A missing published figure is shown as a dash."""
    assert closing.seconds_text(()) == "-"


def test_quick_runs_have_no_such_table():
    """The profile quick does not run the published command line, so its seconds are not comparable."""
    assert [block.title for block in closing.blocks([record(profile="quick")])] == ["performance claims"]


def test_rounds_that_last_as_long_as_they_were_told_have_no_row():
    """A load with a ledger has no row, because its rounds last a fixed time."""
    made = record(profile="paper")
    outcome = dataclasses.replace(made.rounds["flush_2"][0].outcome, ledger=Ledger())
    rounds = {name: [dataclasses.replace(one, outcome=outcome) for one in many] for name, many in made.rounds.items()}

    assert closing.paper_block([dataclasses.replace(made, rounds=rounds)]) is None
