"""Alternating runs, their figures, and what a script says of its target."""

import argparse
import math

import pytest

from benchmarks import ratios
from pytest_dbcluster import redaction
from pytest_dbcluster.errors import ProvisionError


def test_runs_alternate():
    """Every action runs once before any runs again, and each has a column of its own."""
    called = []

    def action(name, value):
        return lambda: called.append(name) or value

    assert ratios.alternate(3, action("a", 1.0), action("b", 2.0)) == [[1.0] * 3, [2.0] * 3]
    assert called == ["a", "b", "a", "b", "a", "b"]


def test_a_ratio_is_taken_run_by_run():
    """A minute that is slow for both leaves the ratio alone: it is no quotient of two averages."""
    found = ratios.ratio([1.0, 10.0, 1.5], [2.0, 20.0, 2.0])

    assert (found.median, found.least, found.most) == (0.5, 0.5, 0.75)
    assert str(found) == "0.5 (0.5 .. 0.75)"


def test_a_difference_is_taken_run_by_run():
    """The median of the differences is shown with the least and the most."""
    found = ratios.difference([3.0, 5.0, 9.0], [1.0, 1.0, 1.0])

    assert (found.median, found.least, found.most) == (4.0, 2.0, 8.0)


def test_runs_that_do_not_pair_are_refused():
    """A run without its counterpart has no ratio."""
    with pytest.raises(ValueError, match="zip"):
        ratios.ratio([1.0, 2.0], [1.0])


def test_no_run_gives_no_figure():
    """Nothing measured is an error and not a zero."""
    with pytest.raises(ValueError, match="one run or more"):
        ratios.Figure.of([])


@pytest.mark.parametrize(("value", "said"), [(2.9, "met"), (3.0, "met"), (3.1, "not met"), (math.nan, "not met")])
def test_a_target_is_met_up_to_its_value(value, said):
    """What could not be computed has not met it."""
    assert ratios.target_text(value, 3.0) == f"target <= 3: {said}"


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", ""])
def test_runs_are_whole_numbers_above_zero(text):
    """The message shows what was given."""
    with pytest.raises(argparse.ArgumentTypeError, match="whole number above 0"):
        ratios.positive(text)


def test_a_line_has_both_sides_their_ratio_and_the_target():
    """The target is one of the ratio, or of our side alone; without one nothing is judged."""
    ours, others = [3.0, 3.0], [1.0, 1.5]
    sides = "| ready | 3 (3 .. 3) | 1.25 (1 .. 1.5) | 2.5 (2 .. 3) | "

    assert ratios.line("ready", ours, others, 2.75) == f"{sides}target <= 2.75: met |"
    assert ratios.line("ready", ours, others, 2.75, absolute=True) == f"{sides}target <= 2.75: not met |"
    assert ratios.line("ready", ours, others) == f"{sides} |"


def test_runs_have_a_default():
    """--runs is optional."""
    parser = ratios.arguments("what it does", 7, "bring-ups")

    assert parser.parse_args([]).runs == 7
    assert parser.parse_args(["--runs", "2"]).runs == 2
    assert "bring-ups (default 7)" in parser.format_help()


def test_ctrl_c_ends_a_script_as_a_shell_expects(capsys):
    """The status is 130, and no traceback is shown."""

    def main():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        ratios.run(main)

    assert ended.value.code == ratios.INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


def test_what_could_not_be_measured_says_why_without_passwords():
    """The error's own words end the script; a password in them does not show."""
    password = redaction.new_password()

    def main():
        raise ProvisionError(f"no server with {password}")

    with pytest.raises(SystemExit, match="no server with") as ended:
        ratios.run(main)

    assert password not in str(ended.value)
