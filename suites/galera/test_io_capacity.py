"""Published table 5: Does a higher innodb_io_capacity help a data set that fits in memory?"""

import pytest

from fixtures.clusters import GALERA, IO_CAPACITY_3000
from fixtures.loads import READING, WRITING, slap

pytestmark = pytest.mark.published("galera-parameters-2022", table=5)


@pytest.mark.parametrize("mode", READING + WRITING)
def test_io_capacity_changes_nothing(measure, mode):
    """These workloads do not wait for background writes."""
    default, io_capacity = measure(slap(mode), on=[GALERA, IO_CAPACITY_3000])

    assert io_capacity.same_as(default, within=0.10)
