"""A kind of claim that a file adds is seen wherever claims are shown."""

from __future__ import annotations

import json
from pathlib import Path

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
KIND = '''
import math

from pytest_dbcluster.claims.claim import Kind, register


class Doubles(Kind):
    """The candidate is twice as fast, less a margin."""

    name = "doubles"
    option = "less"
    below = 1.0
    no_margin = True

    def bounds(self, margin):
        return math.log(2 - margin), math.inf

    def says(self, claim, names, metric, unit, *, true=True):
        return f"{names[0]} {'doubles' if true else 'does not double'} the speed of {names[1]}"


register(Doubles())
from pytest_dbcluster.testbed import anchor
anchor.measure = lambda provisioner, images, progress: 1000.0
'''
SUITE = """
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_double(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.doubles(one, less=0.1)
"""
OPTIONS = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:benchmark", "--db-seed=5"]
OUTPUTS = ["--junitxml=junit.xml", "--db-history=history.jsonl", "--alluredir=allure"]


def test_a_new_kind_is_shown_wherever_claims_are(pytester, monkeypatch):
    """Terminal, page, Allure, summary, history, JUnit and CSV have it, and no module but its own knows it."""
    monkeypatch.setenv("FASTER", "2.5")
    monkeypatch.setenv("COLUMNS", "250")
    pytester.makeconftest(FAKE.read_text() + KIND)
    pytester.makepyfile(test_suite=SUITE)
    result = pytester.runpytest_subprocess(*OPTIONS, *OUTPUTS)
    call, says = "other.doubles(galera3, less=0.1)", "other doubles the speed of galera3"
    latest = pytester.path / "reports" / "latest"

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*holds  other is 2.4* as fast as galera3*", "*claimed > 1.90x*"])
    [line] = map(json.loads, (latest / "claims.jsonl").read_text().splitlines())
    assert (line["kind"], line["text"]) == ("doubles", call)
    assert says in (latest / "index.html").read_text()
    assert call in (latest / "summary.md").read_text()
    assert call in (pytester.path / "junit.xml").read_text()
    assert "doubles" in (pytester.path / "history.jsonl").read_text()
    assert any(says in file.read_text() for file in (pytester.path / "allure").glob("*-result.json"))
    assert (latest / line["rounds_file"]).read_text().count("\n") > line["verdict"]["pairs"]
