"""Tests of pytest_dbcluster.claims.cluster_difference."""

from __future__ import annotations

import math
import statistics

import pytest

from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.cluster_difference import ClusterDifference, combine, student_quantile, upper
from pytest_dbcluster.claims.kinds import beats, lower, no_slower_than, same_as, scales
from tests.support import golden

SEVEN = ClusterDifference(math.log(1.07), "measured on 24 pairs of clusters, 2026-11-22", 24)


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 63.657), (2, 9.925), (5, 4.032), (8, 3.355), (24, 2.797), (25, 2.787), (120, 2.617)]
)
def test_the_quantile_is_that_of_the_published_tables(freedom, quantile):
    """The .995 quantile of Student's distribution, to three digits."""
    assert student_quantile(0.995, freedom) == pytest.approx(quantile, abs=5e-4)


def test_f_is_the_spread_times_the_quantile_of_its_number_of_pairs():
    """The mean is known to be 0: which cluster of a pair is the first is arbitrary."""
    differences = [0.02, -0.02] * 12

    assert upper(differences) == pytest.approx(2.797 * 0.02, rel=1e-3)
    assert upper([-value for value in differences]) == upper(differences)
    assert upper([0.02] * 24) == upper(differences)


def test_f_is_never_less_than_what_was_seen():
    """A rare large difference counts in full: tails need not be normal."""
    assert upper([0.001] * 23 + [-0.3]) == pytest.approx(0.3)


def calibrations(pairs, noise, strata=20):
    """Differences whose mean squares are the middles of equally likely parts of a chi-square distribution.

    The cube root of a chi-square is normal (Wilson and Hilferty 1931). Each calibration has the shape of a normal one.
    """
    normal, share = statistics.NormalDist(), 2 / (9 * pairs)
    shape = [normal.inv_cdf((k + 0.5) / pairs) for k in range(pairs)]
    unit = math.sqrt(statistics.fmean(value * value for value in shape))
    for k in range(strata):
        square = (1 - share + normal.inv_cdf((k + 0.5) / strata) * math.sqrt(share)) ** 3 * (1 + noise**2)
        yield [value / unit * math.sqrt(square) for value in shape]


@pytest.mark.parametrize(("pairs", "noise"), [(8, 0.0), (24, 0.0), (24, 0.3), (24, 1.0)])
def test_one_new_pair_of_clusters_in_two_hundred_lies_above_f(pairs, noise):
    """With the uncertainty of the calibration included, and without the noise of the rounds.

    A standard deviation of the clusters is 1. A spread that is taken as known gives .008 and more, differences that
    include the noise .0036 and less.
    """
    above = [1 - statistics.NormalDist().cdf(upper(seen, noise)) for seen in calibrations(pairs, noise)]

    assert 0.004 <= statistics.fmean(above) <= 0.0055


def test_without_noise_f_is_student_s():
    """The rule for differences with noise ends in the exact one."""
    differences = [0.02, -0.02] * 12

    assert upper(differences, 1e-6) == pytest.approx(upper(differences), rel=2e-3)
    assert upper([0.0] * 24, 0.01) == 0.0


def test_differences_that_the_noise_explains_leave_little():
    """Clusters that may not differ at all have a small f, which is still above 0."""
    noise = 0.02
    f = upper([0.015, -0.015] * 12, noise)

    assert 0 < f < 2.8 * noise


@pytest.mark.parametrize("differences", [[0.01] * 7, [], [0.01] * 24 + [math.nan], [0.01] * 24 + [math.inf]])
def test_too_few_pairs_and_no_numbers_are_refused(differences):
    """They say nothing about the next pair."""
    with pytest.raises(ValueError, match=r"f needs at least 8 pairs of clusters, got|is not finite"):
        upper(differences)


def test_means_of_instances_differ_by_less():
    """By the root of their number."""
    four = ClusterDifference(SEVEN.log_ratio, SEVEN.source, 24, instances=4)

    assert four.bound == pytest.approx(SEVEN.bound / 2)
    assert "can differ by 3.4 % in p95 (1 in 200, means of 4 instances; measured on 24 pairs" in four.line("p95")


def test_a_margin_at_or_below_f_is_refused():
    """The message says f, where it comes from, and what to do."""
    why = SEVEN.refuses("no_slower_than", no_slower_than(0.05).margins)

    assert why.startswith("no_slower_than: its margin, 5.3 % as a ratio of speeds, is not larger than 7.0 %")
    assert "(1 in 200; measured on 24 pairs of clusters, 2026-11-22)" in why
    assert why.endswith("dbcluster calibrate")
    for claim in (same_as(0.05), beats(0.07), scales(1.07), scales(0.95)):
        assert SEVEN.refuses(claim.kind, claim.margins)


@pytest.mark.parametrize(
    "claim", [no_slower_than(0.10), same_as(0.10), beats(), beats(0.08), lower(0.02), Claim("differs", 0.0)]
)
def test_a_margin_above_f_and_no_margin_of_speed_are_fine(claim):
    """Counters have none; a claim without a margin only needs more than f."""
    assert SEVEN.refuses(claim.kind, claim.margins) == ""


def test_two_kinds_of_clusters_have_the_root_of_the_mean_square():
    """The spread of a cluster of one kind and a cluster of another."""
    both = combine(SEVEN, ClusterDifference(0.01, "assumed"))

    assert both.log_ratio == pytest.approx(math.sqrt((math.log(1.07) ** 2 + 0.01**2) / 2))
    assert (both.source, both.pairs) == ("measured on 24 pairs of clusters, 2026-11-22; assumed", 0)
    assert combine(SEVEN, SEVEN) == SEVEN


def test_golden_texts_on_separate_clusters():
    """They are those of the golden file."""
    assumed = ClusterDifference(0.05, "assumed", command="dbcluster calibrate")
    four = ClusterDifference(math.log(1.07), "measured on 12 pairs of clusters, 2026-11-22", 12, instances=4)
    golden.compare(
        "separate_clusters",
        {
            "a measured difference": SEVEN.line("throughput"),
            "an assumed difference": assumed.line("p95"),
            "several instances, few pairs of clusters": four.line("throughput"),
            "a margin that is too small": SEVEN.refuses("no_slower_than", no_slower_than(0.05).margins),
            "a margin below an assumed difference": assumed.refuses("beats", beats(0.02).margins),
        },
    )
