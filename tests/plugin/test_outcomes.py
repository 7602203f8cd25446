"""What a verdict means for a test: whole runs of pytest on made-up rounds."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import pytest_dbcluster.plugin.session  # noqa: F401 (imported once, not in each run)
from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
TEST = """
    import pytest
    from pytest_dbcluster.spec import ClusterSpec

    GALERA = ClusterSpec("galera", nodes=3)
    FLUSH_2 = ClusterSpec("galera", nodes=3, name="flush_2")

    def test_flush(measure):
        default, flush_2 = measure({load!r}, on=[GALERA, FLUSH_2])
        assert flush_2.beats(default)
"""
PASSING = "\n\n    def test_after():\n        pass\n"


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a made-up suite; its arguments are those of pytest. Charts and page are made where a test asks for them."""
    monkeypatch.delenv("PYTEST_PLUGINS")
    monkeypatch.setenv("COLUMNS", "400")  # no line of ours is wrapped

    def run(*arguments, faster=1.5, sd=0.02, load="mysqlslap write", source=TEST, more="", charts=False):
        pytester.makeconftest(FAKE.read_text() + ("" if charts else conftests.NO_CHARTS))
        monkeypatch.setenv("FASTER", str(faster))
        monkeypatch.setenv("SD", str(sd))
        pytester.makepyfile(source.format(load=load) + more)
        return pytester.runpytest_inprocess("-Werror", "-p", "pytest_dbcluster.plugin.hooks", "--db-seed=1", *arguments)

    return run


UNDECIDED = {"faster": 1.02, "sd": 0.3}


UNREAD = TEST.replace("assert flush_2", "flush_2")


def test_a_claim_that_is_not_asserted_has_no_tick(run, pytester):
    """It is no verdict of its test, which is red: it is shown as a comparison, in the terminal and in the results."""
    result = run(source=UNREAD)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  = compared  flush_2 is 1.*x as fast as galera3*", "1 compared, 1 broken*"])
    result.stdout.no_fnmatch_line("*holds*")
    [line] = (pytester.path / "reports" / "latest" / "claims.jsonl").read_text().splitlines()
    assert json.loads(line)["asserted"] is False
    assert "| not asserted |" in (pytester.path / "reports" / "latest" / "summary.md").read_text()


def test_a_claim_is_shown_when_it_is_asserted(run):
    """Also where the test does something else in between, and where the claim is red."""
    later = TEST.replace("assert flush_2.beats(default)", "said = flush_2.beats(default); print('later'); assert said")
    result = run("-s", source=later, faster=0.5)

    result.stdout.fnmatch_lines(["*later", "  ✗ refuted  flush_2 is 0.*x as fast as galera3*"])


BROKEN = TEST.replace("assert flush_2.beats(default)", "assert flush_2.beats(default, by='much')")


@pytest.mark.parametrize(
    ("ci", "workers"),
    [("", ()), ("true", ()), ("true", ("-p", "xdist", "-n1"))],
    ids=["one process", "in CI", "a worker in CI"],
)
def test_the_message_of_a_broken_test_is_shown_once(run, monkeypatch, ci, workers):
    """Where pytest shows failures; its short summary and ours have the name of the test."""
    monkeypatch.setenv("CI", ci)
    result = run(*workers, source=BROKEN)

    result.assert_outcomes(failed=1)
    assert result.stdout.str().count("beats(by='much'): by must be a number") == 1
    result.stdout.fnmatch_lines(["! broken  test_*.py::test_flush", "FAILED test_*.py::test_flush"])


def test_without_failures_the_message_of_a_broken_test_is_in_our_summary(run):
    """``--tb=no`` leaves out pytest's."""
    result = run("--tb=no", source=BROKEN)

    assert result.stdout.str().count("beats(by='much'): by must be a number") == 1
    result.stdout.fnmatch_lines(["! broken  test_*.py::test_flush", "*beats(by='much'): by must be a number*"])


def test_a_claim_that_holds_passes(run, pytester):
    """The test is green, and the table shows its claim."""
    result = run(charts=True)

    assert result.ret == 0
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*= performance claims =*",
            "✓ holds  flush_2 is 1.*x as fast as galera3   mysqlslap write",
            "*1 holds*report: *",
        ]
    )


LOUD = """
    from pytest_dbcluster import errors

    def test_broken(measure):
        raise errors.ProvisionError("a log says \\x1b[2J\\nand more")

    def test_skipped(measure):
        raise errors.Unsupported("a release lacks \\x1b[31m")
"""


def test_an_error_that_quotes_a_log_does_not_control_the_terminal(run):
    """Escape sequences are shown as such, in the failures and in the reasons of skipped tests."""
    result = run("-rs", "--color=no", source=LOUD)

    result.assert_outcomes(failed=1, skipped=1)
    output = result.stdout.str()
    assert "\x1b" not in output
    assert "a log says \\x1b[2J\nand more" in output
    assert "a release lacks \\x1b[31m" in output


def test_an_undecided_claim_is_neither_pass_nor_failure(run):
    """It is shown as I and counted apart, and the run succeeds."""
    result = run("--db-max-pairs=12", **UNDECIDED | {"faster": 1.25, "sd": 0.3})

    assert result.ret == 0
    command = "    pytest test_*.py::test_flush --db-budget 80"
    result.stdout.fnmatch_lines(
        [
            "*= inconclusive: neither pass nor failure =*",
            "*cap of 12 pairs*",
            "*needs about * s more, * pairs*",
            command,
        ]
    )
    result.stdout.fnmatch_lines(["*= 1 inconclusive in *"])
    assert "I" in [line.split(" ")[0] for line in result.outlines]


def test_strict_makes_an_undecided_claim_red(run):
    """With --db-strict it fails, and the message says why."""
    result = run("--db-max-pairs=12", "--db-strict", **UNDECIDED)

    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["INCONCLUSIVE: whether flush_2 is faster than galera3; *", "  why: cap of 12 pairs*"])


def test_exit_first_goes_on_after_an_undecided_claim(run):
    """-x stops at failures; an open claim is none."""
    result = run("-x", "--db-max-pairs=12", more=PASSING, **UNDECIDED)

    assert result.ret == 0
    result.stdout.fnmatch_lines(["*= 1 passed, 1 inconclusive in *"])


def test_a_refuted_claim_shows_its_whole_message(run):
    """With -vv the failure is every line of the message, without a traceback."""
    result = run("-vv", faster=0.7)

    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*_ test_flush _*",
            "REFUTED: flush_2 is not faster than galera3; measured 0.*x (99.9 % interval 0.* .. 0.*), claimed *",
            "  next: the page shows which counters differ between the variants",
            "  12 pairs in *; medians *; this verdict is wrong at most 1 time in 2000",
            "  details:",
            "  flush_2.beats(galera3) *, seed *",
            "  estimate 0.*x (0.* .. 0.*)*-> interval lies below the claim",
            "  noise: pair sd *",
            "  settle timeouts 0",
            "  carry-over: rounds after flush_2 take *",
            "  durability: made up",
        ],
        consecutive=True,
    )
    assert "Traceback" not in result.stdout.str()
    assert "def test_flush" not in result.stdout.str()


def test_what_could_not_be_told_shows_its_message(run):
    """An error of ours is red and one sentence, without a traceback."""
    result = run(load="dies")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["*_ test_flush _*", "tables differ on node db2"], consecutive=True)
    assert "def test_flush" not in result.stdout.str()


def test_the_short_summary_and_junit_know_every_outcome(run, pytester):
    """-ra lists failures with their node id; in JUnit an open claim is skipped with its message."""
    result = run("-ra", "--junitxml=junit.xml", "--db-max-pairs=12", **UNDECIDED)
    [case] = ElementTree.parse(pytester.path / "junit.xml").getroot().iter("testcase")

    assert result.ret == 0
    assert (
        case.find("skipped")
        .get("message")
        .startswith("INCONCLUSIVE: whether flush_2 is faster than galera3; measured ")
    )

    result = run("-ra", "--junitxml=junit.xml", faster=0.7)
    [case] = ElementTree.parse(pytester.path / "junit.xml").getroot().iter("testcase")

    result.stdout.fnmatch_lines(["FAILED test_*::test_flush*"])
    assert case.find("failure").text.startswith("REFUTED: flush_2 is not faster than galera3; measured ")


def test_a_log_has_plain_lines(run, monkeypatch):
    """Without a terminal, warm-up, pairs and the verdict are lines of their own."""
    monkeypatch.setenv("COLUMNS", "100")
    result = run()

    result.stdout.fnmatch_lines(
        [
            "   mysqlslap write   warm-up   * 0.* s, * 0.* s",
            "   mysqlslap write   block 1   * s   beats   1 of 120 s",
            "  ✓ holds  flush_2 is 1.*x as fast as galera3   mysqlslap write",
            "           99.9 %: 1.* .. 1.*   1/2  *┼*●* 4",
        ]
    )


def test_a_run_says_its_expected_time_first(run):
    """Before the first test stands how long all of them will take."""
    result = run()

    result.stdout.fnmatch_lines(
        [
            "expected time: about 49 s at a round CV of 10 % (1 test x 45 s = *; 1 cluster start x 4 s)",
            "a claim without a verdict ends after 120 s of measured time (--db-budget)",
        ]
    )


def test_a_wrong_expected_time_is_a_usage_error(run):
    """A declaration that is no number ends the run before it starts."""
    marked = TEST.replace("def test_flush", "@pytest.mark.expected_seconds('long')\n    def test_flush")
    result = run(source=marked)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_*::test_flush: expected_seconds('long') accepts one number of seconds*"])


FADES = """
    from pytest_dbcluster import ClusterSpec, fades

    ONE_FAR, ONE, MANY, MANY_FAR = (
        ClusterSpec("galera", nodes=3, name=name) for name in ("one_far", "one", "many", "many_far")
    )

    def test_fades(measure):
        one_far, one, many, many_far = measure({load!r}, on=[ONE_FAR, ONE, MANY, MANY_FAR])
        assert fades((one, one_far), (many, many_far))
"""


def test_a_loss_that_fades_is_shown_and_kept(run, pytester):
    """In the terminal, in JUnit's file, in the results, and on the page: with both ratios."""
    result = run("--junitxml=junit.xml", source=FADES, faster=2, charts=True)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["  ✓ holds  many_far loses less than one_far *", "*x v 0.*x   ratio *   99.9 %: 1.* .. 2.*"]
    )
    latest = pytester.path / "reports" / "latest"
    [claim] = [json.loads(line) for line in (latest / "claims.jsonl").read_text().splitlines()]
    assert (claim["kind"], claim["text"]) == ("fades", "fades((one, one_far), (many, many_far))")
    assert (claim["candidate"], claim["baseline"]) == ("many_far", "many")
    assert (latest / claim["chart_file"]).exists()
    assert "`fades((one, one_far), (many, many_far))`" in (latest / "summary.md").read_text()
    assert "many_far loses less against many than one_far against one" in (latest / "index.html").read_text().lower()
    assert "fades" in (pytester.path / "junit.xml").read_text()


def test_a_loss_that_does_not_fade_is_red(run):
    """Its message names the claim and both ratios."""
    swapped = FADES.replace("fades((one, one_far), (many, many_far))", "fades((many, many_far), (one, one_far))")
    result = run("-vv", source=swapped, faster=2)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "REFUTED: one_far does not lose less against one than many_far against many; *",
            "  fades((many, many_far), (one, one_far)) *",
            "*one_far is 0.* as fast as one, many_far * as fast as many",
            "*refuted  one_far does not lose less than many_far*",
        ]
    )


def test_results_are_kept_where_the_run_says(run, pytester):
    """Claims, rounds and the table are files of --db-results."""
    run("--db-results=kept", "--db-seed=5")
    [claim] = [json.loads(line) for line in (pytester.path / "kept" / "claims.jsonl").read_text().splitlines()]

    assert claim["text"] == "flush_2.beats(galera3)"
    assert claim["seed"] == 5
    assert (pytester.path / "kept" / claim["rounds_file"]).exists()
    assert "`flush_2.beats(galera3)`" in (pytester.path / "kept" / "summary.md").read_text()


def test_other_tests_leave_nothing(run, pytester):
    """A run that measures nothing has no table, no expected time, and no directory."""
    result = run(source="def test_other():\n    pass\n")

    assert result.ret == 0
    assert not (pytester.path / "reports").exists()
    assert "expected time" not in result.stdout.str()
    assert "claim" not in result.stdout.str()
