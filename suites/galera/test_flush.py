"""Published table 3: Are writes faster if the log is flushed once a second instead of at each commit?"""

import pytest

from fixtures.clusters import FLUSH_2, GALERA
from fixtures.loads import WRITING, slap

pytestmark = pytest.mark.published("galera-parameters-2022", table=3)


@pytest.mark.parametrize("mode", WRITING)
def test_flush_2_beats_the_default(measure, mode):
    """Every kind of write is faster when a commit writes the log but does not flush it."""
    default, flush_2 = measure(slap(mode), on=[GALERA, FLUSH_2])

    assert flush_2.beats(default)
    assert flush_2.lower("fsyncs_per_commit", than=default)  # the cause: fewer fsyncs
