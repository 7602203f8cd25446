"""How long things took, in buckets that add up."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.rounds.histogram import TOP, Histogram, bucket

TIMES = st.lists(st.floats(1e-6, 500), min_size=1, max_size=200)


@given(TIMES, TIMES)
def test_the_histograms_of_two_threads_add_up_to_that_of_all_their_times(first, second):
    """Percentiles merge across threads and rounds, because the buckets are the same everywhere."""
    assert dict((Histogram.of(first) + Histogram.of(second)).counts) == dict(Histogram.of(first + second).counts)


@given(TIMES, st.sampled_from([0.5, 0.95, 0.99, 0.999, 1.0]))
def test_a_percentile_lies_within_a_bucket_of_the_exact_one(times, share):
    """The middle of a bucket is less than 1.1 % from every time in it."""
    exact = sorted(times)[math.ceil(share * len(times)) - 1]

    assert Histogram.of(times).percentile(share) == pytest.approx(exact, rel=0.011)


@given(TIMES)
def test_the_mean_lies_within_a_bucket_of_the_exact_one(times):
    """Each time counts as the middle of its bucket."""
    assert Histogram.of(times).mean == pytest.approx(sum(times) / len(times), rel=0.011)


def test_percentiles_of_no_time_are_not_a_number():
    """A type of transaction that never ran has no latency, and does not raise."""
    assert math.isnan(Histogram().percentile(0.5))
    assert math.isnan(Histogram().mean)


@pytest.mark.parametrize("share", [0, -1, 1.01])
def test_a_share_outside_its_range_is_refused(share):
    """95 instead of .95 is a mistake."""
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        Histogram.of([1.0]).percentile(share)


def test_times_beyond_the_last_bucket_are_counted_in_it():
    """Nothing is lost, however long a stall was."""
    assert bucket(1e9) == TOP
    assert bucket(0.0) == 0
    assert Histogram.of([random.random() for _ in range(10)]).total == 10
