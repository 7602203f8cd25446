"""The claim of a race: how it is written and what it says."""

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ConfigError

CLAIM = kinds.race(0.05)


def test_its_text_does_not_depend_on_who_wins():
    """So that a claim of one run is known in the next one."""
    calls = {CLAIM.call(names, "throughput") for names in (("c", "a", "b"), ("b", "c", "a"))}

    assert calls == {"race(a, b, c, by=0.05)"}
    assert CLAIM.identity(("c", "a", "b"), "p95") == 'race(a, b, c, metric="p95")'


@pytest.mark.parametrize("by", [0, 1, -0.1, 5, None, True])
def test_a_margin_out_of_range_is_refused(by):
    """It lies between 0 and 1."""
    with pytest.raises(ConfigError, match=r"^race\(by="):
        kinds.race(by)


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (Outcome.HOLDS, "c wins the race of 3 variants: less than 5 % slower than any other, by p95"),
        (
            Outcome.FAILS,
            "c wins the race of 3 variants, and not the variant that the test names: less than 5 % slower than any "
            "other, by p95",
        ),
        (Outcome.INCONCLUSIVE, "not decided: which of a, b and c is best, by p95"),
    ],
)
def test_its_sentence_names_the_winner(outcome, says):
    """The winner is the first name."""
    assert CLAIM.sentence(outcome, ("c", "a", "b"), "p95", "ms") == says


def test_its_ratio_has_no_history():
    """Another variant may win in the next run."""
    assert not kinds.race(0.05).of_kind.has_history
    assert kinds.beats().of_kind.has_history
