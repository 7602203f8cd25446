"""No line of ours is wider than a terminal of 80 columns, whatever happens in a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = ["-Wignore", *conftests.PLAIN, "--db-seed=5", "--db-max-pairs=12"]
WIDTH = 80
# Lines of pytest's own, and the command to type next, which is one line so that it can be copied.
OTHERS = ("platform ", "rootdir:", "plugins:", "    pytest ")
SENTENCE = "node2 of the cluster galera3 ended on its own while the load was running, and its log says nothing about it"
SUITE = f"""
    import pytest
    from pytest_dbcluster import errors
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("a_variant_whose_name_is_quite_long")

    @pytest.mark.parametrize("by", [0, 1.5, 0.501])
    def test_holds_is_refuted_and_stays_open(measure, by):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one, by=by)

    def test_dies(measure):
        one, other = measure("dies", on=[ONE, OTHER])
        assert other.beats(one)

    def test_breaks(measure):
        raise errors.ProvisionError("{SENTENCE}\\n  its log: {SENTENCE}\\n\\nand no more")

    def test_is_not_read(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        other.beats(one)

    def test_is_skipped(measure):
        raise errors.Unsupported("{SENTENCE}")
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds with every kind of outcome; no charts."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def too_wide(lines):
    """The lines that a terminal would wrap; a word that is wider than the terminal stays whole."""
    return [line for line in lines if len(line) > WIDTH and " " in line.strip() and not line.startswith(OTHERS)]


@pytest.mark.parametrize("how", [[], ["-v"], ["-n1"], ["--db-strict"]], ids=["plain", "verbose", "workers", "strict"])
def test_every_outcome_fits(suite, how):
    """Header, claims, failures and summary; nothing of a message is lost, and its lines stay apart."""
    result = suite.runpytest_inprocess(*WORDS, *how)
    said = " ".join(result.stdout.str().split())

    assert too_wide(result.outlines) == []
    assert result.parseoutcomes()["failed"] == 4 + ("--db-strict" in how)
    assert f"{SENTENCE} its log: {SENTENCE} and no more" in said
    assert "REFUTED: a_variant_whose_name_is_quite_long is not more than 150 % faster than galera3; measured 1." in said
    assert "the test does not read the verdict of a_variant_whose_name_is_quite_long.beats(galera3); assert it" in said
    assert result.outlines[result.outlines.index("and no more") - 1] == ""
    assert "Traceback" not in said
    assert "def __bool__" not in said


def test_the_text_of_junit_is_not_wrapped(suite):
    """Only what is written on a terminal is: a program reads the sentence as it is."""
    suite.runpytest_inprocess(*WORDS, "--junit-xml=junit.xml", "-k", "breaks")

    assert f"{SENTENCE}\n  its log: {SENTENCE}" in (suite.path / "junit.xml").read_text()


REFUSED = {
    "release": ("--db-release=oracle:23", SUITE, "oracle"),
    "spec": ("--db-seed=5", SUITE.replace("nodes=3", "nodes=0"), "nodes"),
    "rerun": (
        "--db-seed=5",
        SUITE.replace("def test_dies", "@pytest.mark.flaky\n    def test_dies"),
        "must not run again",
    ),
    "results": ("--db-results=file/below", SUITE, "choose another one with --db-results DIR"),
}


@pytest.mark.parametrize(
    ("workers", "option", "source", "said"),
    [
        *(pytest.param([], *given, id=f"{name}-one process") for name, given in REFUSED.items()),
        *(
            pytest.param(["-n1"], *given, id=f"{name}-a worker", marks=() if name == "spec" else pytest.mark.thorough)
            for name, given in REFUSED.items()
        ),
    ],
)
def test_every_refusal_fits(suite, workers, option, source, said):
    """What ends a run before its first test."""
    (suite.path / "file").touch()
    suite.makepyfile(test_suite=source)
    result = suite.runpytest_inprocess(*WORDS, *workers, option)
    lines = [*result.outlines, *result.errlines]

    assert said in " ".join(" ".join(lines).split())
    assert too_wide(lines) == []
    assert "passed" not in result.parseoutcomes()
