"""The history file: append-only JSON lines, one for each claim of each run, and one for each accepted change.

Several runs may add lines at the same time: each locks the file while it writes (flock). A line that cannot be read,
such as a torn line of a killed run, stays in the file. A message names it.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.reporting import unwritten
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.history.entry import ACCEPTED, CLAIM, FORMAT, KNOWN, Acceptance, Entry, SeriesKey
from pytest_dbcluster.system import shared_directory

SHOWN = 3  # unreadable lines that messages name
LOCK_SECONDS, POLL = 20.0, 0.01  # seconds to wait for other processes that add lines, and between two attempts


@dataclasses.dataclass(frozen=True)
class History:
    """The content of a history file."""

    entries: tuple[Entry, ...] = ()
    """The claims of all runs, in the order of the file."""

    accepted: tuple[Acceptance, ...] = ()
    """The accepted changes, in the order of the file."""

    problems: tuple[str, ...] = ()
    """A sentence for each line that cannot be read."""

    @property
    def runs(self) -> list[str]:
        """The ids of all runs, in the order of the file."""
        return list(dict.fromkeys(entry.run for entry in self.entries))

    def series(self) -> dict[SeriesKey, list[Entry]]:
        """The entries of each series, oldest first; of two entries of one run the later one."""
        found: dict[SeriesKey, dict[str, Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.key, {})[entry.run] = entry
        return {key: sorted(by_run.values(), key=lambda entry: entry.time) for key, by_run in found.items()}

    def level(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries of a series since the last accepted change: those that a new run is compared with."""
        starts = {(item.claim_id, item.run) for item in self.accepted}
        for number in range(len(entries) - 1, -1, -1):
            if (entries[number].claim_id, entries[number].run) in starts:
                return list(entries[number:])
        return list(entries)


def read(path: Path) -> History:
    """The history in a file; an empty one if there is no file. Raises ConfigError if it cannot be opened."""
    entries: list[Entry] = []
    accepted: list[Acceptance] = []
    problems: list[str] = []
    for where, text in _lines(path):
        try:
            found = _entry(text, where)
        except ConfigError as error:
            problems.append(str(error))
            continue
        if isinstance(found, Entry):
            entries.append(found)
        else:
            accepted.append(found)
    if len(problems) > SHOWN:
        problems = [*problems[:SHOWN], f"{path}: cannot read {quantity(len(problems) - SHOWN, 'more line')}"]
    return History(tuple(entries), tuple(accepted), tuple(problems))


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"cannot read the history {path}: {error.strerror}; name another file") from None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if line.strip():
            yield f"{path}, line {number}", line


def _entry(text: bytes, where: str) -> Entry | Acceptance:
    content = json_text.decode(text, where, KNOWN)
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind not in (CLAIM, ACCEPTED):
        raise ConfigError(f"{where}: it is not a line of a history; {KNOWN.remove}")
    if kind == CLAIM:
        return json_text.document_of(content, Entry, where, KNOWN)
    return json_text.document_of(content, Acceptance, where, KNOWN)


def add(path: Path, lines: Sequence[Entry | Acceptance]) -> None:
    """Add lines to a history file, and force them to disk. A missing file is created.

    A torn last line gets a line end first. Other processes that add lines wait, for LOCK_SECONDS at most. If that
    raises OSError, the file has no part of these lines.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        _lock(path, file)
        size = file.seek(0, os.SEEK_END)
        torn = bool(size) and os.pread(file.fileno(), 1, size - 1) != b"\n"
        unwritten.append(path, b"\n" * torn + b"".join(map(json_text.encode, lines)))
        os.fsync(file.fileno())


def _lock(path: Path, file: IO[bytes]) -> None:
    """Lock the file until it is closed.

    Raises OSError after LOCK_SECONDS, which names the process that has the lock.
    """
    end = time.monotonic() + LOCK_SECONDS
    while not shared_directory.try_lock(file):
        if time.monotonic() > end:
            who = shared_directory.describe(shared_directory.lockers(os.fstat(file.fileno()))) or "another process"
            raise OSError(errno.EWOULDBLOCK, f"{who} has locked it for {LOCK_SECONDS:.0f} s", str(path))
        time.sleep(POLL)


def accept(path: Path, claim: str, run: str, reason: str) -> list[Entry]:
    """Accept that a claim has a new level from this run on, in all series; return that run's entries.

    claim: its id, or a part of it that no other claim has. run: the id of the run, or the beginning of one. Raises
    ConfigError for a claim or run that the history does not have, and OSError.
    """
    if not reason.strip():
        raise ConfigError('accept needs a reason, such as "another disk since Monday"')
    history = read(path)
    claim_id = _one("claim", claim, [entry.claim_id for entry in history.entries], lambda known: claim in known)
    runs = [entry.run for entry in history.entries if entry.claim_id == claim_id]
    chosen = _one("run", run, runs, lambda known: known.startswith(run))
    line = Acceptance(
        format=FORMAT, kind=ACCEPTED, claim_id=claim_id, run=chosen, reason=reason.strip(), time=time.time()
    )
    add(path, [line])
    return [entry for entry in history.entries if (entry.claim_id, entry.run) == (claim_id, chosen)]


def _one(what: str, asked: str, known: Sequence[str], fits: Callable[[str], bool]) -> str:
    """The known text that is ``asked``, or the only one that fits. Raises ConfigError for none and for several."""
    different = list(dict.fromkeys(known))
    if asked in different:
        return asked
    found = [text for text in different if asked and fits(text)]
    if len(found) == 1:
        return found[0]
    listed = "\n".join(f"  {text}" for text in (found or different)[-10:]) or "  (none)"
    problem = f"{len(found)} {what}s fit {asked!r}" if found else f"the history has no {what} {asked!r}"
    raise ConfigError(f"{problem}; the last ones are:\n{listed}")
