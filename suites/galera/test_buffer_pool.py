"""Published table 1: Does a buffer pool of 80 % of memory help when the data set fits the default buffer pool?"""

import pytest

from fixtures.clusters import BUFFER_POOL, GALERA
from fixtures.loads import READING, WRITING, slap

pytestmark = pytest.mark.published("galera-parameters-2022", table=1)


@pytest.mark.parametrize("mode", READING + WRITING)
def test_buffer_pool_changes_nothing(measure, mode):
    """The data set fits the default of 128 MiB, so a larger buffer pool makes no difference."""
    default, buffer_pool = measure(slap(mode), on=[GALERA, BUFFER_POOL])

    assert buffer_pool.same_as(default, within=0.10)
