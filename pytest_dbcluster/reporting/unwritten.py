"""Files of a run that could not be written: the run names them at its end, and neither it nor a test stops."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_dbcluster.formatting import some

NAME = "dbcluster_unwritten"
UNDRAWN = "the chart failed with "
SHOWN = 3  # paths that a line names


class Unwritten:
    """The files that could not be written. reasons: path -> reason of the system, or of a chart that failed."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    @contextlib.contextmanager
    def note(self, path: Path) -> Iterator[None]:
        """Note an OSError of the block instead of raising it; ``path`` is what the block writes."""
        try:
            yield
        except OSError as error:
            self.reasons.setdefault(str(path), error.strerror or str(error))

    @contextlib.contextmanager
    def note_chart(self, path: Path) -> Iterator[None]:
        """Note every Exception of the block instead of raising it: a chart must not break the test that it shows."""
        try:
            with self.note(path):
                yield
        except Exception as error:
            self.reasons.setdefault(str(path), f"{UNDRAWN}{type(error).__name__}: {error}")

    def lines(self) -> list[str]:
        """One line for each reason, with the number of files and the first of them; empty if all were written."""
        lines = []
        for reason in dict.fromkeys(self.reasons.values()):
            paths = [path for path, why in self.reasons.items() if why == reason]
            line = f"NOT WRITTEN: {some(paths, SHOWN)}: {reason}. The verdicts above are complete"
            advice = "" if reason.startswith(UNDRAWN) else "; choose another directory with --db-results DIR"
            lines.append(f"{line}{advice}")
        return lines


def of(config: Any) -> Unwritten:
    """The files that this process of the run could not write."""
    plugins = config.pluginmanager
    if not plugins.has_plugin(NAME):
        plugins.register(Unwritten(), NAME)
    found: Unwritten = plugins.get_plugin(NAME)
    return found


def write(path: Path, content: str | bytes) -> None:
    """Write a whole file. If that raises OSError, no part of a plain file stays; a device or link stays."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError:
        with contextlib.suppress(OSError):
            if stat.S_ISREG(path.lstat().st_mode):  # root could remove /dev/full too
                path.unlink()
        raise


def append(path: Path, line: bytes) -> None:
    """Add a whole line to a file. If that raises OSError, no part of the line stays."""
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            left = memoryview(line)
            while left:
                left = left[file.write(left) :]
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(before)
            raise
