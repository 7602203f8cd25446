"""Claims in the XML of ``--junit-xml``, in whole runs on made-up rounds."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_dbcluster.claims.kinds import beats
from pytest_dbcluster.claims.verdict import Terms, judge
from pytest_dbcluster.plugin import junit
from tests.support import conftests
from tests.support.pairs import pairs

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = ["-Wignore", *conftests.PLAIN, "--db-seed=5", "--junitxml=x.xml"]
SUITE = """
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_faster(measure):
        print("words of the test")
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)
        assert other.no_slower_than(one, by=0.1)

    def test_slower(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert one.beats(other)

    def test_plain(record_property):
        record_property("db_host", "of the user")
"""


@pytest.fixture
def cases(pytester):
    """Run the suite with these options; name of each test -> its element of the XML."""
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    pytester.makepyfile(test_suite=SUITE)

    def cases(*options):
        result = pytester.runpytest_inprocess(*WORDS, *options)
        result.assert_outcomes(passed=2, failed=1)
        found = ElementTree.parse(pytester.path / "x.xml").iter("testcase")
        return result, {case.get("name"): case for case in found}

    return cases


def output(case):
    """The text of ``system-out``, of which there is one at most."""
    texts = [element.text for element in case.iter("system-out")]
    assert len(texts) <= 1
    return texts[0] if texts else ""


def properties(case):
    """Name -> value."""
    return {found.get("name"): found.get("value") for found in case.iter("property")}


def test_a_test_has_the_message_of_each_of_its_claims(cases):
    """Green tests too. A test without claims has no output, and xunit2 no property."""
    _, tests = cases()
    faster = output(tests["test_faster"])

    assert "HOLDS: other is faster than galera3" in faster
    assert "HOLDS: other is less than 10 % slower than galera3" in faster
    assert "REFUTED: galera3 is not faster than other" in output(tests["test_slower"])
    assert "claimed more than" in faster
    assert output(tests["test_plain"]) == ""
    assert properties(tests["test_faster"]) == {}
    assert properties(tests["test_plain"]) == {"db_host": "of the user"}


def test_the_family_that_allows_properties_has_one_for_each_claim(cases):
    """With the result and the interval."""
    _, tests = cases("-o", "junit_family=xunit1")
    found = properties(tests["test_faster"])

    assert found["other.no_slower_than(galera3, by=0.1) mysqlslap write"].startswith("holds 1.")
    assert found["other.beats(galera3) mysqlslap write"].startswith("holds 1.")
    assert properties(tests["test_slower"])["galera3.beats(other) mysqlslap read"].startswith("refuted 0.6")


def test_what_pytest_writes_itself_stays(cases):
    """One element has both, and the terminal shows the message of a claim once."""
    result, tests = cases("-o", "junit_logging=system-out")
    faster = output(tests["test_faster"])

    assert "words of the test" in faster
    assert "HOLDS: other is faster than galera3" in faster
    # pytest's short summary repeats the first line, cut at the terminal's width or, in CI, whole.
    shown, _, _ = result.stdout.str().partition("short test summary info")
    assert shown.count("REFUTED: galera3 is not faster than other; measured ") == 1


def test_a_property_says_why_a_claim_is_inconclusive():
    """Other results need no reason."""
    undecided = judge(beats(), pairs([0.1] * 3), Terms(out_of_budget="budget of 9 s used"))
    held = judge(beats(), pairs([0.1] * 12))
    said = [junit._result(verdict) for verdict in (undecided, held)]

    assert said[0].startswith("inconclusive 1.1")
    assert said[0].endswith(": budget of 9 s used")
    assert said[1].startswith("holds 1.1")
    assert ": " not in said[1]
