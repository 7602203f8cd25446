"""How long a run will take."""

import types
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.collection import expected_time
from tests.support import golden
from tests.support.facts import missing


def item(*arguments, path="test_flush.py", release=None, **named):
    """A measuring test; arguments are those of its mark, if it has any."""
    mark = types.SimpleNamespace(args=arguments, kwargs=named) if arguments or named else None
    callspec = types.SimpleNamespace(params={"db_release": release} if release else {})
    return types.SimpleNamespace(
        nodeid=f"{path}::test", path=Path(path), callspec=callspec, get_closest_marker={"expected_seconds": mark}.get
    )


def event_item(*arguments):
    """A measuring test whose source asks for six repetitions of an event."""

    def kill(measure):
        assert measure.event("tpcc", "kill", on="galera", times=6).loses_nothing()

    made = item(*arguments)
    made.function = kill
    return made


def test_a_test_of_events_counts_its_repetitions():
    """And no pairs of rounds, unless a mark says how long it takes."""
    found = expected_time.estimate([event_item(), event_item(300), item()], "quick")

    assert (found.events, found.repetitions, found.unknown) == (1, 6, 1)
    assert found.seconds == 6 * expected_time.REPETITION_SECONDS + 300 + 45 + 4
    assert expected_time.seconds_of(event_item(), "quick") == 6 * expected_time.REPETITION_SECONDS


def test_a_test_that_declares_nothing_counts_by_the_model():
    """30 pairs of two rounds of half a second, half as much again beside them, and a cluster for each file."""
    found = expected_time.estimate([item(), item(), item(path="test_threads.py")], "quick")

    assert found.seconds == 3 * 45 + 2 * 4
    first, second = expected_time.lines(found, 120.0)
    facts = ("about 2 min", "3 tests x 45 s", "2 cluster starts x 4 s")
    assert missing(first, *facts) == []
    assert "120 s" in second


def test_golden_lines_about_the_expected_time():
    """They are those of the golden file."""
    several = expected_time.Expected(9, 2, 3, (20.0, 40.0), 1, 2, 45.0, 700.0, 1.5)
    events = [event_item(), event_item()]
    lines = {
        "of events": expected_time.lines(expected_time.estimate(events, "quick"), 120.0),
        "of events and rounds": expected_time.lines(expected_time.estimate([*events, item()], "quick"), 120.0),
        "by the model": expected_time.lines(expected_time.estimate([item(), item()], "quick"), 120.0),
        "by all": expected_time.lines(several, 120.0, (20.0, 40.0)),
    }
    golden.compare("expected_time", {title: "\n".join(each) for title, each in lines.items()})


def test_a_declared_time_is_taken_as_it_is():
    """The mark's seconds count instead of the model's."""
    found = expected_time.estimate([item(300), item()], "quick")

    assert found.seconds == 300 + 45 + 4
    assert "1 test x 45 s = " in expected_time.lines(found, 120.0)[0]
    assert "; 1 test by mark expected_seconds; " in expected_time.lines(found, 120.0)[0]


def test_declared_times_alone_need_no_model():
    """Where every test declares its time, the model is not mentioned."""
    line = expected_time.lines(expected_time.estimate([item(30)], "quick"), 120.0)[0]
    assert "(1 test by mark expected_seconds; 1 cluster start x 4 s)" in line


def test_each_release_starts_its_own_cluster():
    """A matrix of two releases starts twice as many clusters."""
    found = expected_time.estimate([item(release="mariadb:10.11"), item(release="mariadb:11.8")], "quick")

    assert found.starts == 2


def test_tests_that_will_be_skipped_are_shown_apart():
    """They take no time and start nothing."""
    found = expected_time.estimate([item()], "quick", skipped=3)

    assert (found.tests, found.starts, found.seconds) == (1, 1, 45 + 4)
    assert expected_time.lines(found, 120.0)[0].endswith("; 1 cluster start x 4 s; 3 tests will be skipped)")


def test_the_paper_profile_costs_more():
    """The published command line makes its table anew each time."""
    assert expected_time.estimate([item()], "paper").per_test == 390


def test_a_run_that_measures_nothing_says_nothing():
    """Without measuring tests there is no line."""
    assert expected_time.lines(expected_time.estimate([], "quick"), 120.0) == []


@pytest.mark.parametrize(
    ("arguments", "named", "given"),
    [(("long",), {}, "'long'"), ((0,), {}, "0"), ((True,), {}, "True"), ((1, 2), {}, "1, 2"), ((), {"n": 3}, "n=3")],
)
def test_a_wrong_declaration_is_refused(arguments, named, given):
    """The mark takes one number above zero, and says so with the test's name."""
    with pytest.raises(ConfigError) as caught:
        expected_time.estimate([item(*arguments, **named)], "quick")

    facts = (f"test_flush.py::test: expected_seconds({given}) ", "one number of seconds", "above 0")
    assert missing(caught.value, *facts) == []
