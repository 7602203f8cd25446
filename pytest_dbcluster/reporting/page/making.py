"""Making: shows progress while a page is made, and leaves out views that fail.

Drawing the charts of a claim takes a third of a second. So a page of many claims shows progress, and several processes
draw. A view that fails is left out, and the page names it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from multiprocessing.context import ForkProcess
from typing import TypeVar

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report, quantity

FIRST, EVERY, SLOW = 2.0, 5.0, 20.0  # seconds: until the first line, between two lines, until a page counts as slow
ALONE = 8  # views that one process draws as soon as several do
SILENT = 60.0  # seconds without a view, after which we stop the other processes
Made = TypeVar("Made")
Pipe = connection.Connection


def say_nothing(line: str) -> None:
    """Ignore a line of progress."""


class Making:
    """The making of one page. failed: the sentence about each view that failed, by its name.

    tell: shows a line of progress. again: the command that makes the page later; empty for a command that only makes
    pages. processes: the number of processes that draw; a process with threads cannot be forked, and draws alone.
    """

    def __init__(
        self,
        tell: Report = say_nothing,
        again: str = "",
        clock: Callable[[], float] = time.monotonic,
        *,
        processes: int = 1,
    ) -> None:
        self.failed: dict[str, str] = {}
        self._processes = processes
        self._tell = tell
        self._again = again
        self._clock = clock
        self._began = clock()
        self._due = self._began + FIRST
        self._slow = False

    def show_progress(self, number: int, whole: int) -> None:
        """Show that ``number`` of ``whole`` claims are drawn, if making the page takes long."""
        now = self._clock()
        if now < self._due or number == whole:
            return
        self._due = now + EVERY
        line = f"making the page: {number} of {quantity(whole, 'claim')}"
        if now - self._began >= SLOW and self._again and not self._slow:
            self._slow = True
            line += (
                f" after {now - self._began:.0f} s, which is slow; the results are complete: Ctrl-C leaves the page "
                f"out, and `{self._again}` makes it at any time"
            )
        self._tell(line)

    def view(self, name: str, make: Callable[[], Made]) -> Made | None:
        """What ``make`` returns. If it raises an Exception, return None and note it under ``name``."""
        try:
            return make()
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.failed[name] = f"{name} could not be shown ({reason}); its figures are in the results directory"
            return None

    def views(self, makes: Sequence[tuple[str, Callable[[], Made]]]) -> list[Made]:
        """Make all these views, by name, and return those that did not fail. ``show_progress`` counts each."""
        found: dict[int, Made | None] = {}
        many = min(self._processes, len(makes) // ALONE)
        if many > 1 and threading.active_count() == 1:
            for number, made, failed in _draw_in_processes(many, makes):
                found[number] = made
                if failed:
                    self.failed[makes[number][0]] = failed
                self.show_progress(len(found), len(makes))
        for number, (name, make) in enumerate(makes):
            if number not in found:
                found[number] = self.view(name, make)
                self.show_progress(len(found), len(makes))
        return [made for number in range(len(makes)) if (made := found[number]) is not None]


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """The lines that a process which makes a page prints, until its end. Raises ConfigError if it hangs."""
    assert process.stdout is not None
    rest = b""
    while connection.wait([process.stdout.fileno()], 2 * SILENT):
        if not (more := os.read(process.stdout.fileno(), 1 << 16)):
            process.wait(SILENT)
            return
        *whole, rest = (rest + more).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
    raise ConfigError(f"the process that makes it has said nothing for {2 * SILENT:.0f} s")


def _draw_in_processes(
    many: int, makes: Sequence[tuple[str, Callable[[], Made]]]
) -> Iterator[tuple[int, Made | None, str]]:
    """Make views in so many processes; yield the number, the view and why it failed.

    If a process dies, its views are missing. The processes are copies of this one, so they need no data. If their
    parent has ended, each ends with its next view.
    """
    forks = multiprocessing.get_context("fork")
    drawing: list[ForkProcess] = []
    pipes: list[Pipe] = []
    try:
        for first in range(many):
            ours, theirs = forks.Pipe(duplex=False)
            process = forks.Process(target=_draw, args=(theirs, [*pipes, ours], makes, first, many), daemon=True)
            with warnings.catch_warnings():  # threads of numpy count too, but survive a fork
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            drawing.append(process)
            pipes.append(ours)
        while pipes and (ready := connection.wait(pipes, SILENT)):
            for pipe in [one for one in pipes if one in ready]:
                try:
                    yield pipe.recv()
                except EOFError:
                    pipes.remove(pipe)
    finally:
        for process in drawing:
            process.kill()
            process.join()


def _draw(
    pipe: Pipe, others: Sequence[Pipe], makes: Sequence[tuple[str, Callable[[], Made]]], first: int, step: int
) -> None:
    """Make every ``step``-th of these views from ``first`` on.

    others: our parent's ends of pipes; open here, they would outlive it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from the terminal: our parent ends us
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    for one in others:
        one.close()
    making = Making()
    with contextlib.suppress(BrokenPipeError):
        for place in range(first, len(makes), step):
            name, make = makes[place]
            pipe.send((place, making.view(name, make), making.failed.get(name, "")))
