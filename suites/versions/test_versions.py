"""How did writes change over the versions of MariaDB?"""

import pytest

from fixtures.clusters import ASYNC
from fixtures.loads import WRITING, slap

# Without two or more releases of MariaDB in --db-release.
VERSIONS = ("mariadb:10.5", "mariadb:10.11", "mariadb:11.8")
# Since 11.6.2 a REPEATABLE READ transaction also fails on rows changed by others, which is another isolation level.
SAME = ASYNC.with_options(innodb_snapshot_isolation="OFF").named("async")

pytestmark = pytest.mark.releases()


def versions(measure):
    """The releases of MariaDB that the run names, if it names two or more."""
    named = [release for release in measure.releases if release.product == "mariadb"]
    return named if len(named) > 1 else VERSIONS


@pytest.mark.parametrize("mode", WRITING)
def test_no_version_is_slower_than_the_one_before(measure, mode):
    """Two fresh instances of each version run, to separate instance differences from version differences."""
    line = measure.sweep(slap(mode), on=[SAME], release=versions(measure), instances=2)
    line.draw()

    assert line.every(lambda older, newer: newer.no_slower_than(older, by=0.10))
