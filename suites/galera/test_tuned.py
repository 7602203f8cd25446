"""Published table 6: How much do all parameters together gain?"""

import pytest

from fixtures.clusters import FLUSH_2, GALERA, TUNED_A, TUNED_B
from fixtures.loads import WRITING, slap

pytestmark = pytest.mark.published("galera-parameters-2022", table=6)


@pytest.mark.parametrize("mode", WRITING)
@pytest.mark.parametrize("tuned", [TUNED_A, TUNED_B], ids=str)
def test_tuned_beats_the_default(measure, tuned, mode):
    """Both tuned configurations write faster than the default."""
    default, candidate = measure(slap(mode), on=[GALERA, tuned])

    assert candidate.beats(default)


def test_tuned_a_beside_the_log_alone(measure):
    """Published: tuned A inserts a little slower than flush=2 alone. It depends on the disk: shown, not claimed."""
    flush_2, tuned_a = measure(slap("write"), on=[FLUSH_2, TUNED_A])

    tuned_a.against(flush_2)


def test_tuned_b_beside_tuned_a(measure):
    """Published: tuned B is close to tuned A. The difference depends on the disk: shown, not claimed."""
    tuned_a, tuned_b = measure(slap("write"), on=[TUNED_A, TUNED_B])

    tuned_b.against(tuned_a)
