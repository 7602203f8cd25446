"""Published table 2: Do more applier threads make writes faster?"""

import pytest

from fixtures.clusters import GALERA, SLAVE_THREADS_2, SLAVE_THREADS_4
from fixtures.loads import READING, WRITING, slap

pytestmark = pytest.mark.published("galera-parameters-2022", table=2)


@pytest.mark.parametrize("mode", WRITING)
def test_4_threads_beat_the_default(measure, mode):
    """Four appliers keep up; with one applier flow control pauses the writers."""
    default, threads_4 = measure(slap(mode), on=[GALERA, SLAVE_THREADS_4])

    assert threads_4.lower("paused_share", than=default)  # the cause; visible even if the cores limit the throughput
    assert threads_4.beats(default)


@pytest.mark.parametrize("mode", READING)
def test_4_threads_leave_reads_alone(measure, mode):
    """Appliers are idle in a read-only workload."""
    default, threads_4 = measure(slap(mode), on=[GALERA, SLAVE_THREADS_4])

    assert threads_4.same_as(default, within=0.10)


def test_2_threads_beat_the_default(measure):
    """Two appliers make inserts faster."""
    default, threads_2 = measure(slap("write"), on=[GALERA, SLAVE_THREADS_2])

    assert threads_2.beats(default)


@pytest.mark.parametrize("mode", ["mixed", "update"])
def test_2_threads_beside(measure, mode):
    """Published: two appliers do not change update. The result depends on the disk: shown, not claimed."""
    default, threads_2 = measure(slap(mode), on=[GALERA, SLAVE_THREADS_2])

    threads_2.against(default)
