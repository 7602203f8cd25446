"""What is said while a page is made, and what becomes of a view that fails."""

from pytest_dbcluster.reporting.page.making import Making


class Clock:
    """A clock that the test moves. seconds: what it shows."""

    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        """Its seconds."""
        return self.seconds


def lines(again, step, whole=60):
    """What is said about a page of which each claim takes ``step`` seconds."""
    clock, said = Clock(), []
    making = Making(said.append, again, clock)
    for number in range(1, whole + 1):
        clock.seconds += step
        making.done(number, whole)
    return said


def test_a_fast_page_is_made_in_silence():
    """It is there before anybody asks."""
    assert lines("dbcluster report DIR", 0.03) == []


def test_a_page_that_takes_long_says_how_far_it_is():
    """After two seconds, and then every five."""
    assert lines("dbcluster report DIR", 0.2) == [
        "making the page: 10 of 60 claims",
        "making the page: 35 of 60 claims",
    ]


def test_a_slow_page_says_once_what_else_makes_it():
    """After twenty seconds; nobody has to wait for it."""
    said = lines("dbcluster report DIR", 1.0, 40)

    assert [line for line in said if "slow" in line] == [
        "making the page: 22 of 40 claims after 22 s, which is slow; the results are complete: Ctrl-C leaves the page "
        "out, and `dbcluster report DIR` makes it at any time"
    ]
    assert said[-1] == "making the page: 37 of 40 claims"


def test_the_command_itself_names_no_other_way():
    """Whoever types ``dbcluster report`` waits for its page."""
    assert [line for line in lines("", 1.0) if "slow" in line] == []


def test_a_view_that_fails_is_noted_and_left_out():
    """With its name and its error on one line."""
    making = Making()

    def broken():
        raise ValueError("no\nvalues")

    assert making.view("claim 3", lambda: "made") == "made"
    assert making.view("claim 4", broken) is None
    assert list(making.failed.values()) == [
        "claim 4 could not be shown (ValueError: no values); its figures are in the results directory"
    ]
