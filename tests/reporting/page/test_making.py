"""What is said while a page is made, and what becomes of a view that fails."""

from __future__ import annotations

import json
import subprocess
import sys

import psutil

from pytest_dbcluster import wait
from pytest_dbcluster.reporting.page.making import ALONE, Making

MANY = 2 * ALONE
MAKING = """
import functools, json, os, signal, threading, time
from pytest_dbcluster.reporting.page.making import Making
here = os.getpid()
{before}
def make(number):
    {body}
    return number, os.getpid()
making = Making(processes={processes})
made = making.views([(f"view {{n}}", functools.partial(make, n)) for n in range({many})])
print(json.dumps([made, making.failed, here]))
"""
# Draws views in two processes, each of which says who it is and then waits for the end of their parent.
SLOW = """
import os, time
from pytest_dbcluster.reporting.page.making import ALONE, Making
here = os.getpid()
def draw(number):
    os.write(1, f"{os.getpid()}\\n".encode())
    while os.getppid() == here:
        time.sleep(0.01)
    return number
def view(number):
    return lambda: draw(number)
Making(processes=2).views([(str(number), view(number)) for number in range(2 * ALONE)])
"""


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
        making.show_progress(number, whole)
    return said


def test_a_fast_page_is_made_in_silence():
    """It is there before anybody asks."""
    assert lines("dbcluster report DIR", 0.03) == []


def test_a_slow_page_says_once_what_else_makes_it():
    """After twenty seconds; nobody has to wait for it."""
    said = lines("dbcluster report DIR", 1.0, 40)

    (slow,) = [line for line in said if "slow" in line]
    assert all(fact in slow for fact in ("22 of 40 claims", "22 s", "Ctrl-C", "`dbcluster report DIR`"))
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
    (sentence,) = making.failed.values()
    assert sentence.startswith("claim 4 ")
    assert "ValueError: no values" in sentence


def views(processes, body, many=MANY, before=""):
    """Views by so many processes: (number, process) of each, what failed, and the process that began them.

    A process of the test's own begins them, since one with threads makes them alone. body: of the function that makes
    view ``number`` there. before: what that process does first.
    """
    script = MAKING.format(processes=processes, many=many, body=body, before=before)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    return json.loads(done.stdout)


def test_several_processes_make_views_in_their_order():
    """Each makes about as many; one that fails is left out and named, as in one process."""
    broken = "if number in (3, 10): raise ValueError(f'view {number} is broken')"
    made, failed, here = views(2, broken)

    assert [number for number, _ in made] == [n for n in range(MANY) if n not in (3, 10)]
    assert len({process for _, process in made} - {here}) == 2
    assert sorted(failed) == ["view 10", "view 3"]
    assert "ValueError: view 3 is broken" in failed["view 3"]


def test_few_views_are_made_by_one_process():
    """Others would take longer to start."""
    made, _, here = views(8, "pass", ALONE)

    assert {process for _, process in made} == {here}


def test_a_process_with_threads_makes_all_views():
    """A copy of it could wait for ever for a lock that one of them has."""
    made, _, here = views(2, "pass", before="threading.Thread(target=time.sleep, args=(2,)).start()")

    assert {process for _, process in made} == {here}


def test_what_a_killed_process_leaves_is_made_here():
    """No view is lost, and nothing waits for it."""
    made, failed, here = views(2, "if number == 4 and os.getpid() != here: os.kill(os.getpid(), signal.SIGKILL)")

    assert ([number for number, _ in made], failed) == ([*range(MANY)], {})
    assert made[4][1] == here


def runs(pid):
    """Whether a process has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_processes_end_with_the_one_that_began_them():
    """It was killed, so it could not end them."""
    with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True) as begun:
        drawing = {int(begun.stdout.readline()) for _ in range(2)}
        begun.kill()
        wait.until(lambda: [f"{one} runs" for one in drawing if runs(one)], "the end of both", seconds=60)
