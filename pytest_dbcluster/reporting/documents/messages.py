"""Messages: what a worker of pytest-xdist sends to the process that the user started; they are never saved."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.record_documents import KNOWN


@dataclasses.dataclass(frozen=True)
class Message:
    """A message from a worker of pytest-xdist to the process that the user started.

    kind: ``line`` for a line of text. ``claim`` or ``curve`` for a record that the worker has saved in its directory.
    ``taken over``, ``outdated`` or ``kept`` for an answer or a curve of the run that this one continues.
    text, colour: the line to show. directory: the worker's results directory. line: the line of the record in its
    ``claims.jsonl`` or ``curves.jsonl``, 1-based. test, claim_id: of the earlier answer. curve: the key of the earlier
    curve. now, repeat: the test that takes it over, and the command that repeats it.
    """

    kind: str
    text: str = ""
    colour: str = ""
    directory: str = ""
    line: int = 0
    test: str = ""
    claim_id: str = ""
    now: str = ""
    repeat: str = ""
    curve: tuple[str, ...] = ()


def encode(message: Message) -> bytes:
    """The message as bytes, for another process of the same run."""
    return json_text.encoded(message)


def decode(text: bytes) -> Message:
    """The message in these bytes, as ``encode`` writes it. Raises ConfigError for other bytes."""
    where = "a message of a worker"
    return json_text.converted(json_text.decoded(text, where, KNOWN), Message, where, KNOWN)
