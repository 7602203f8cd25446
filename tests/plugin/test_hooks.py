"""What pytest makes of claims: outcomes and texts. The rounds are made up, so no server is started."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import CommandFailed, Unsupported
from pytest_dbcluster.measuring.series import Series
from pytest_dbcluster.plugin.session import DBSession
from pytest_dbcluster.reporting.charts import drawing
from tests.support.suites import FAILS, HOLDS, OPEN, PLAIN, TIMED


def test_a_claim_that_holds_is_a_pass(run):
    """Nothing else is."""
    run(HOLDS).assert_outcomes(passed=1)


def test_a_claim_that_fails_is_a_failure_with_its_message(run):
    """Sentence, next step and figures are shown, not pytest's repr; with -vv also the details."""
    first = ["REFUTED: v0 is not faster than v1; measured 0.*x (99.9 % interval *), claimed *", "  next: the page *"]
    result = run(FAILS)

    result.assert_outcomes(failed=1)
    figures = "  12 pairs in *; this verdict is wrong at most 1 time in 2000"
    result.stdout.fnmatch_lines([*first, figures, "  noise, seed and all other figures: -vv, or the page"])
    assert "Hodges-Lehmann" not in result.stdout.str()
    run(FAILS, "-vv").stdout.fnmatch_lines([*first, figures, "  details:", "*seed 5", "*Hodges-Lehmann*"])


def test_two_measurements_of_a_test_have_orders_of_their_own(run):
    """Also where their workloads and variants have the same names: their numbers differ."""
    twice = (
        f"{HOLDS}    again, faster = measure(0, on=[1.0, 0.5])\n    assert faster.beats(again)\n"
        "    assert slow.measurement.drawing.blocks.seed != again.measurement.drawing.blocks.seed\n"
    )

    run(twice).assert_outcomes(passed=1)


def test_an_open_claim_is_neither_pass_nor_failure(run):
    """It is shown as I with its own word, and the run does not fail."""
    result = run(OPEN, "--db-max-pairs=12")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["test_suite.py I*", "*1 inconclusive*"])


def test_an_open_claim_does_not_stop_a_run_at_its_first_failure(run):
    """With -x the next test still runs."""
    result = run(OPEN + HOLDS.replace("test_it", "test_next"), "--db-max-pairs=12", "-x")

    assert result.parseoutcomes() == {"passed": 1, "inconclusive": 1}


def test_a_strict_run_fails_on_an_open_claim(run):
    """--db-strict is for gates that want an answer."""
    result = run(OPEN, "--db-max-pairs=12", "--db-strict")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["INCONCLUSIVE: whether v0 is faster than v1; measured *", "  why: cap of 12 pairs", "  next: it needs *"]
    )


def test_measuring_without_a_claim_is_an_error(run):
    """Such a test would be green whatever the servers did."""
    result = run("def test_it(measure):\n    measure(0, on=[1.0, 0.5])\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["test_suite.py::test_it measured fake load but makes no claim; add assert a.beats(b) or another claim"]
    )


def test_a_verdict_that_nobody_read_is_an_error(run):
    """A claim without assert would be green whatever the answer."""
    result = run(FAILS.replace("assert ", ""))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["test_suite.py::test_it: the test does not read the verdict of v0.beats(v1); assert it"]
    )


def test_each_measurement_of_a_test_needs_a_claim(run):
    """A second one is not covered by the first one's claims."""
    result = run(HOLDS + "    measure(0, on=[1.0, 0.5])\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*measured fake load but makes no claim*"])


def test_a_comparison_beside_needs_no_assert(run):
    """It claims nothing; it is printed."""
    source = "def test_it(measure):\n    a, b = measure(0, on=[1.0, 0.5])\n    a.against(b)\n    assert b.beats(a)\n"

    run(source).assert_outcomes(passed=1)


def test_a_failing_body_is_shown_instead_of_what_it_did_not_reach(run):
    """The test's own error is the one that counts."""
    result = run("def test_it(measure):\n    measure(0, on=[1.0, 0.5])\n    raise ValueError('mine')\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: mine*"])
    result.stdout.no_fnmatch_line("*makes no claim*")


def test_what_the_machine_lacks_is_a_skip(run, monkeypatch):
    """With the reason; other errors of ours are failures that show their text alone."""
    source = "import pytest_dbcluster.errors as e\ndef test_it(measure):\n    measure({}, on=[])\n"
    result = run(source.format(f"e.{Unsupported.__name__}('no netem here')"), "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * no netem here"])

    result = run(source.format(f"e.{CommandFailed.__name__}(['ls'], 2, '', 'no such file')"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["ls on localhost ended with 2: no such file"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ([], ["index.html", "mine.txt", "run.json"]),
        (["--collect-only"], ["claims.jsonl", "mine.txt", "summary.md"]),
        (["-k", "other"], None),
    ],
    ids=["a run", "a collection", "a run that measures nothing"],
)
def test_a_run_that_measures_begins_without_the_claims_of_the_one_before(run, pytester, monkeypatch, words, left):
    """They are not shown as its own where every test of it is skipped or breaks before the first claim."""
    monkeypatch.setattr(drawing, "available", lambda: True)  # the page needs it
    latest = pytester.path / "reports" / "latest"
    latest.mkdir(parents=True)
    for name in ("claims.jsonl", "summary.md", "mine.txt"):
        (latest / name).touch()
    source = (
        "import pytest_dbcluster.errors as e\ndef test_it(measure):\n    measure(e.Unsupported('no netem'), on=[])\n"
    )
    run(source + "def test_other():\n    pass\n", *words)

    assert sorted(one.name for one in latest.iterdir() if one.is_file()) == (
        left or ["claims.jsonl", "mine.txt", "summary.md"]
    )


def test_a_run_whose_time_is_used_prepares_nothing(run):
    """Its other tests are undecided before their releases are looked for."""
    source = "def test_it(measure):\n    measure(ValueError('prepared'), on=[1.0, 0.5])\n"
    result = run(source, "--db-run-budget=0.000001", "-rs", "-v")

    assert result.parseoutcomes() == {"inconclusive": 1}
    run(source).assert_outcomes(failed=1)


def test_an_answer_is_true_without_is(run):
    """`is True` is red whatever the answer; the message writes the assert that was meant."""
    result = run(HOLDS.replace("fast.beats(slow)", "fast.beats(slow) is True"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E*assert <v1.beats(v0): holds> is True", "E*an answer is neither True nor False: write assert v1.beats(v0)"]
    )


def test_two_series_are_never_equal(run):
    """The message writes the claim that was meant."""
    result = run(HOLDS.replace("fast.beats(slow)", "fast == slow"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*write a claim, such as assert v1.same_as(v0, within=0.05)"])


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (HOLDS.replace("(slow)", "(slow) == True"), "passed"),
        (FAILS.replace("(fast)", "(fast) == True"), "failed"),
        (OPEN.replace("(other)", "(other) == True"), "inconclusive"),
    ],
)
def test_an_answer_compared_with_true_is_the_answer(run, source, outcome):
    """What holds passes, what fails is red with its message, what is inconclusive is shown as I."""
    result = run(source, "--db-max-pairs=12")

    assert result.parseoutcomes() == {outcome: 1}
    if outcome == "failed":
        result.stdout.fnmatch_lines(["REFUTED: v0 is not faster than v1; measured *"])


def test_the_list_of_fixtures_names_every_claim(run):
    """`pytest --fixtures` says what measure gives, and how each claim is written."""
    result = run(PLAIN, "--fixtures")
    text = result.stdout.str().partition("measure -- ")[2].partition("\n\n")[0]

    claims = [name for name, value in vars(Series).items() if callable(value) and not name.startswith("_")]
    assert {"beats", "no_slower_than", "same_as", "scales", "lower", "against"} <= set(claims)
    assert [name for name in claims if name != "values" and f".{name}(" not in text] == []
    for words in ("on=[spec, other_spec]) gives", "ordered(", "measure.sweep(", "curve.every(", "measure: Measure"):
        assert words in text, words


def test_a_budget_too_small_for_the_rounds_is_an_error(run, monkeypatch):
    """With the smallest one that suffices, before anything is made for the test."""
    monkeypatch.setattr(DBSession, "measurement", lambda *_, **__: pytest.fail("begun"))
    result = run(TIMED, "--db-budget=20")

    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(
        ["*tpcc w1 t4: the budget is too small for any claim: *--db-budget 32, or seconds=1.25 or less*"]
    )


def test_the_rest_of_the_run_is_too_short_for_a_claim(run, monkeypatch):
    """It is inconclusive before anything is made for it."""
    monkeypatch.setattr(DBSession, "measurement", lambda *_, **__: pytest.fail("begun"))
    assert run(TIMED, "--db-run-budget=20").parseoutcomes() == {"inconclusive": 1}
    result = run(TIMED, "--db-run-budget=20", "--db-strict")

    said = "*the run's budget has * s left (--db-run-budget), and this claim takes 40 s or more*"
    result.stdout.fnmatch_lines([said])
