"""Results of tests that had not ended when their run was killed."""

import dataclasses

import pytest

from pytest_dbcluster.measuring.evidence import SpecDocument
from pytest_dbcluster.reporting.allure import allure_results, unfinished
from pytest_dbcluster.reporting.documents.claim_id import claim_id
from pytest_dbcluster.reporting.page.sources import Source
from tests.support.records import record
from tests.support.run_documents import CUT_SHORT, run_document

TEST = "suites/galera/test_flush.py::test_cut[mariadb:10.11-write]"
RELEASE = "mariadb:10.11"


def claim(test=TEST, *releases):
    """A claim of a test on these releases."""
    releases = releases or (RELEASE,)
    specs = {
        str(number): SpecDocument("galera", 3, release, "1", "", {}, (), "", "", "vendor")
        for number, release in enumerate(releases)
    }
    return record(test=test, specs=specs, claim_id=claim_id(test, releases, "beats", "write"))


def source(tmp_path, *claims, **run):
    """The results of a run with these claims."""
    return Source(tmp_path, "run", run_document(**run), claims, ())


def test_a_test_that_had_not_ended_is_broken_with_its_claims(tmp_path):
    """Its identity is that of the result which it would have had."""
    tests = (*run_document().tests, dataclasses.replace(CUT_SHORT, test=TEST))  # as a run notes it when it begins
    [made] = unfinished.results(source(tmp_path, claim(), claim(), tests=tests), ())
    case = "test_flush::test_cut[write]"

    assert (made["status"], made["statusDetails"]["message"]) == ("broken", unfinished.MESSAGE)
    assert made["name"].startswith("test_cut[write]: 1.")
    assert made["descriptionHtml"].count("✓ holds: flush_2 is faster than galera3") == 2
    assert "<img " in made["descriptionHtml"]
    assert made["testCaseId"] == allure_results.digest(case)
    assert made["historyId"] == allure_results.digest(case, RELEASE)
    assert made["labels"] == [{"name": "env", "value": RELEASE}]
    assert made["stop"] > made["start"] > 0


def test_a_test_that_compares_releases_has_the_environment_of_those(tmp_path):
    """It has no release of its own."""
    test = "test_v.py::test_new[mariadb:10.5-mariadb:10.11]"
    [made] = unfinished.results(source(tmp_path, claim(test, "mariadb:10.5", RELEASE)), ())

    assert made["labels"] == [{"name": "env", "value": allure_results.SEVERAL}]
    assert made["historyId"] == allure_results.digest("test_v::test_new[mariadb:10.5-mariadb:10.11]", "")
    assert made["parameters"] == []


def test_a_test_with_a_result_has_no_second_one(tmp_path):
    """A run that Ctrl-C ended has a result of the test that was running."""
    known = [allure_results.digest("test_flush::test_cut[write]", RELEASE)]

    assert unfinished.results(source(tmp_path, claim()), known) == []


@pytest.mark.parametrize("known", [True, False], ids=["run.json", "older version"])
def test_a_test_that_has_ended_has_its_result_already(tmp_path, known):
    """Without run.json nobody knows which test had not."""
    read = source(tmp_path, claim())
    ended = read.run and read.run.tests[0].test
    read = dataclasses.replace(read, claims=(claim(ended),)) if known else dataclasses.replace(read, run=None)

    assert unfinished.results(read, ()) == []
