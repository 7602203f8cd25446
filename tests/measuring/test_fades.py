"""``fades``: four series of one measurement, from the first round to the message."""

import itertools

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.errors import ClaimFailed, ConfigError, Inconclusive
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.series import fades, series_of
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measured, measurement, two

NAMES = ("one", "one_far", "many", "many_far")


def four(one=1.0, one_far=5.0, many=0.2, many_far=0.5, **rules):
    """Four series and their source; the second workload loses less by default: 0.4 is kept, and 0.2 of the first."""
    source = FakeSource(NAMES, noisy(one, one_far, many, many_far))
    return source, series_of(measurement(source, budget=10_000.0, **rules))


def test_a_smaller_loss_holds():
    """The verdict compares both ratios, and the message says each of them."""
    source, (one, one_far, many, many_far) = four()
    answer = fades((one, one_far), (many, many_far))

    assert answer
    assert answer.verdict.ratio == pytest.approx(2, rel=0.1)
    assert answer.text == "fades((one, one_far), (many, many_far))"
    first, *_ = answer.message.splitlines()
    assert first.startswith("HOLDS: many_far loses less against many than one_far against one; measured ")
    assert "\n  fades((one, one_far), (many, many_far))   metric throughput   " in answer.message
    assert f"{answer.verdict.pairs} blocks x 4 x " in answer.message
    assert "\n  many_far is 0.4" in answer.message
    assert "x as fast as many, one_far 0.2" in answer.message
    assert "carry-over: rounds after many_far" in answer.message
    assert "carry-over: rounds after one_far" in answer.message
    assert [compared.name for compared in answer.contrast] == ["many_far", "many"]
    assert len(measured(source)) == 4 * answer.verdict.pairs


def test_a_larger_loss_is_refuted():
    """The claim is the other way around."""
    _, (one, one_far, many, many_far) = four()

    with pytest.raises(
        ClaimFailed, match=r"^REFUTED: one_far does not lose less against one than many_far against many; "
    ):
        bool(fades((many, many_far), (one, one_far)))


def test_equal_losses_are_inconclusive():
    """However large both are; more blocks than the cap are not drawn."""
    source, (one, one_far, many, many_far) = four(many_far=1.0, cap=40)

    with pytest.raises(Inconclusive, match=r"needs "):
        bool(fades((one, one_far), (many, many_far)))
    assert len(measured(source)) <= 4 * 40


def test_each_of_both_ratios_has_a_difference_of_clusters():
    """They add up."""
    source, (one, one_far, many, many_far) = four()
    known = {(1, 0): 0.03, (3, 2): 0.04}
    source.cluster_difference = lambda *numbers, metric: ClusterDifference(known.get(numbers, 0.04), "measured", 24)
    answer = fades((one, one_far), (many, many_far))

    assert answer.verdict.claim.apart == pytest.approx(0.05)


def test_two_clusters_that_both_ratios_share_differ_once():
    """Both workloads run on each of them, so a constant difference cancels."""
    source, (one, one_far, many, many_far) = four()
    near, far = (0, 2), (1, 3)

    def differ(*numbers, metric):
        alike = any(set(numbers) <= set(cluster) for cluster in (near, far))
        return None if alike else ClusterDifference(0.04, "measured", 24)

    source.cluster_difference = differ
    answer = fades((one, one_far), (many, many_far))

    assert answer.verdict.claim.apart == pytest.approx(0.04)


def test_the_first_verdict_comes_after_17_blocks():
    """However clear it is; so a budget for fewer is refused before anything is drawn."""
    source, (one, one_far, many, many_far) = four(cap=160)
    answer = fades((one, one_far), (many, many_far), by=0.2)
    assert answer.verdict.pairs >= 17

    source = FakeSource(NAMES, noisy(1.0, 1.0, 1.0, 1.0))
    source.round_seconds = 1.0
    (one, one_far, many, many_far) = series_of(measurement(source, budget=67.0))
    with pytest.raises(ConfigError, match=r"at least 17 blocks: 17 x 4 rounds of 1 s take 68 s, .* is --db-budget 68"):
        fades((one, one_far), (many, many_far))
    assert source.rounds == []


def test_the_first_look_speaks_by_ranks():
    """Later with a stricter level, and where instances take turns in whole opening blocks."""
    claim = kinds.fades()

    assert [reach.first_look(claim, alpha) for alpha in (0.0005, 0.0001)] == [17, 17]
    assert reach.first_look(claim, 0.0005, instances=2) == 17


def test_a_claim_before_changes_no_verdict():
    """The blocks that it has drawn are replayed look by look."""
    _, (one, one_far, many, many_far) = four()
    assert one.beats(one_far)
    second = fades((one, one_far), (many, many_far))
    _, (one, one_far, many, many_far) = four()
    first = fades((one, one_far), (many, many_far))

    assert second.verdict == first.verdict
    assert first.verdict.outcome is Outcome.HOLDS


def test_every_series_is_in_it_once():
    """A pair is not compared with itself, and two pairs share nothing."""
    source, series = four()
    for given in itertools.product(series, repeat=4):
        if len({one.number for one in given}) == 4:
            continue
        with pytest.raises(ConfigError, match=r"^fades\(\.\.\.\): \w+ is in it twice; it accepts four series"):
            fades(given[:2], given[2:])
    assert source.rounds == []


def test_four_series_come_from_one_measurement():
    """Rounds of two measurements share no block."""
    others = series_of(measurement(two()))
    _, (one, one_far, *_) = four()

    with pytest.raises(ConfigError, match=r"^fades\(\.\.\.\) accepts four series of one measure"):
        fades((one, one_far), tuple(others))


@pytest.mark.parametrize("wrong", [None, "one", (1, 2), 3])
def test_a_pair_is_two_series(wrong):
    """The error shows how the call is written."""
    _, (one, one_far, *_) = four()

    with pytest.raises(ConfigError, match=r"^fades\(\.\.\.\) accepts two pairs of series, .*; got "):
        fades((one, one_far), wrong)


def test_a_wrong_call_shows_how_it_is_written():
    """Four series without their pairs are not guessed."""
    _, series = four()

    with pytest.raises(ConfigError, match=r"usage: fades\(\(one, one_far\), \(many, many_far\), by=0.1\)"):
        fades(*series)
    with pytest.raises(ConfigError, match=r"fades\(by=2\): by is out of range"):
        fades(series[:2], series[2:], by=2)
