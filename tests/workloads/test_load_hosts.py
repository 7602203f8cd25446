"""Several hosts of one load: how they divide its terminals, compare their clocks, and begin together."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster import wait
from pytest_dbcluster.errors import NotReady, UnreadableOutput, WorkloadError
from pytest_dbcluster.hosts.host import Completed
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.workloads import load_hosts
from pytest_dbcluster.workloads.load_hosts import Share, Signals


class Elsewhere(FakeHost):
    """A host on another machine, whose clock is ``ahead`` of ours by so many seconds; it notes that it was ended."""

    def __init__(self, name, ahead=0.0):
        super().__init__(name)
        self.machine = f"root@{name}"
        self.ahead = ahead
        self.ended = threading.Event()

    def run(self, command, **how):
        """The time of its clock."""
        assert command == load_hosts.DATE
        return Completed(f"{load_hosts.time.time() + self.ahead:.9f}\n", "", 0.0)

    def end_commands(self):
        """Note it."""
        self.ended.set()


def share_of(host, first=0, count=1, of=1):
    """A share; one terminal unless something else is said."""
    return Share(host, first, count, of)


@given(hosts=st.integers(1, 20), terminals=st.integers(1, 3000))
def test_every_terminal_is_on_one_host(hosts, terminals):
    """In order and without a gap; hosts differ by one terminal at most, and none has an empty share."""
    divided = load_hosts.shares([FakeHost(f"h{number}") for number in range(hosts)], terminals)
    numbers = [number for share in divided for number in range(share.first, share.first + share.count)]
    counts = [share.count for share in divided]

    assert numbers == list(range(terminals))
    assert max(counts) - min(counts) <= 1
    assert len(divided) == min(hosts, terminals)
    assert min(counts) >= 1
    assert {share.of for share in divided} == {terminals}


@pytest.mark.parametrize("ahead", [0.0, 3600.0, -7.25])
def test_a_clock_that_is_wrong_is_known(ahead):
    """To half of the time that the host's fastest answer took."""
    found = load_hosts.clock(share_of(Elsewhere("far", ahead)))

    assert found.ahead == pytest.approx(ahead, abs=found.unsure + 1e-3)
    assert 0 <= found.unsure == pytest.approx(found.answer / 2)
    assert found.unsure <= load_hosts.UNSURE


def test_a_clock_that_answers_too_late_is_refused_by_name(monkeypatch):
    """A host whose clock is not known cannot begin with the others."""
    now = iter(range(10**6))
    monkeypatch.setattr(load_hosts, "time", SimpleNamespace(time=lambda: next(now) * 0.1))

    with pytest.raises(
        WorkloadError,
        match=r"the clock of load host root@far .* 20 answers took 200\.0 ms.* 100\.0 ms.* 50\.0 ms; use load hosts",
    ):
        load_hosts.clock(share_of(Elsewhere("far")))


def test_a_clock_that_says_no_time_is_refused_by_name():
    """What it said is in the message."""
    with pytest.raises(UnreadableOutput, match=r"date \+%s.%N on node1 printed no time in seconds; .* 1, .*today"):
        load_hosts.clock(share_of(FakeHost(answers={"*date*": "today"})))


def test_a_date_without_fractions_is_replaced_by_the_time_of_bash():
    """Guests have the date of busybox, which prints the letters of the format."""
    answers = {"*date*": "1732345678.%N", "*EPOCHREALTIME*": f"{time.time() + 5:.6f}"}
    assert load_hosts.clock(share_of(FakeHost(answers=answers))).ahead == pytest.approx(5, abs=2)


def signals(share):
    """The files of a share."""
    return Signals("/fake/ready", "/fake/go")


def connected(share):
    """As the program of a share does: say that all is connected, and wait for the time to begin."""
    share.host.push(b"", signals(share).ready)
    wait.until(lambda: [] if "/fake/go" in share.host.files else ["no time"], "the begin", seconds=20, poll=0.001)
    return share.host.files["/fake/go"].decode()


def test_all_begin_at_one_time_by_their_own_clocks():
    """However wrong these are: the files with the time differ by what the clocks differ."""
    hosts = [Elsewhere("one", 3600.0), Elsewhere("other", -40.0)]
    before = time.time()
    told = load_hosts.run_shares([share_of(host) for host in hosts], signals, connected, seconds=20)
    begins = [float(text) - host.ahead for text, host in zip(told, hosts, strict=True)]

    assert begins[0] == pytest.approx(begins[1], abs=0.1)
    assert before < min(begins) < time.time() + 20


def test_nobody_is_told_to_begin_before_all_are_connected():
    """The file with the time comes after the last host has connected."""
    quick, slow = Elsewhere("quick"), Elsewhere("slow")
    seen = []

    def run(share):
        if share.host is slow:
            wait.until(lambda: [] if "/fake/ready" in quick.files else ["not yet"], "the other", seconds=20)
            seen.append("/fake/go" in quick.files)
        return connected(share)

    load_hosts.run_shares([share_of(quick), share_of(slow)], signals, run, seconds=20)

    assert seen == [False]


def test_a_host_that_fails_before_the_begin_ends_the_others():
    """Its own error is raised; those that wait for their begin read that there is none, and are ended."""
    bad, good = Elsewhere("bad"), Elsewhere("good")

    def run(share):
        if share.host is bad:
            raise WorkloadError("load host root@bad: no route")
        return connected(share)

    with pytest.raises(WorkloadError, match=r"^load host root@bad: no route$"):
        load_hosts.run_shares([share_of(good), share_of(bad)], signals, run, seconds=20)

    assert good.files["/fake/go"].decode() == load_hosts.OVER
    assert good.ended.is_set()


def test_a_host_that_fails_in_mid_run_ends_the_others():
    """They would go on to load the servers for a round that does not count."""
    bad, good = Elsewhere("bad"), Elsewhere("good")

    def run(share):
        connected(share)
        if share.host is bad:
            raise WorkloadError("load host root@bad: killed")
        assert good.ended.wait(20)
        raise WorkloadError("load host root@good: killed too")

    with pytest.raises(WorkloadError, match=r"^load host root@bad: killed$"):
        load_hosts.run_shares([share_of(good), share_of(bad)], signals, run, seconds=20)


def test_hosts_that_do_not_connect_are_named():
    """With the number of their connections."""
    slow = Elsewhere("slow")

    def run(share):
        return connected(share) if share.host is not slow else slow.ended.wait(20)

    with pytest.raises(NotReady, match=r"2 load hosts to connect.*root@slow: not every connection of 3 is open"):
        load_hosts.run_shares([share_of(Elsewhere("a")), share_of(slow, count=3)], signals, run, seconds=0.05)


def test_a_host_that_ends_without_a_run_is_no_success():
    """Its terminals did nothing."""
    with pytest.raises(WorkloadError, match="the load on root@b ended before the other load hosts had connected"):
        load_hosts.run_shares(
            [share_of(Elsewhere("a")), share_of(Elsewhere("b"))],
            signals,
            lambda share: None if share.name == "root@b" else connected(share),
            seconds=20,
        )


def test_a_host_that_begins_late_is_named():
    """Half of the round with a part of the terminals is another load than was asked for."""
    divided = [share_of(Elsewhere("a")), share_of(Elsewhere("b"))]

    assert load_hosts.late_start(divided, [0.001, 0.2], 2.0) == ""
    for fact in ("load host root@b", "1.20 s late", "a round of 2 s"):
        assert fact in load_hosts.late_start(divided, [0.001, 1.2], 2.0)
