"""Making: what is said while a page is made, and what becomes of a view that fails.

Drawing the charts of a claim takes a third of a second, so a run with many claims says how far its page is. A view that
fails is left out and named in the page; the others are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from pytest_dbcluster.formatting import Report, counted

FIRST, EVERY, SLOW = 2.0, 5.0, 20.0  # seconds: until the first line, between two lines, until a page counts as slow
Made = TypeVar("Made")


def quiet(line: str) -> None:
    """Say nothing."""


class Making:
    """The making of one page. failed: the sentence about each view that failed, by its name.

    tell: shows a line of progress. again: the command that makes the page later, for a run that could end without it;
    empty where there is no such run.
    """

    def __init__(self, tell: Report = quiet, again: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.failed: dict[str, str] = {}
        self._tell = tell
        self._again = again
        self._clock = clock
        self._began = clock()
        self._due = self._began + FIRST
        self._slow = False

    def done(self, number: int, whole: int) -> None:
        """Say how far the page is, if its making takes long: ``number`` of ``whole`` claims are drawn."""
        now = self._clock()
        if now < self._due or number == whole:
            return
        self._due = now + EVERY
        line = f"making the page: {number} of {counted(whole, 'claim')}"
        if now - self._began >= SLOW and self._again and not self._slow:
            self._slow = True
            line += (
                f" after {now - self._began:.0f} s, which is slow; the results are complete: Ctrl-C leaves the page "
                f"out, and `{self._again}` makes it at any time"
            )
        self._tell(line)

    def view(self, name: str, make: Callable[[], Made]) -> Made | None:
        """What ``make`` returns; None when it raises an Exception, which is noted under ``name``."""
        try:
            return make()
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.failed[name] = f"{name} could not be shown ({reason}); its figures are in the results directory"
            return None
