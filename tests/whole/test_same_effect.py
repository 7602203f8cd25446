"""``same_effect`` is seen wherever claims are shown."""

from __future__ import annotations

import json
from pathlib import Path

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
ANCHOR = """
from pytest_dbcluster.testbed import anchor
anchor.measured = lambda provisioner, images, progress: 1000.0
"""
SUITE = """
    from pytest_dbcluster import ClusterSpec, same_effect

    A, B, C, D = (ClusterSpec("galera", nodes=3, name=name) for name in ("default", "threads_4", "flush_2", "both"))

    def test_options_do_not_interact(measure):
        default, threads_4, flush_2, both = measure("mysqlslap write", on=[A, B, C, D])
        assert same_effect((default, threads_4), (flush_2, both), within=0.1)
"""
OPTIONS = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:benchmark", "--db-seed=5"]
OUTPUTS = ["--junitxml=junit.xml", "--db-history=history.jsonl", "--alluredir=allure"]


def test_it_is_shown_wherever_claims_are(pytester, monkeypatch):
    """Terminal, page, Allure, summary, history, JUnit and CSV have it."""
    monkeypatch.setenv("FASTER", "1")
    monkeypatch.setenv("COLUMNS", "250")
    pytester.makeconftest(FAKE.read_text() + ANCHOR)
    pytester.makepyfile(test_suite=SUITE)
    result = pytester.runpytest_subprocess(*OPTIONS, *OUTPUTS)
    call = "same_effect((default, threads_4), (flush_2, both), within=0.1)"
    says = "both against flush_2 is the same as threads_4 against default within 10 %"
    latest = pytester.path / "reports" / "latest"

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*holds  both gains as much as threads_4*", "*ratio 1.*90 %: *claimed 0.90 .. 1.1111x*"]
    )
    [line] = map(json.loads, (latest / "claims.jsonl").read_text().splitlines())
    assert (line["kind"], line["text"]) == ("same_effect", call)
    assert says in (latest / "index.html").read_text()
    assert call in (latest / "summary.md").read_text()
    assert call in (pytester.path / "junit.xml").read_text()
    assert "same_effect" in (pytester.path / "history.jsonl").read_text()
    assert any(says in file.read_text() for file in (pytester.path / "allure").glob("*-result.json"))
    assert (latest / line["rounds_file"]).read_text().count("\n") > 4 * line["verdict"]["pairs"]
