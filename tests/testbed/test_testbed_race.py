"""A race on real servers: clusters of variants that left end, the others go on."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from tests.support.testbeds import ONE, OTHER, WRITE, source

STATIC = ONE.with_options(innodb_log_file_size="64M").named("static")


def test_a_cluster_that_only_left_variants_use_is_ended(pool):
    """Its memory is free then. One that another variant shares goes on, and so do the rounds."""
    said = []
    made = source(pool, WRITE, ONE, OTHER, STATIC, progress=said.append, instances=1)
    for variant in range(3):
        made.round(variant, block=0, position=variant)
    both = pool.clusters

    made.leave([0], [])
    assert pool.clusters == both
    made.leave([2], ["static leaves the race"])
    assert len(both) == 2
    assert len(pool.clusters) == 1
    assert said[-1] == "mysqlslap write c2: static leaves the race"

    with made.exclusive():  # the first variant, which left, is not prepared
        done = made.round(1, block=1, position=0)
    assert (done.variant, done.void) == ("other", "")
    made.check()


def test_separate_clusters_race_in_four_instances(shared):
    """A test may ask for another number; variants that share one cluster have one. Nothing starts."""
    for specs, asked, expected in (((ONE, OTHER), None, 1), ((ONE, STATIC), None, 4), ((ONE, STATIC), 2, 2)):
        made = source(shared, WRITE, *specs, instances=asked)
        made.prepare_race(asked)
        assert made.instances == expected
    assert shared.clusters == []


def test_equal_variants_cannot_race(shared):
    """Two texts may say the same; nothing starts."""
    same = ONE.with_options(lock_wait_timeout="40").named("same")
    made = source(shared, WRITE, ONE, OTHER, same)

    with pytest.raises(ConfigError, match="other and same are the same cluster with the same options"):
        made.prepare_race(None)
    assert shared.clusters == []
