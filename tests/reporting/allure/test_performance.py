"""The figures of claims as Allure's metrics."""

import json

import pytest

from pytest_dbcluster.reporting.allure import performance
from tests.support.records import record


def samples(*records, directory=""):
    """The samples of these claims."""
    return json.loads(performance.text({directory: records}))


def test_a_key_is_the_same_in_all_runs():
    """Allure draws the values of one key over its history; an exact version changes between runs."""
    before, after = (
        record(claim_id="it | beats"),
        record(claim_id="it | beats", release="mariadb:10.11 10.11.20", seed=2),
    )
    [first, second] = ([one["key"] for one in samples(each)] for each in (before, after))

    assert first == second
    assert first[0] == "it | beats, mariadb:10.11: ratio"


def test_a_sample_lasts_as_long_as_the_rounds():
    """In milliseconds since 1970, as all times of Allure."""
    made = record(claim_id="it | beats")
    last = max((drawn for many in made.rounds.values() for drawn in many), key=lambda drawn: drawn.started)
    sample = samples(made)[0]

    assert sample["start"] == 1_700_000_000_000
    assert sample["stop"] == pytest.approx(1000 * (last.started + last.wall))


@pytest.mark.parametrize(
    ("pairs", "figures"),
    [(0, []), (1, ["ratio", "throughput of flush_2, median", "throughput of galera3, median"])],
)
def test_a_figure_that_is_not_known_is_left_out(pairs, figures):
    """A claim without pairs has none, and one with too few pairs has no interval."""
    assert [one["title"].removeprefix("mariadb:10.11: ") for one in samples(record(pairs=pairs))] == figures
