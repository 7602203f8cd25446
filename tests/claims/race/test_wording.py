"""The message of a race."""

import dataclasses

import pytest

from pytest_dbcluster.claims import kinds, verdict, wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.race.wording import message
from tests.claims.race.test_standing import PLACES
from tests.support.facts import missing
from tests.support.pairs import pairs

CLAIM = kinds.race(0.05)


def text(outcome=Outcome.HOLDS, reason="1 variant left", apart=0.0, **given):
    """The message of a race with the places of three variants."""
    claim = dataclasses.replace(CLAIM, apart=apart)
    made = verdict.complete(outcome, reason, claim, pairs([0.02, 0.01] * 12), 0.0005 / 2)
    made = dataclasses.replace(made, alpha=0.0005)
    return message(
        made, PLACES, metric="throughput", usual="throughput", unit="/s", seconds=30.0, seed=7, load="fake",
        extra=["!"], **given,
    )  # fmt: skip


def test_it_has_the_winner_the_table_and_the_error():
    """The details come last, and are left out of the short message."""
    first, *rest = wording.brief(text()).splitlines()

    assert first == "HOLDS: c wins the race of 3 variants: less than 5 % slower than any other"
    assert [line.split() for line in rest[:2]] == [
        ["variant", "speed", "/", "c", "rounds", "end"],
        ["c", "-", "24", "wins"],
    ]
    assert rest[-1] == "  65 rounds in 30 s; this verdict is wrong at most 1 time in 2000"
    assert (
        missing(text(), "race(a, b, c, by=0.05)", "seed 7", "-> 1 variant left", "intervals at 99.95 %", "\n  !") == []
    )


def test_an_open_race_says_why_and_what_it_needs():
    """It has no error, since it decides nothing."""
    said = text(Outcome.INCONCLUSIVE, "budget of 30 s used")

    assert said.startswith("INCONCLUSIVE: which of a, b and c is best\n  why: budget of 30 s used\n  next: it needs ")
    assert "wrong at most" not in said


def test_with_carry_over_the_error_has_no_bound():
    """As for any other claim."""
    said = text(carried=True)

    assert wording.UNBOUNDED in said
    assert "wrong at most" not in said


def test_separate_clusters_limit_the_promise():
    """Each of the others may be a cluster that differs by chance."""
    assert "unless a cluster differs from an equal one of the best variant by more than 2.0 % (up to 2 in 200)" in text(
        apart=0.02
    )


@pytest.mark.parametrize("line", [line for line in text().splitlines() if "rounds" in line])
def test_no_line_ends_with_blanks(line):
    """The table is aligned by blanks between its columns only."""
    assert line == line.rstrip()
