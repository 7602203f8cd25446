"""Words: sentences and numbers of the page. Those for states are the terminal's (``tables/states.py``)."""

from __future__ import annotations

import math
import time

from pytest_dbcluster.claims import wording
from pytest_dbcluster.formatting import NOTHING
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing
from pytest_dbcluster.reporting.tables.states import SYMBOLS as SYMBOLS
from pytest_dbcluster.reporting.tables.states import state as state
from pytest_dbcluster.rounds import metrics


def names(record: ClaimRecord) -> tuple[str, ...]:
    """The variants as the claim writes them (``Claim.call``)."""
    kind = record.verdict.claim.of_kind
    if kind.of_many:
        return tuple(record.rounds)[:: -1 if kind.candidate_last else 1]
    return (record.candidate, *([record.baseline] if record.baseline else []))


def sentence(record: ClaimRecord) -> str:
    """The answer in words: ``flush_2 is faster than galera3``."""
    verdict = record.verdict
    unit = metrics.unit(record.metric)
    return verdict.claim.sentence(verdict.outcome, names(record), record.metric, unit)


def ratio(record: ClaimRecord) -> str:
    """The measured ratio: ``1.84x``; a dash if nothing was measured."""
    return wording.ratio(record.verdict)


def interval(record: ClaimRecord) -> str:
    """The interval of the ratio, ``1.18 .. 3.08``; ``no interval yet`` before there are enough pairs."""
    return wording.interval(record.verdict)


def deciding_interval(record: ClaimRecord) -> str:
    """The interval that decided: ``90 %: 0.96 .. 1.08`` for a guard that holds, otherwise that of ``interval``."""
    guarded = closing.guard_interval(record)
    return f"90 %: {guarded}" if guarded else interval(record)


def figure(value: float) -> str:
    """An absolute figure with three or four significant digits: ``1234``, ``12.3``, ``0.00456``."""
    if not math.isfinite(value):
        return NOTHING
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g} M"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def moment(seconds: float) -> str:
    """Seconds since 1970 as date and time of this machine's time zone."""
    return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(seconds))


def as_sentence(text: str) -> str:
    """The text as a sentence: with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def plural(count: int, one: str, many: str) -> str:
    """``1 is refuted``, ``2 are refuted``."""
    return f"{count} {one if count == 1 else many}"
