"""The budget of a test's own: the mark ``budget``."""

import re
import types
from pathlib import Path

import pytest

import pytest_dbcluster.plugin.session  # noqa: F401 (imported once, not in each run)
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.collection import budgets, expected_time
from tests.support import conftests
from tests.support.facts import missing

FAKE = Path(__file__).parents[2] / "support" / "fake_session.py"
TEST = """
    import pytest
    from pytest_dbcluster.spec import ClusterSpec

    GALERA = ClusterSpec("galera", nodes=3)
    FLUSH_2 = ClusterSpec("galera", nodes=3, name="flush_2")

    @pytest.mark.budget(20)
    def test_flush(measure):
        default, flush_2 = measure("mysqlslap write", on=[GALERA, FLUSH_2])
        assert flush_2.beats(default)
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a made-up suite of noisy rounds; its arguments are those of pytest."""
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    monkeypatch.delenv("PYTEST_PLUGINS")
    for name, value in {"COLUMNS": "400", "FASTER": "1.15", "SD": "0.2"}.items():
        monkeypatch.setenv(name, value)

    def run(*arguments, source=TEST):
        pytester.makepyfile(test_it=source)
        words = ("-Werror", "-p", "pytest_dbcluster.plugin.hooks", "--db-seed=1", "-rs")
        return pytester.runpytest_inprocess(*words, *arguments)

    return run


def item(*arguments, **named):
    """A measuring test; arguments are those of its mark, if it has any."""
    mark = types.SimpleNamespace(args=arguments, kwargs=named) if arguments or named else None
    return types.SimpleNamespace(
        nodeid="test_it.py::test", path=Path("test_it.py"), get_closest_marker={"budget": mark}.get
    )


def settings(**changes):
    """The options of a run, as far as a budget depends on them."""
    return types.SimpleNamespace(**{"budget": 120.0, "fixed_budget": False, **changes})


def test_a_mark_replaces_the_budget_of_the_profile():
    """A larger one as well as a smaller one; a test without a mark has that of the profile."""
    assert [budgets.of(each, settings()) for each in (item(), item(600), item(0.5))] == [120.0, 600.0, 0.5]


def test_the_profile_paper_has_ten_times_as_much():
    """As its own budget is ten times that of the profile quick, for which marks are written."""
    assert budgets.of(item(600), settings(budget=1200.0)) == 6000.0


def test_the_option_wins_over_the_mark():
    """Who gives --db-budget means all tests of the run."""
    assert budgets.of(item(600), settings(budget=9.0, fixed_budget=True)) == 9.0
    assert budgets.own(item(600), settings(budget=9.0, fixed_budget=True)) is None


@pytest.mark.parametrize(
    ("arguments", "named", "given"),
    [
        (("long",), {}, "'long'"),
        ((0,), {}, "0"),
        ((float("inf"),), {}, "inf"),
        ((float("nan"),), {}, "nan"),
        ((True,), {}, "True"),
        ((1, 2), {}, "1, 2"),
        ((), {"seconds": 3}, "seconds=3"),
    ],
)
def test_a_wrong_mark_is_refused(arguments, named, given):
    """Also where the option wins; the error names the test and what the mark takes."""
    for option in (settings(), settings(fixed_budget=True)):
        with pytest.raises(ConfigError) as caught:
            budgets.of(item(*arguments, **named), option)
        facts = (f"test_it.py::test: budget({given}) ", "one number of seconds", "above 0")
        assert missing(caught.value, *facts) == []


def test_the_expected_time_follows_the_mark():
    """A claim uses the same share of its budget as one without a mark, and the lines say whose budget it is."""
    own = {"small": 12.0, "large": 600.0}
    items = [types.SimpleNamespace(**vars(item())) for _ in range(3)]
    marked = dict(zip(map(id, items), own.values(), strict=False))
    found = expected_time.estimate(items, "quick", own=lambda each: marked.get(id(each)))

    assert (found.own, found.seconds) == ([4.5, 225.0], 45 + 4.5 + 225 + 4)
    first, second = expected_time.lines(found, 120.0, [*own.values()])
    assert "(1 test x 45 s = 30 pairs x 2 rounds x 0.5 s x 1.5; 2 tests by mark budget, 4 min; 1 cluster" in first
    usual = ("a claim without a verdict", "after 120 s of measured time (--db-budget)")
    assert missing(second, *usual, "2 tests after 12 to 600 s", "(mark budget)") == []


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n1")], ids=["one process", "a worker"])
def test_a_claim_ends_with_the_budget_of_its_test(run, workers):
    """Its message says that the mark ended it, and what budget would decide it; so does a run with workers."""
    result = run(*workers)

    said = result.stdout.str()
    assert "those of 1 test after 20 s (mark budget)" in said
    assert re.search(r"20 s of measured time (used )?\(mark budget\)", said)
    result.stdout.re_match_lines([r" +pytest test_it\.py::test_flush --db-budget \d{2,3}"])


def test_the_option_ends_a_claim_of_a_marked_test(run):
    """It is given for this run, the mark for any."""
    said = run("--db-budget=15").stdout.str()

    assert re.search(r"15 s of measured time (used )?\(--db-budget\)", said)
    assert "mark budget" not in said


def test_the_budget_of_the_run_limits_a_marked_test(run):
    """A budget of its own gives a test no more of the time of the run."""
    result = run("--db-run-budget=0.000001", source=TEST.replace("budget(20)", "budget(600)"))

    assert "the run's budget of 1e-06 s is spent (--db-run-budget)" in result.stdout.str()


def test_a_wrong_mark_ends_the_run_before_its_tests(run):
    """As a usage error."""
    result = run(source=TEST.replace("budget(20)", "budget('long')"))

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_it.py::test_flush: budget('long') accepts one number of seconds above 0"])


def test_pytest_lists_the_mark(run):
    """With what it takes and what wins over it."""
    run("--markers").stdout.fnmatch_lines(["@pytest.mark.budget(N): measured seconds *--db-budget*wins"])


def test_an_answer_is_taken_over_with_the_same_budget_alone(run):
    """A continued run measures a claim again when its test has got another budget."""
    run()
    assert "taken over" in run("--db-resume").stdout.str()
    again = run("--db-resume", source=TEST.replace("budget(20)", "budget(21)")).stdout.str()

    assert re.search(r"21 s of measured time (used )?\(mark budget\)", again)
    assert "the run's options changed" in again
