"""Less durable: which of the faster variants of a run guarantee less after a commit, for the end of the terminal.

The label of ``ClaimRecord.durability`` says what a commit guarantees. This line says who pays for speed with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing

BINLOG, BINLOG_OFF = "sync_binlog", "binlog off"


def _flushes(value: str) -> float:
    """1 and 3 flush the log at every commit, 2 once a second; 0 also writes it once a second."""
    return {"1": 2.0, "3": 2.0, "2": 1.0, "0": 0.0}.get(value, math.nan)


def _syncs(value: str) -> float:
    """The server flushes the binlog after so many groups of commits; with 0 it never does."""
    return (1 / int(value) if int(value) else 0.0) if value.isdecimal() else math.nan


def _protocol(value: str) -> float:
    """With C the standby has a commit on its disk, with B in its memory, with A perhaps not yet."""
    return {"A": 0.0, "B": 1.0, "C": 2.0}.get(value.upper(), math.nan)


# Each setting with a function that is larger for a value that guarantees more; nan is neither more nor less.
STRENGTHS: Mapping[str, Callable[[str], float]] = {
    "innodb_flush_log_at_trx_commit": _flushes,
    BINLOG: _syncs,
    "drbd_protocol": _protocol,
}


def lines(records: Sequence[ClaimRecord]) -> list[str]:
    """One line for each two variants of which the faster one has a weaker setting; empty without such variants.

    A variant is faster if the interval that decided excludes equal speed, and also the difference of equal clusters.
    """
    return list(dict.fromkeys(filter(None, map(_line, records))))


def _line(record: ClaimRecord) -> str:
    candidate = _is_candidate_faster(record)
    if candidate is None:
        return ""
    names = record.candidate, record.baseline
    settings = {name: (new, old) for name, (old, new) in record.differences.items() if name in STRENGTHS}
    if any(BINLOG_OFF in label for label in record.durability.values()):
        settings.pop(BINLOG, None)
    if not candidate:
        names, settings = names[::-1], {name: values[::-1] for name, values in settings.items()}
    weaker = {name: both for name, both in settings.items() if STRENGTHS[name](both[0]) < STRENGTHS[name](both[1])}
    if not weaker:
        return ""
    has = " and ".join(f"{name}={value}" for name, (value, _) in weaker.items())
    other = " and ".join(value for _, value in weaker.values())
    return f"less durable: {names[0]} has {has} ({names[1]}: {other}); a crash can lose its last commits"


def _is_candidate_faster(record: ClaimRecord) -> bool | None:
    """Whether the candidate is the faster variant; None if neither is, and for claims that compare no speeds."""
    claim = record.verdict.claim
    if claim.counts or claim.of_kind.composed or not claim.of_kind.is_ratio:
        return None
    low, high, _ = closing.deciding_interval(record)
    if low * math.exp(-claim.apart) > 1:
        return True
    return False if high * math.exp(claim.apart) < 1 else None
