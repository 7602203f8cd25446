"""What a race accepts, before anything starts."""

import re

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.race import terms
from pytest_dbcluster.spec import ClusterSpec

ONE = ClusterSpec("standalone")
OTHER = ONE.with_options(sync_binlog=0)


@pytest.mark.parametrize(
    ("workload", "on", "by", "said"),
    [
        ("load", [ONE], None, "measure.race accepts 2 to 17 clusters, got 1"),
        ("load", [ONE.with_options(sync_binlog=n) for n in range(18)], None, "accepts 2 to 17 clusters, got 18"),
        ("load", [ONE, OTHER, ONE.named("again")], None, "standalone1 and again are the same cluster"),
        ("load", [ONE.named("a"), OTHER.named("a")], None, "two clusters have the name a"),
        ("load", [ONE, OTHER], 0, "race(by=0): by is out of range, 0 < by < 1"),
        ("load", [ONE, OTHER], 5, "by is out of range, 0 < by < 1; it is a fraction: 5 means 500 %"),
        ({"a": "load", "b": "load"}, [ONE, OTHER], None, "accepts one workload"),
    ],
)
def test_wrong_use_is_refused(workload, on, by, said):
    """With what is wrong."""
    with pytest.raises(ConfigError, match=re.escape(said)):
        terms.check(workload, on, by)


def test_different_clusters_with_different_names_may_race():
    """Two or more of them, with a margin or without one."""
    terms.check("load", [ONE, OTHER], None)
    terms.check("load", [ONE, OTHER, ONE.with_options(sync_binlog=5)], 0.05)
