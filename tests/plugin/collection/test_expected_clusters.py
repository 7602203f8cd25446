"""How many clusters a run starts, and which of its tests are skipped, as far as it is known before it begins."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from pytest_dbcluster import TPCC, ClusterSpec, MySQLSlap, ReleaseName
from pytest_dbcluster.plugin.collection import expected_clusters, expected_time
from pytest_dbcluster.plugin.collection.expected_clusters import OfRun, starts_of
from pytest_dbcluster.testbed import pool, testbed

GALERA = ClusterSpec("galera", nodes=3)
FLUSH_2 = GALERA.with_options(innodb_flush_log_at_trx_commit=2)
POOL_1G = GALERA.with_options(innodb_buffer_pool_size="1G")
PRIMARY = ClusterSpec("async_replication", nodes=2)
LIMITED = GALERA.with_needs(iops=100)
GROUP = ClusterSpec("group_replication", nodes=3)
SLAP = MySQLSlap("write")


def dynamic(measure):
    """A test of a variable that can change at run time."""
    measure(SLAP, on=[GALERA, FLUSH_2])


def static(measure):
    """A test of a variable that needs servers of its own."""
    measure(SLAP, on=[GALERA, POOL_1G])


def tables(measure):
    """A test of a workload with a data set."""
    measure(TPCC(), on=[GALERA, FLUSH_2])


def topologies(measure):
    """A test of two topologies: each variant has two instances."""
    measure(SLAP, on=[GALERA, PRIMARY])


def once(measure):
    """The same with one instance."""
    measure(SLAP, on=[GALERA, PRIMARY], instances=1)


def versions(measure, older, newer):
    """A test of two releases, of which each variant has two instances."""
    measure(SLAP, on=[PRIMARY.on_release(older), PRIMARY.on_release(newer)])


def unseen(measure, nodes):
    """A test whose clusters are made by functions of its own."""
    measure(SLAP, on=[galera(nodes), galera(2)])  # noqa: F821


def group(measure):
    """A test of a topology that MariaDB lacks."""
    measure(SLAP, on=[GROUP])


def limited(measure):
    """A test of a limit of its hosts."""
    measure(SLAP, on=[LIMITED])


def item(function, release=None, path="test_a.py", **params):
    """A measuring test."""
    given = {**params, **({"db_release": ReleaseName.parse(release)} if release else {})}
    return types.SimpleNamespace(
        nodeid=f"{path}::{function.__name__}",
        path=Path(path),
        function=function,
        callspec=types.SimpleNamespace(params=given),
        get_closest_marker={}.get,
    )


@pytest.fixture
def known(tmp_path, mariadb, monkeypatch):
    """What is known with the options of a run; ``skipped`` has the tests with a mark."""
    skipped = []
    settings = types.SimpleNamespace(
        releases=(ReleaseName.parse("mariadb:10.11"),), storage="", fragments=tmp_path, provisioner="local"
    )
    made = OfRun(settings, lambda item: item in skipped)
    made.skipped = skipped
    return made


def starts(known, *items):
    """The cluster starts of these tests, one after the other."""
    return expected_time.expected(items, "quick", known).starts


def test_variants_of_one_cluster_start_it_once(known):
    """A variable that can change at run time needs no other servers, and the next test uses the same ones."""
    assert starts(known, item(dynamic), item(dynamic, path="test_b.py")) == 1


def test_a_static_option_starts_another_cluster(known):
    """Which runs beside; a test of a data set starts its own."""
    assert starts(known, item(static)) == 2
    assert starts(known, item(dynamic), item(static)) == 2
    assert starts(known, item(dynamic), item(tables)) == 2


def test_topologies_and_releases_start_two_instances_of_each_variant(known):
    """Unless the test says how many."""
    assert starts(known, item(topologies)) == 4
    assert starts(known, item(once)) == 2
    older, newer = map(ReleaseName.parse, ("mariadb:10.5", "mariadb:10.11"))
    assert starts(known, item(versions, older=older, newer=newer)) == 4
    assert starts(known, item(dynamic, "mariadb:10.11"), item(dynamic, "mariadb:11.8")) == 2


def test_clusters_of_functions_count_by_their_text(known):
    """Equal calls with equal values are one cluster."""
    assert starts(known, item(unseen, nodes=3), item(unseen, nodes=3)) == 2
    assert starts(known, item(unseen, nodes=3), item(unseen, nodes=4)) == 3
    assert starts(known, item(unseen, nodes=2), item(unseen, nodes=2)) == 1


def test_the_pool_keeps_as_many_clusters_as_are_expected():
    """Both are written down twice, so that listing tests loads no module that runs servers."""
    assert expected_clusters.SIDE_BY_SIDE == pool.SIDE_BY_SIDE
    assert expected_clusters.INSTANCES == testbed.INSTANCES


def test_a_cluster_that_was_ended_starts_again():
    """Two run at once, or as many as a test needs; the one that was not used for longest ends first."""
    a, b, c = ("a",), ("b",), ("c",)

    assert starts_of([[a], [b], [a], [c], [a], [b]]) == 4
    assert starts_of([[a, b, c], [a, b, c]]) == 3
    assert starts_of([[a, b, c], [a], [c]]) == 3
    assert starts_of([]) == 0


def test_tests_that_will_be_skipped_are_not_counted(known, monkeypatch):
    """By a mark, by what the release lacks, and by what the hosts of this machine lack; they are counted apart."""
    marked, works = item(dynamic), item(static)
    known.skipped.append(marked)
    unmet = {LIMITED: "no control groups here"}
    monkeypatch.setattr(
        expected_clusters.OfRun, "_unmet", lambda self, spec: unmet.get(spec.on_storage(self._settings.storage), "")
    )
    found = expected_time.expected([marked, works, item(group), item(limited)], "quick", known)

    assert (found.tests, found.skipped, found.starts, found.seconds) == (1, 3, 2, 45 + 2 * 4)
    assert expected_time.lines(found, 120.0)[0].endswith("; 2 cluster starts x 4 s; 3 tests will be skipped)")
    assert known.skips(item(group, "mysql:9.7")) is False  # it has the plugin, or is not on this machine yet


def test_a_release_that_is_not_on_this_machine_skips_nothing(known, empty_templates, monkeypatch):
    """Nothing is fetched to find out."""
    monkeypatch.setattr("pytest_dbcluster.releases.fetched.lookup", lambda product, version: None)
    monkeypatch.setattr("pytest_dbcluster.releases.find.find", lambda name: pytest.fail("looked for"))

    assert known.skips(item(group)) is False
    assert starts(known, item(static)) == 2
