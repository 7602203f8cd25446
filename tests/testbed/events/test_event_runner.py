"""What the runner of an event asks the servers while the load runs."""

from __future__ import annotations

import contextlib
import itertools
import threading
from types import SimpleNamespace

import pytest

from pytest_dbcluster.clusters.events.event import Event
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.testbed import timeline
from pytest_dbcluster.testbed.events import event_runner

NAMES = ("innodb_rows_inserted", "innodb_rows_updated")


class Server:
    """A server whose count of rows grows by ``step`` with each question."""

    def __init__(self, step):
        self.asked = 0
        self._counts = itertools.count(7, step)

    def pairs(self, statement, seconds):
        """The next count in both statuses."""
        self.asked += 1
        return dict.fromkeys(NAMES, str(next(self._counts)))


def looking_at(*servers):
    """The look at a cluster of these servers."""
    nodes = [SimpleNamespace(name=f"node{n}", running=True, sql=sql) for n, sql in enumerate(servers, 1)]
    return contextlib.closing(event_runner._Work(SimpleNamespace(nodes=nodes), writes=True))


@pytest.mark.parametrize(("steps", "goes_on"), [((1, 0), True), ((0, 1), True), ((0, 0), False)])
def test_a_load_goes_on_if_a_server_writes_rows(steps, goes_on):
    """The first look has nothing to compare with."""
    with looking_at(*map(Server, steps)) as work:
        assert work.went_on() is False
        assert work.went_on() is goes_on


def test_a_silent_server_keeps_no_look_waiting(monkeypatch):
    """The others show that the load goes on; a server that answers again is compared with its last count."""
    monkeypatch.setattr(timeline, "PATIENCE", 0.3)
    silent, answer = threading.Event(), threading.Event()

    class Silent(Server):
        def pairs(self, statement, seconds):
            if silent.is_set():
                assert answer.wait(60)
                raise ProvisionError("it was stopped")
            return super().pairs(statement, seconds)

    other = Server(1)
    with looking_at(Silent(0), other) as work:
        work.went_on()
        silent.set()
        assert [work.went_on() for _ in range(4)] == [True] * 4
        assert other.asked == 5
        silent.clear()
        answer.set()


def test_lines_that_an_event_causes_are_no_fault_afterwards():
    """The repetition has all lines; later ones count only if the event does not cause them."""

    class Cuts(Event):
        errors = ("connection to peer .* is lost",)

    cluster = SimpleNamespace(
        new_errors=lambda: ["node1 logged: [ERROR] connection to peer 2 is lost"], expected_errors=set()
    )

    assert event_runner._error_lines(Cuts, cluster) == ("node1 logged: [ERROR] connection to peer 2 is lost",)
    assert cluster.expected_errors == {"connection to peer .* is lost"}
