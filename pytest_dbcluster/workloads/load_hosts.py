"""Several hosts of one load: who runs which terminals, how far their clocks are ahead, and how they begin together.

``shares`` divides the terminals, ``together`` runs the shares at once. Each share's program connects all its terminals
and says so in a file (``ready``); it begins at the time, of its host's clock, that another file has then (``go``).
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from pytest_dbcluster import wait
from pytest_dbcluster.errors import DBClusterError, UnreadableOutput, WorkloadError
from pytest_dbcluster.formatting import milliseconds
from pytest_dbcluster.hosts.host import EndsCommands, Host, at_once

T = TypeVar("T")
LOOKS = (3, 20)  # at a clock: the least, and the most when its answers come late
UNSURE = 0.05  # seconds by which a clock may be wrong after that: half a tenth of RunResult.by_tenth
LEAD = 0.03  # seconds from the decision to begin until the begin, with ANSWERS of the slowest host besides
ANSWERS = 4  # round trips in which a host has the file with the time surely
LATE = 0.5  # share of a round by which a host may begin after the others
POLL = 0.005
OVER = "over\n"  # in the file of the begin: end without one


@dataclasses.dataclass(frozen=True)
class Share:
    """The terminals that one host runs: ``count`` of all ``of``, from the 0-based number ``first`` on."""

    host: Host
    first: int
    count: int
    of: int

    @property
    def name(self) -> str:
        """The host as messages name it: its machine where it has one."""
        return self.host.machine or self.host.name


@dataclasses.dataclass(frozen=True)
class Clock:
    """A host's clock."""

    ahead: float
    """Of ours, in seconds."""

    unsure: float
    """By how much that may be wrong."""

    answer: float
    """Of the host."""


@dataclasses.dataclass(frozen=True)
class Signals:
    """The two files of a share: written by its program when all terminals are connected, and by us to begin."""

    ready: str
    go: str


def shares(hosts: Sequence[Host], terminals: int) -> list[Share]:
    """The terminals divided between the hosts, in order; shares differ by one at most.

    A host that would have no terminal has no share.
    """
    used = hosts[:terminals]
    each, more = divmod(terminals, len(used))
    counts = [each + (number < more) for number in range(len(used))]
    return [
        Share(host, sum(counts[:number]), count, terminals)
        for number, (host, count) in enumerate(zip(used, counts, strict=True))
    ]


def clock(share: Share) -> Clock:
    """Compare the clock of a host with ours. Raises WorkloadError when its answers come too late for that."""
    best = Clock(0.0, float("inf"), float("inf"))
    for look in range(LOOKS[1]):
        began = time.time()
        text = share.host.run(["date", "+%s.%N"]).stdout
        ended = time.time()
        try:
            theirs = float(text)
        except ValueError:
            raise UnreadableOutput(f"date +%s.%N on {share.name}", "time in seconds", text) from None
        seen = Clock(theirs - (began + ended) / 2, (ended - began) / 2, ended - began)
        best = min(best, seen, key=lambda one: one.unsure)
        if look + 1 >= LOOKS[0] and best.unsure <= UNSURE:
            return best
    raise WorkloadError(
        f"the clock of load host {share.name} cannot be compared with ours: the fastest of {LOOKS[1]} answers took "
        f"{milliseconds(best.answer)}, so it is known to {milliseconds(best.unsure)} only, and hosts that begin "
        f"together need {milliseconds(UNSURE)}; take load hosts that are nearer, or one --db-load-host"
    )


def together(
    divided: Sequence[Share], signals: Callable[[Share], Signals], run: Callable[[Share], T], *, seconds: float
) -> list[T]:
    """Run all shares at once, begun at one time, and return what each returned, in order.

    run: runs one share until its end. seconds: until all are connected. Raises what the first failing one raised, after
    the others have been ended; NotReady when some do not connect; WorkloadError of ``clock``.
    """
    hosts = [share.host for share in divided]
    with concurrent.futures.ThreadPoolExecutor(len(divided), thread_name_prefix="dbcluster-load") as threads:
        running = [threads.submit(run, share) for share in divided]
        try:
            clocks = at_once(divided, clock, hosts)
            _wait_connected(divided, signals, running, seconds)
            at = time.time() + LEAD + ANSWERS * max(one.answer for one in clocks)

            def go(item: tuple[Share, Clock]) -> None:
                share, own = item
                share.host.push(f"{at + own.ahead:.6f}\n".encode(), signals(share).go)

            at_once(list(zip(divided, clocks, strict=True)), go, hosts)
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_EXCEPTION)
            _raise_first(running, done)
        except BaseException:
            for share in divided:
                _end(share, signals(share))
            raise
    return [future.result() for future in running]


def _wait_connected(
    divided: Sequence[Share],
    signals: Callable[[Share], Signals],
    running: Sequence[concurrent.futures.Future[T]],
    seconds: float,
) -> None:
    """Wait until each share has connected its terminals. Raises what ended one of them before."""

    def problem(item: tuple[Share, concurrent.futures.Future[T]]) -> str:
        share, future = item
        over = future.done()
        with contextlib.suppress(FileNotFoundError):
            share.host.pull(signals(share).ready)
            return ""
        if over:
            future.result()
            raise WorkloadError(f"the load on {share.name} ended before the other load hosts had connected")
        return f"{share.name}: {share.count} connections, not all of them made"

    items = list(zip(divided, running, strict=True))
    hosts = [share.host for share in divided]
    wait.until(
        lambda: list(filter(None, at_once(items, problem, hosts))),
        f"{len(divided)} load hosts to connect",
        seconds=seconds,
        poll=POLL,
    )


def _raise_first(running: Sequence[concurrent.futures.Future[T]], done: set[concurrent.futures.Future[T]]) -> None:
    for future in running:
        if future in done:
            future.result()


def _end(share: Share, signals: Signals) -> None:
    """End a share: one that waits for its begin reads that there is none, one that runs is killed where that can be."""
    with contextlib.suppress(DBClusterError, OSError):
        share.host.push(OVER.encode(), signals.go)
        if isinstance(share.host, EndsCommands):
            share.host.end_commands()


def begun_late(divided: Sequence[Share], late: Sequence[float], seconds: float) -> str:
    """The reason to void the round: one load host started late. Empty if all started in time.

    late: seconds by which each share began after the common time. seconds: of the round.
    """
    by, name = max((by, share.name) for share, by in zip(divided, late, strict=True))
    if by <= LATE * seconds:
        return ""
    return (
        f"load host {name} began {by:.2f} s late in a round of {seconds:g} s: it is busy with something else, or too "
        "far away"
    )
