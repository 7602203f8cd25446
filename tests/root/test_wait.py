"""Waiting: until nothing is missing, or with the last problem when time is up."""

from __future__ import annotations

import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import NotReady
from tests.support.facts import missing


def test_it_ends_when_nothing_is_missing():
    """The question is asked again until its answer is empty."""
    answers = [["joining"], ["joining"], []]

    assert wait.until(lambda: answers.pop(0), "node2", seconds=10, poll=0) >= 0
    assert answers == []


def test_what_is_ready_already_is_asked_once():
    """Without a pause."""
    asked = []

    wait.until(lambda: asked.append(1) or [], "node2", seconds=0, poll=100)
    assert asked == [1]


def test_the_last_problems_are_in_the_error():
    """Not the first ones: what was missing when time was up."""
    answers = [["one"], ["two", "three"]]

    with pytest.raises(NotReady) as caught:
        wait.until(lambda: answers.pop(0) if len(answers) > 1 else answers[0], "node db2", seconds=0.05, poll=0.01)
    assert missing(caught.value, "node db2 not ready", "after 0.05 s: two; three") == []
    assert "one" not in str(caught.value)
    assert (caught.value.what, caught.value.problems) == ("node db2", ["two", "three"])


def test_a_problem_of_several_nodes_is_named_once():
    """The error lists the nodes before their common problem; other problems stay alone."""
    problems = ["node1: wsrep_ready is 'OFF'", "node2: no answer", "node3: wsrep_ready is 'OFF'", "no quorum: 1 of 3"]

    with pytest.raises(NotReady) as caught:
        wait.until(lambda: problems, "cluster", seconds=0, poll=0)
    assert str(caught.value).partition("s: ")[2] == (
        "node1, node3: wsrep_ready is 'OFF'; node2: no answer; no quorum: 1 of 3"
    )
    assert caught.value.problems == problems


def test_an_error_ends_the_waiting_at_once():
    """That is how a dead server is told from a slow one."""

    def problems():
        raise ValueError("dead")

    with pytest.raises(ValueError, match=r"^dead$"):
        wait.until(problems, "node2", seconds=60)


def test_a_thread_stops_waiting_when_it_is_told_to():
    """As by Ctrl-C: what it began is cleaned up on the way out. Other threads, and it afterwards, wait as before."""
    stop, asked = threading.Event(), []

    def problems():
        asked.append(1)
        stop.set()
        return ["joining"]

    with pytest.raises(KeyboardInterrupt), wait.interruptible_by(stop):
        wait.until(problems, "node2", seconds=10, poll=0)
    assert asked == [1]
    assert wait.until(list, "node2", seconds=10) >= 0


def test_limits_of_locks_end_in_any_order():
    """A run of pytest that began inside another limit leaves none behind, although it ends later."""
    usual, outer, inner = wait.locks.seconds, wait.lock_limit(0.0, "--wait"), wait.lock_limit(30.0, "--db-wait")
    with outer:
        inner.__enter__()
        assert (wait.locks.seconds, wait.locks.option) == (30.0, "--db-wait")
    inner.__exit__(None, None, None)

    assert wait.locks.seconds == usual
