"""Published tables 2, 3 and 6 on volumes like the published ones: How much of the effect was the disk?

The published nodes had gp2 volumes. A fast local disk hides most of the cost of flushing. Here each node may write 3000
times a second, as gp2 does while it bursts. Reads do not write; their claims are in test_threads.py.
"""

import pytest

from fixtures.clusters import (
    FLUSH_2_GP2,
    GALERA_GP2,
    SLAVE_THREADS_2_GP2,
    SLAVE_THREADS_4_GP2,
    TUNED_A_GP2,
    TUNED_B_GP2,
)
from fixtures.loads import WRITING, slap

FILE = "galera-parameters-2022"
COLUMNS = {
    FLUSH_2_GP2.short_name: "flush_2",
    SLAVE_THREADS_2_GP2.short_name: "slave_threads_2",
    SLAVE_THREADS_4_GP2.short_name: "slave_threads_4",
    TUNED_A_GP2.short_name: "tuned_a",
    TUNED_B_GP2.short_name: "tuned_b",
}
TABLE_2, TABLE_3, TABLE_6 = (pytest.mark.published(FILE, table=number, columns=COLUMNS) for number in (2, 3, 6))

pytestmark = pytest.mark.storage


@TABLE_3
@pytest.mark.parametrize("mode", WRITING)
def test_a_lazy_log_beats_the_default(measure, mode):
    """If flushing costs as much as on gp2, every kind of write is faster without waiting for it."""
    default, flush_2 = measure(slap(mode), on=[GALERA_GP2, FLUSH_2_GP2])

    assert flush_2.beats(default)
    assert flush_2.lower("fsyncs_per_commit", than=default)


@TABLE_2
@pytest.mark.parametrize("mode", WRITING)
def test_4_threads_beat_the_default(measure, mode):
    """Four appliers share flushes; a single applier waits for each flush."""
    default, threads_4 = measure(slap(mode), on=[GALERA_GP2, SLAVE_THREADS_4_GP2])

    assert threads_4.beats(default)


@TABLE_2
def test_2_threads_beat_the_default(measure):
    """Two appliers make inserts faster."""
    default, threads_2 = measure(slap("write"), on=[GALERA_GP2, SLAVE_THREADS_2_GP2])

    assert threads_2.beats(default)


@TABLE_2
@pytest.mark.parametrize("mode", ["mixed", "update"])
def test_2_threads_beside(measure, mode):
    """Published: two appliers do not change update and make mixed faster. Shown, not claimed."""
    default, threads_2 = measure(slap(mode), on=[GALERA_GP2, SLAVE_THREADS_2_GP2])

    threads_2.against(default)


@TABLE_6
@pytest.mark.parametrize("mode", WRITING)
@pytest.mark.parametrize("tuned", [TUNED_A_GP2, TUNED_B_GP2], ids=str)
def test_tuned_beats_the_default(measure, tuned, mode):
    """Both tuned configurations write faster than the default."""
    default, candidate = measure(slap(mode), on=[GALERA_GP2, tuned])

    assert candidate.beats(default)


@TABLE_6
def test_tuned_a_beside_the_log_alone(measure):
    """Published: tuned A inserts a little slower than flush=2 alone. Shown, not claimed."""
    flush_2, tuned_a = measure(slap("write"), on=[FLUSH_2_GP2, TUNED_A_GP2])

    tuned_a.against(flush_2)
