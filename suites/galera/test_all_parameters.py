"""Published tables 1 to 5 in one run: Which of the parameters makes writes faster?"""

import pytest

from fixtures.clusters import GALERA
from fixtures.loads import slap

# The buffer pool, the lock mode, and on some disks the log need a start: each combination is a fresh cluster.
OPTIONS = {
    "innodb_buffer_pool_size": ("128M", "1G"),
    "wsrep_slave_threads": (1, 4),
    "innodb_flush_log_at_trx_commit": (1, 2),
    "innodb_autoinc_lock_mode": (1, 2),
    "innodb_io_capacity": (200, 3000),
}
NAMES = ("buffer_pool", "slave_threads_4", "flush_2", "autoinc_lock_mode_2", "io_capacity_3000")
COLUMNS = dict(zip(OPTIONS, NAMES, strict=True))


@pytest.mark.expected_seconds(900)
@pytest.mark.published(
    "galera-parameters-2022",
    table=6,  # which combines the others
    columns={
        **{f"{name}={levels[0]}": "default" for name, levels in OPTIONS.items()},
        **{f"{name}={OPTIONS[name][1]}": column for name, column in COLUMNS.items()},
    },
)
def test_the_log_and_the_appliers_make_writes_faster(measure):
    """Published: both gain, and the other parameters change nothing."""
    effects = measure.factorial(slap("write"), on=GALERA, options=OPTIONS)

    assert effects["innodb_flush_log_at_trx_commit"].beats()
    assert effects["innodb_io_capacity"].same_as(within=0.10)
    assert effects["innodb_autoinc_lock_mode"].same_as(within=0.10)
    assert effects["wsrep_slave_threads"].beats()
