"""Who has the machine: builds beside each other, measured rounds alone, between processes that know nothing else."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, Inconclusive, LockHeld, ProvisionError
from pytest_dbcluster.system import machine_lock
from pytest_dbcluster.system.machine_lock import BUILDING, MEASURING, MachineLock, Turns

# Takes a turn, says so, and keeps it until its input ends; a line of it ends one turn and begins another.
PROGRAM = """
import sys, time
from pathlib import Path
from pytest_dbcluster.system import machine_lock as machine
place, does, run = sys.argv[1:4]
machine.FIRST_REPORT, (machine.STINT, machine.LINGER, pause) = 0.0, map(float, sys.argv[4:])
say = lambda line: print(line, flush=True)
mine, again = machine.MachineLock(Path(place)), True
while again:
    with mine.turn(does, run=run, progress=say):
        say("has it")
        again = sys.stdin.readline()
    time.sleep(pause if again else 0.0)
"""


@pytest.fixture
def directory(tmp_path):
    """A machine of the test's own."""
    return tmp_path / "machine"


@pytest.fixture
def other(directory):
    """``other(MEASURING)``: another process that wants a turn; it ends at the latest with the test."""
    with contextlib.ExitStack() as started:

        def other(does, run="other", *, stint=0.0, linger=0.0, pause=0.0):
            words = [sys.executable, "-c", PROGRAM, str(directory), does, run, *map(str, (stint, linger, pause))]
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield other


def until_it_waits(directory, process):
    """Returns when the process is in the queue."""
    here = MachineLock(directory)

    def problems():
        waiting = [one.pid for one in here.holders() if one.waits]
        return [] if process.pid in waiting else [f"{process.pid} is not among {waiting}"]

    wait.until(problems, "the queue", seconds=20)


def said(process):
    """Its next line that is no news of waiting."""
    return next(line.strip() for line in process.stdout if not line.startswith("waiting"))


def next_block(process):
    """Its turn is over, and it wants another one."""
    process.stdin.write("\n")
    process.stdin.flush()


def end(process):
    """Its turn is over."""
    process.stdin.close()
    process.wait(20)


def test_builds_run_beside_each_other(other):
    """The second one has its turn while the first one has."""
    assert [said(other(BUILDING)), said(other(BUILDING))] == ["has it", "has it"]


@pytest.mark.parametrize(("first", "second"), [(MEASURING, BUILDING), (BUILDING, MEASURING), (MEASURING, MEASURING)])
def test_a_measured_round_has_the_machine_alone(directory, other, first, second):
    """Whoever comes second waits for the end of the first one's turn."""
    one = other(first)
    assert said(one) == "has it"
    two = other(second)
    until_it_waits(directory, two)

    assert [
        (found.does, found.waits) for found in sorted(MachineLock(directory).holders(), key=lambda one: one.waits)
    ] == [
        (first, False),
        (second, True),
    ]
    end(one)
    assert said(two) == "has it"


def test_nobody_overtakes_the_one_who_is_next(directory, other):
    """A build could begin beside another one, and would keep the round from its turn for ever: it waits behind it."""
    build = other(BUILDING)
    assert said(build) == "has it"
    round_ = other(MEASURING)
    until_it_waits(directory, round_)
    later = other(BUILDING)
    until_it_waits(directory, later)
    end(build)

    assert said(round_) == "has it"
    until_it_waits(directory, later)  # it is next now, and for a moment between its two waits it has no note
    end(round_)
    assert said(later) == "has it"


def test_a_run_goes_on_with_its_next_block_while_rounds_wait(directory, other):
    """Two runs that measure would else alternate block by block; when no block follows it is the other one's turn."""
    one = other(MEASURING, stint=3600, linger=3600)
    assert said(one) == "has it"
    two = other(MEASURING)
    until_it_waits(directory, two)
    next_block(one)

    assert said(one) == "has it"
    assert [found.pid for found in MachineLock(directory).holders() if found.waits] == [two.pid]

    end(one)
    assert said(two) == "has it"


@pytest.mark.parametrize(("does", "stint"), [(MEASURING, 0), (BUILDING, 3600)])
def test_a_build_and_who_has_waited_long_get_in_between_blocks(directory, other, does, stint):
    """The run that measures is behind them in the queue, however soon it comes back."""
    one = other(MEASURING, stint=stint, linger=3600)
    assert said(one) == "has it"
    two = other(does)
    until_it_waits(directory, two)
    next_block(one)

    assert said(two) == "has it"
    end(two)
    assert said(one) == "has it"


def test_a_turn_that_lingers_for_no_block_ends_by_itself(directory, other):
    """A run has ended its claim, and prepares another one."""
    one = other(MEASURING, stint=3600, linger=0.05, pause=3600)
    assert said(one) == "has it"
    two = other(MEASURING)
    until_it_waits(directory, two)
    next_block(one)

    assert said(two) == "has it"


def test_the_turn_of_a_killed_process_is_over(directory, other):
    """The kernel drops its lock, and its note is cleared away."""
    killed = other(MEASURING)
    assert said(killed) == "has it"
    two = other(BUILDING)
    until_it_waits(directory, two)
    killed.kill()
    killed.wait(20)  # while it ends, its lock is free before it is gone

    assert said(two) == "has it"
    assert [one.pid for one in MachineLock(directory).holders()] == [two.pid]


def test_waiting_is_told(other):
    """With who has the machine: run, process, user, what it does, and since when."""
    first = other(MEASURING, "4f")
    assert said(first) == "has it"

    line = other(BUILDING).stdout.readline()

    assert line.startswith(f"waiting: run 4f of pid {first.pid} (")
    assert line.endswith(" s; 30 min at most (--db-wait)\n")
    assert ") has been measuring for " in line


def test_ctrl_c_ends_the_waiting(directory, other):
    """At once, and nothing is left of it in the queue."""
    first = other(MEASURING)
    assert said(first) == "has it"
    two = other(MEASURING)
    until_it_waits(directory, two)
    two.send_signal(signal.SIGINT)

    assert two.wait(20) == -signal.SIGINT
    assert [one.pid for one in MachineLock(directory).holders()] == [first.pid]


def test_a_turn_inside_a_turn_is_part_of_it(directory):
    """A round may build, in one process; a build may not measure."""
    mine = MachineLock(directory)
    with mine.turn(MEASURING), mine.turn(BUILDING), mine.turn(MEASURING):
        assert [one.does for one in mine.holders()] == [MEASURING]
    assert mine.holders() == []

    with mine.turn(BUILDING), pytest.raises(ConfigError, match="cannot measure inside a build of this"):
        mine.turn(MEASURING).__enter__()
    with mine.turn(MEASURING):
        assert [one.does for one in mine.holders()] == [MEASURING]


def test_a_run_inside_a_run_does_not_wait_for_it(directory, other):
    """The outer one waits for the inner one: a turn of a process that we were started by is ours too."""
    with MachineLock(directory).turn(MEASURING, run="outer"):
        assert [said(other(MEASURING)), said(other(BUILDING))] == ["has it", "has it"]
    with MachineLock(directory).turn(BUILDING, run="outer"):
        refused = other(MEASURING)

        assert refused.wait(20) == 1
        assert refused.stdout.read() == ""


def test_who_has_waited_long_enough_goes_on(directory, other):
    """That is for those who want to leave."""
    first = other(MEASURING)
    assert said(first) == "has it"

    with MachineLock(directory).turn(BUILDING, most=0.05):
        assert {one.pid for one in MachineLock(directory).holders()} == {first.pid, os.getpid()}


@pytest.mark.parametrize("does", [BUILDING, MEASURING])
def test_waiting_has_a_limit(directory, other, does):
    """After the time of ``--db-wait`` the error names the run, process, user and command that have the machine."""
    first = other(MEASURING, "4f")
    assert said(first) == "has it"

    with wait.lock_limit(0.05, "--wait"), pytest.raises(LockHeld) as caught:
        MachineLock(directory).turn(does).__enter__()
    assert f"run 4f of pid {first.pid} (" in str(caught.value)
    assert f"{sys.executable} -c" in str(caught.value)
    assert "--wait" in str(caught.value)
    assert [one.pid for one in MachineLock(directory).holders()] == [first.pid]


def test_the_last_steps_of_a_measurement_go_on_after_the_limit(directory, other):
    """Nothing that was measured is lost because another process keeps the machine."""
    assert said(other(MEASURING)) == "has it"

    with wait.lock_limit(0.05, "--db-wait"), Turns(MachineLock(directory)).finishing():
        assert os.getpid() in {one.pid for one in MachineLock(directory).holders()}


def test_after_a_wait_in_vain_the_last_steps_wait_no_longer_than_theirs(directory, other, monkeypatch):
    """Their seconds count at once, though the run's time is not used; else each would wait for the whole limit."""
    assert said(other(MEASURING)) == "has it"
    monkeypatch.setattr(machine_lock, "FINISH_SECONDS", 0.05)
    here = MachineLock(directory)
    with wait.lock_limit(0.05, "--db-wait"), pytest.raises(LockHeld):
        here.turn(MEASURING).__enter__()

    with wait.lock_limit(3600.0, "--db-wait"), Turns(here).finishing():
        assert os.getpid() in {one.pid for one in MachineLock(directory).holders()}


def test_waiting_takes_no_time_of_the_clock(directory, other):
    """The clock of a lock stands still while its process waits, and goes on afterwards."""
    assert said(other(MEASURING)) == "has it"
    here, read = MachineLock(directory), []
    began, clock = time.monotonic(), here.clock()

    def over():
        read.append(here.clock())
        return "used" if len(read) == 50 else ""

    with pytest.raises(Inconclusive):
        here.turn(BUILDING, over=over).__enter__()
    waited = 49 * machine_lock.POLL

    assert max(read) - min(read) < 1e-3
    assert (time.monotonic() - began) - (here.clock() - clock) >= 0.9 * waited


def test_every_user_of_the_machine_may_lock(directory):
    """Whatever the mask of the one who came first is: files are locked by reading, and notes are read."""
    directory.mkdir()
    before = os.umask(0o077)
    try:
        with MachineLock(directory).turn(MEASURING):
            modes = {path.name: path.stat().st_mode & 0o7777 for path in directory.glob("*.lock")}
            (note,) = directory.glob("pytest-dbcluster-note-*")

            assert modes == {"pytest-dbcluster-next.lock": 0o644, "pytest-dbcluster-work.lock": 0o644}
            assert note.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


@pytest.mark.parametrize("planted", ["machine", "machine/pytest-dbcluster-next.lock"])
def test_no_link_is_followed_where_all_users_may_put_one(directory, tmp_path, planted):
    """The error says which to remove, and what it leads to is neither made nor changed."""
    target, link = tmp_path / "target", tmp_path / planted
    if planted == "machine":
        target.mkdir(mode=0o700)
    else:
        directory.mkdir()
    link.symlink_to(target)

    with pytest.raises(ProvisionError) as caught:
        MachineLock(directory).turn(MEASURING).__enter__()
    assert str(caught.value).startswith(f"{machine_lock.NO_LOCK}: {link}")
    assert str(caught.value).endswith(f"remove it: rm {link}")
    assert target.exists() == (planted == "machine")
    assert not target.exists() or target.stat().st_mode & 0o7777 == 0o700


def test_a_directory_keeps_its_mode(directory):
    """One that is missing is made for this user alone; only root makes one for all."""
    for mode in (0o700, 0o1777):
        with MachineLock(directory).turn(MEASURING):
            assert directory.stat().st_mode & 0o7777 == mode
        directory.chmod(0o1777)


def test_waiting_ends_with_the_time_of_the_run(directory, other):
    """The claim is inconclusive, and the message names who has the machine, with the process id."""
    first = other(MEASURING, "4f")
    assert said(first) == "has it"
    turns = Turns(MachineLock(directory), over=lambda: "the run's budget of 5 s is spent (--db-run-budget)")

    for turn in (turns.building, turns.measuring):
        with pytest.raises(Inconclusive) as caught:
            turn().__enter__()
        assert "the run's budget of 5 s is spent (--db-run-budget)" in str(caught.value)
        assert re.search(rf"run 4f of pid {first.pid} \(\w+\) has been measuring for \d+ s", str(caught.value))
    assert [one.pid for one in MachineLock(directory).holders()] == [first.pid]


def test_who_has_the_machine_for_itself_does_not_look_at_the_time(directory):
    """Only waiting is bounded."""
    with Turns(MachineLock(directory), over=lambda: "used").measuring():
        assert len(MachineLock(directory).holders()) == 1


def test_the_last_steps_of_a_measurement_wait_a_little_longer(directory, other, monkeypatch):
    """A verdict that is there is not lost: its checks run without the machine when nobody gives it away."""
    monkeypatch.setattr(machine_lock, "FINISH_SECONDS", 0.05)
    first = other(MEASURING)
    assert said(first) == "has it"
    asked = []

    def over():
        asked.append(True)
        return "used" if len(asked) > 20 else ""

    with Turns(MachineLock(directory), over=over).finishing():
        assert {one.pid for one in MachineLock(directory).holders()} == {first.pid, os.getpid()}
    assert len(asked) == 21  # until then the seconds did not count


def test_waiting_for_memory_ends_with_the_time_of_the_run(directory):
    """Another run that starts servers holds this lock; the kernel knows its process id."""
    directory.mkdir()
    (directory / machine_lock.ADMIT).touch()
    with subprocess.Popen(["flock", directory / machine_lock.ADMIT, "sleep", "600"], start_new_session=True) as holder:
        try:
            here = machine_lock.LockFile(directory, machine_lock.ADMIT, "no lock")
            wait.until(lambda: [] if here.lockers() else ["no lock"], "the lock", seconds=20)
            with pytest.raises(Inconclusive) as caught:
                Turns(MachineLock(directory), over=lambda: "used").admitting().__enter__()
            here.close()
        finally:
            os.killpg(holder.pid, signal.SIGKILL)

    assert re.match("used; .*: pid ", str(caught.value))
    assert str(caught.value).endswith(f"holds {directory / machine_lock.ADMIT}")


def test_hosts_with_cores_of_their_own_wait_for_nobody(directory, other):
    """Only a provisioner whose hosts share cores takes turns."""
    assert Turns.on(frozenset({"root"}), "1", print).machine is None
    assert Turns.on(frozenset({"shared-cores"}), "1", print).machine is machine_lock.this()

    first = other(MEASURING)
    assert said(first) == "has it"
    with Turns(None).measuring(), Turns(None).building():
        assert len(MachineLock(directory).holders()) == 1
