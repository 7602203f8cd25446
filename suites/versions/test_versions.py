"""Is a newer MariaDB as fast as the one before it?"""

import itertools

import pytest

from fixtures.clusters import ASYNC
from fixtures.loads import WRITING, slap
from pytest_dbcluster import ReleaseName

VERSIONS = ("mariadb:10.5", "mariadb:10.11", "mariadb:11.8")
# Since 11.6.2 a REPEATABLE READ transaction also fails on rows changed by others, which is another isolation level.
SAME = ASYNC.with_options(innodb_snapshot_isolation="OFF")

pytestmark = pytest.mark.releases()


def on(release):
    """The cluster on this release; its short name is the release's, such as ``mariadb_10.11``."""
    return SAME.on_release(ReleaseName.parse(release)).named(release.replace(":", "_"))


@pytest.mark.parametrize("mode", WRITING)
@pytest.mark.parametrize(("older", "newer"), list(itertools.pairwise(VERSIONS)))
def test_the_newer_version_is_no_slower(measure, older, newer, mode):
    """Two fresh instances of each version run, to separate instance differences from version differences."""
    before, after = measure(slap(mode), on=[on(older), on(newer)], instances=2)

    assert after.no_slower_than(before, by=0.10)
