"""What does a commit of each topology cost over distance? Its message has the round trips that a commit takes."""

import pytest

from fixtures.clusters import (
    ASYNC_3,
    GALERA_DIRECT,
    GROUP_DIRECT,
    MULTI_PRIMARY_DIRECT,
    SEMISYNC_3,
    at_rtts,
    with_wait_point,
)
from fixtures.loads import commits
from pytest_dbcluster import fades, ordered

pytestmark = pytest.mark.expected_seconds(200)

GROUPS = {"single_primary": GROUP_DIRECT, "multi_primary": MULTI_PRIMARY_DIRECT}
MARIADB, MYSQL = "mariadb:10.11", "mysql:9.7"


@pytest.mark.releases(MARIADB)
def test_each_distance_slows_galera(measure):
    """A commit waits until the farthest node has received it and its place in the order."""
    near, one, five, twenty = measure(commits(), on=at_rtts(GALERA_DIRECT))

    assert ordered(twenty, five, one, near)


@pytest.mark.releases(MYSQL)
@pytest.mark.parametrize("mode", GROUPS)
def test_each_distance_slows_a_group(measure, mode):
    """A commit waits until a majority has agreed on its place in the order."""
    near, one, five, twenty = measure(commits(), on=at_rtts(GROUPS[mode]))

    assert ordered(twenty, five, one, near)


@pytest.mark.releases(MARIADB, MYSQL)
@pytest.mark.parametrize("point", ["AFTER_SYNC", "AFTER_COMMIT"])
def test_each_distance_slows_semisync(measure, db_release, point):
    """A commit waits until a replica has received it, whichever moment of the commit waits."""
    near, one, five, twenty = measure(commits(), on=at_rtts(with_wait_point(SEMISYNC_3, db_release, point)))

    assert ordered(twenty, five, one, near)


@pytest.mark.budget(240)  # 0.92x (0.88 .. 0.95) was open after 120 s
@pytest.mark.releases(MARIADB, MYSQL)
def test_distance_costs_async_nothing(measure):
    """The primary waits for no replica."""
    at_all = at_rtts(ASYNC_3)
    near, twenty = measure(commits(), on=[at_all[0], at_all[-1]])

    assert twenty.no_slower_than(near, by=0.1)


@pytest.mark.budget(300)
@pytest.mark.releases(MARIADB)
def test_more_clients_hide_a_part_of_the_distance(measure):
    """Commits of several clients wait for the same round trips at the same time, so 16 lose less than one."""
    loads = {"one": commits(), "many": commits(threads=16)}
    one, one_far, many, many_far = measure(loads, on=[at_rtts(GALERA_DIRECT)[0], at_rtts(GALERA_DIRECT)[2]])

    assert fades((one, one_far), (many, many_far))
    assert one.beats(one_far)
