"""Is a newer MariaDB as fast as the one before it?"""

import itertools

import pytest

from fixtures.clusters import ASYNC
from fixtures.loads import WRITING, slap
from pytest_dbcluster import ReleaseName

VERSIONS = ("mariadb:10.5", "mariadb:10.11", "mariadb:11.8")
# From 11.6.2 on a transaction of REPEATABLE READ also fails on rows that others changed: another isolation level.
SAME = ASYNC.with_options(innodb_snapshot_isolation="OFF")

pytestmark = pytest.mark.releases()


def on(release):
    """The cluster on this release, under its name."""
    return SAME.on_release(ReleaseName.parse(release)).named(release.replace(":", "_"))


@pytest.mark.parametrize("mode", WRITING)
@pytest.mark.parametrize(("older", "newer"), list(itertools.pairwise(VERSIONS)))
def test_the_newer_version_is_no_slower(measure, older, newer, mode):
    """Each version runs as two fresh instances, so that the place of one server is not taken for its version."""
    before, after = measure(slap(mode), on=[on(older), on(newer)], instances=2)

    assert after.no_slower_than(before, by=0.10)
