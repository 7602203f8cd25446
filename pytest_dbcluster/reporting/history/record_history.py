"""Adds a run to its history at the end of the run, and makes the lines about it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity, some
from pytest_dbcluster.reporting import unwritten
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.history import guard, history_file
from pytest_dbcluster.reporting.history.entry import Entry
from pytest_dbcluster.reporting.history.history_file import History
from pytest_dbcluster.reporting.results_directory import HISTORY
from pytest_dbcluster.reporting.unwritten import Unwritten

SHOWN = 2  # machines that a line names


@dataclasses.dataclass(frozen=True)
class RunHistory:
    """What a run shows of its history when it ends."""

    lines: tuple[str, ...]
    """The lines for the terminal."""

    drifted: bool = False
    """Whether a claim differs from its earlier runs."""


def add_run(path: Path, results: Path, entries: Sequence[Entry], lost: Unwritten) -> RunHistory:
    """Add the entries of a run to the history in ``path``, and compare them with it.

    If the run continued others, entries are of several runs. results: the results directory. It gets the part of the
    history about these claims, so its page can be made without the history. A second call adds only new entries.
    ``lost`` notes files that cannot be written; if the history cannot be read, a line says so.
    """
    try:
        before = history_file.read(path)
    except ConfigError as error:
        return RunHistory((f"history: {error}",))
    there = {(entry.run, entry.key) for entry in before.entries}
    fresh = [entry for entry in entries if (entry.run, entry.key) not in there]
    if fresh:
        with lost.note(path):
            history_file.add(path, fresh)
    history = History((*before.entries, *fresh), before.accepted, before.problems)
    found = guard.judge(history, {entry.run for entry in entries})
    with lost.note(results / HISTORY):
        unwritten.write(results / HISTORY, _part(history, {entry.claim_id for entry in entries}))
    runs = quantity(len(history.runs), "run")
    lines = [*before.problems, f"history: {path} has {runs}; {quantity(len(entries), 'claim')} of this run"]
    few = any(not item.drift.has_enough_runs for item in found)
    lines += [*guard.lines(found), *(_other_machines(history, entries) if few else ())]
    return RunHistory(tuple(lines), any(item.drift.warns for item in found))


def _other_machines(history: History, entries: Sequence[Entry]) -> list[str]:
    """The line about runs of these claims on other machines, which are not compared; empty without such runs."""
    own, claims = {entry.machine for entry in entries}, {entry.claim_id for entry in entries}
    others = [entry for entry in history.entries if entry.claim_id in claims and entry.machine not in own]
    if not others:
        return []
    machines = list(dict.fromkeys(entry.machine for entry in others))
    runs = quantity(len({entry.run for entry in others}), "run")
    return [f"history: {runs} on another machine ({some(machines, SHOWN)}) cannot be compared with this one"]


def _part(history: History, claims: set[str]) -> bytes:
    """The lines of a history that are about these claims."""
    some = [*(entry for entry in history.entries if entry.claim_id in claims)]
    accepted = [item for item in history.accepted if item.claim_id in claims]
    return b"".join(map(json_text.encode, [*some, *accepted]))
