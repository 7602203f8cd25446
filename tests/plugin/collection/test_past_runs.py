"""What earlier runs of a test took and decided."""

import dataclasses
import types

from pytest_dbcluster.plugin.collection.past_runs import Past, PastRuns
from tests.support.histories import CLAIM, entries

SECONDS = [30.0, 10.0, 20.0]


def item(nodeid="suites/galera/test_flush.py::test_flush_2[write]", **params):
    """A test of the history."""
    return types.SimpleNamespace(nodeid=nodeid, callspec=types.SimpleNamespace(params=params))


def past(**changes):
    """Three runs of a test."""
    made = entries([1.8, 1.9, 1.84], **changes)
    return PastRuns([dataclasses.replace(one, seconds=took) for one, took in zip(made, SECONDS, strict=True)])


def test_the_expected_time_is_the_median_of_the_last_runs():
    """With its outcome in the last of them."""
    assert past(outcome="holds").of(item(), "mariadb:10.11") == Past(20.0, decided=True)
    assert past(outcome="inconclusive").of(item(), "mariadb:10.11") == Past(20.0, decided=False)


def test_a_test_of_a_matrix_has_the_past_of_its_release():
    """Its name has the release then; another release has a past of its own."""
    of_matrix = item("suites/galera/test_flush.py::test_flush_2[mariadb:10.11-write]", db_release="mariadb:10.11")

    assert past().of(of_matrix, "mariadb:10.11") == past().of(item(), "mariadb:10.11")
    assert past().of(item(), "mariadb:11.8") is None


def test_a_test_on_several_releases_has_a_past_too():
    """The history joins its releases."""
    name = CLAIM.replace("test_flush_2[write]", "test_newer[write]")
    found = past(release="mariadb:10.5, mariadb:10.11", claim_id=name)
    of_pair = item("test_flush.py::test_newer[mariadb:10.5-mariadb:10.11-write]", older="mariadb:10.5")

    assert found.of(of_pair, "mariadb:10.11") == Past(20.0, decided=True)


def test_what_no_run_has_timed_is_not_known():
    """Lines of an older version have no seconds."""
    made = PastRuns(entries([1.8]))

    assert made.of(item(), "mariadb:10.11") is None
    assert past().of(item("test_flush.py::test_other"), "mariadb:10.11") is None
