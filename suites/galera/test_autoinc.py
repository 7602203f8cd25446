"""Published table 4: Does interleaved auto-increment locking matter without bulk inserts?"""

import pytest

from fixtures.clusters import AUTOINC_2, GALERA
from fixtures.loads import READING, WRITING, slap

pytestmark = pytest.mark.published("galera-parameters-2022", table=4, columns={"autoinc_2": "autoinc_lock_mode_2"})


@pytest.mark.parametrize("mode", READING + WRITING)
def test_autoinc_lock_mode_changes_nothing(measure, mode):
    """Mysqlslap inserts single rows, so the lock mode for bulk inserts makes no difference."""
    default, autoinc_2 = measure(slap(mode), on=[GALERA, AUTOINC_2])

    assert autoinc_2.same_as(default, within=0.10)
