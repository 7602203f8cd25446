"""Messages: what a worker of pytest-xdist sends to the process that the user started; nobody saves them."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.record_documents import KNOWN
from pytest_dbcluster.reporting.records import Reading


@dataclasses.dataclass(frozen=True)
class Message:
    """A message from a worker of pytest-xdist to the process that the user started."""

    kind: str
    """``line`` for a line of text, ``claim`` or ``curve`` for a record that the worker has saved in its directory.

    ``taken over``, ``outdated`` or ``kept`` for an answer or a curve of the run that this one continues.
    """

    text: str = ""
    """The line to show."""

    colour: str = ""
    """The colour of the line; empty for none."""

    directory: str = ""
    """The worker's results directory."""

    line: int = 0
    """The line of the record in the worker's ``claims.jsonl`` or ``curves.jsonl``, 1-based."""

    test: str = ""
    """The test of the earlier answer."""

    claim_id: str = ""
    """The id of the earlier answer's claim."""

    reading: Reading | None = None
    """How a test reads the earlier answer that it takes over."""

    now: str = ""
    """The test that keeps the earlier curve."""

    curve: tuple[str, ...] = ()
    """The key of the earlier curve."""


def encode(message: Message) -> bytes:
    """The message as bytes, for another process of the same run."""
    return json_text.encode(message)


def decode(text: bytes) -> Message:
    """The message in these bytes, as ``encode`` writes it. Raises ConfigError for other bytes."""
    where = "a message of a worker"
    return json_text.convert(json_text.decode(text, where, KNOWN), Message, where, KNOWN)
