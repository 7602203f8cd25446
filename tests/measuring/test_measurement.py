"""One workload on several variants: the order of its rounds."""

from __future__ import annotations

from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measurement, two


def test_measurements_of_a_run_have_orders_of_their_own():
    """Test, workload, variants and number of a measurement are mixed into the seed of the run."""
    orders = []
    for test, names, number in (("a", "xy", 0), ("b", "xy", 0), ("a", "xz", 0), ("a", "xy", 1), ("a", "xy", 0)):
        source = FakeSource(tuple(names), noisy(1.0, 1.0))
        asked = Measurement(source, Rules(seed=7), test=test, number=number)
        for _ in range(5):
            asked.drawing.draw([0, 1])
        orders.append(tuple(variant for variant, *_ in source.rounds))

    assert len(set(orders)) == 4
    assert orders[0] == orders[4]


def test_the_same_seed_draws_the_same_order():
    """A run can be repeated round by round."""
    orders = []
    for _ in range(2):
        source = two()
        slow, fast = series_of(measurement(source, seed=11))
        assert fast.beats(slow)
        orders.append(source.rounds)

    assert orders[0] == orders[1]
