"""A workload on several load hosts: the share of each host, the offsets of their clocks, and their common start.

``shares`` divides the terminals, ``run_shares`` runs the shares concurrently. The program of a share connects all its
terminals and then writes the file ``ready``. We write the start time, by its host's clock, into the file ``go``.
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
DATE = ("date", "+%s.%N")
BASH_TIME = ("env", "LC_ALL=C", "bash", "-c", "echo $EPOCHREALTIME")  # the date of busybox, as guests have it, lacks %N
LOOKS = (3, 20)  # readings of a clock: the minimum, and the maximum if its answers are slow
UNSURE = 0.05  # acceptable error of a clock in seconds: half a tenth of RunResult.by_tenth
LEAD = 0.03  # seconds from the decision to start until the start, plus ANSWERS round trips of the slowest host
ANSWERS = 4  # round trips after which a host certainly has the file with the start time
LATE = 0.5  # maximum delay of a host's start, as a share of a round
POLL = 0.005
OVER = "over\n"  # in the file ``go``: end without a start


@dataclasses.dataclass(frozen=True)
class Share:
    """The terminals of one host."""

    host: Host
    """The load host."""

    first: int
    """The number of its first terminal, 0-based."""

    count: int
    """Number of its terminals."""

    of: int
    """Number of terminals of all hosts."""

    @property
    def name(self) -> str:
        """The name of the host in messages: its machine if it has one."""
        return self.host.machine or self.host.name


@dataclasses.dataclass(frozen=True)
class Clock:
    """The clock of a host, compared with ours."""

    ahead: float
    """Seconds by which the clock is ahead of ours."""

    unsure: float
    """Maximum error of ``ahead``, in seconds."""

    answer: float
    """Seconds until the answer of the host arrived."""


@dataclasses.dataclass(frozen=True)
class Signals:
    """The two files that start all shares at the same time."""

    ready: str
    """The path of the file that the program writes when all its terminals are connected."""

    go: str
    """The path of the file that we write to start the terminals."""


def shares(hosts: Sequence[Host], terminals: int) -> list[Share]:
    """Divide the terminals between the hosts, in order. Shares differ by at most one; no share is empty.

    If there are fewer terminals than hosts, the last hosts have no share.
    """
    used = hosts[:terminals]
    each, more = divmod(terminals, len(used))
    counts = [each + (number < more) for number in range(len(used))]
    return [
        Share(host, sum(counts[:number]), count, terminals)
        for number, (host, count) in enumerate(zip(used, counts, strict=True))
    ]


def clock(share: Share) -> Clock:
    """Compare the clock of a host with ours. Raises WorkloadError if its answers are too slow."""
    best = Clock(0.0, float("inf"), float("inf"))
    command = BASH_TIME if "%N" in share.host.run(DATE).stdout else DATE
    for look in range(LOOKS[1]):
        began = time.time()
        text = share.host.run(command).stdout
        ended = time.time()
        try:
            theirs = float(text)
        except ValueError:
            raise UnreadableOutput(f"{' '.join(command)} on {share.name}", "time in seconds", text) from None
        seen = Clock(theirs - (began + ended) / 2, (ended - began) / 2, ended - began)
        best = min(best, seen, key=lambda one: one.unsure)
        if look + 1 >= LOOKS[0] and best.unsure <= UNSURE:
            return best
    raise WorkloadError(
        f"cannot compare the clock of load host {share.name} with ours: the fastest of {LOOKS[1]} answers took "
        f"{milliseconds(best.answer)}, so the error is up to {milliseconds(best.unsure)}, and hosts that start "
        f"together need {milliseconds(UNSURE)}; use load hosts with a faster network, or a single --db-load-host"
    )


def run_shares(
    divided: Sequence[Share], signals: Callable[[Share], Signals], run: Callable[[Share], T], *, seconds: float
) -> list[T]:
    """Run all shares concurrently from one start time, and return their results in order.

    run: runs one share until its end. seconds: timeout for the connections. If a share fails, it ends the others and
    raises the first error. Raises NotReady if some terminals do not connect, and WorkloadError as ``clock`` does.
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
    """Wait until each share has connected its terminals. Raises the error of a share that ended before."""

    def problem(item: tuple[Share, concurrent.futures.Future[T]]) -> str:
        share, future = item
        over = future.done()
        with contextlib.suppress(FileNotFoundError):
            share.host.pull(signals(share).ready)
            return ""
        if over:
            future.result()
            raise WorkloadError(f"the load on {share.name} ended before the other load hosts had connected")
        return f"{share.name}: not every connection of {share.count} is open"

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
    """End a share: a waiting one reads OVER, a running one is killed if its host can do that."""
    with contextlib.suppress(DBClusterError, OSError):
        share.host.push(OVER.encode(), signals.go)
        if isinstance(share.host, EndsCommands):
            share.host.end_commands()


def late_start(divided: Sequence[Share], late: Sequence[float], seconds: float) -> str:
    """The reason to void the round: one load host started late. Empty if all started in time.

    late: the delay of each share's start, in seconds. seconds: the length of the round.
    """
    by, name = max((by, share.name) for share, by in zip(divided, late, strict=True))
    if by <= LATE * seconds:
        return ""
    return (
        f"load host {name} began {by:.2f} s late in a round of {seconds:g} s: other programs keep it busy, or its "
        "network is slow"
    )
