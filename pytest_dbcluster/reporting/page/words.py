"""Words: sentences and numbers of the page."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing
from pytest_dbcluster.rounds import metrics

STATES = {Outcome.HOLDS: "holds", Outcome.FAILS: "refuted", Outcome.INCONCLUSIVE: "inconclusive"}
BESIDE = "compared"  # of a comparison that claims nothing
NOTHING = "-"
SYMBOLS = {
    "holds": "✓",
    "refuted": "✗",
    "inconclusive": "?",
    BESIDE: "=",
    "broken": "!",
    "cut short": "/",
    "skipped": NOTHING,
}
MOST_DIGITS = 6


def state(record: ClaimRecord) -> str:
    """The outcome of a claim as one word: holds, refuted, inconclusive, or compared where nothing is claimed."""
    return STATES[record.verdict.outcome] if record.asserted else BESIDE


def names(record: ClaimRecord) -> tuple[str, ...]:
    """The variants as the claim writes them: candidate and baseline, or an order with the slowest first."""
    if record.verdict.claim.kind == "ordered":
        return tuple(record.rounds)[::-1]
    return record.candidate, record.baseline


def sentence(record: ClaimRecord) -> str:
    """The answer in words: ``flush_2 is faster than galera3``."""
    verdict = record.verdict
    unit = metrics.unit(record.metric)
    return wording.sentence(verdict.claim, verdict.outcome, names(record), record.metric, unit)


def ratio(record: ClaimRecord) -> str:
    """The measured ratio: ``1.84``; a dash where nothing was measured."""
    value = record.verdict.ratio
    return NOTHING if math.isnan(value) else apart(value, claim_chart.bounds(record))


def interval(record: ClaimRecord) -> str:
    """The interval of the ratio, ``1.18 .. 3.08``; ``no interval yet`` before there are enough pairs."""
    verdict = record.verdict
    if not claim_chart.bounded(verdict.low, verdict.high):
        return "no interval yet"
    limits = claim_chart.bounds(record) or [1.0]
    return f"{apart(verdict.low, limits)} .. {apart(verdict.high, limits)}"


def apart(value: float, limits: Sequence[float]) -> str:
    """A ratio as the closing table shows it, with more digits where rounding would move it onto or across a limit.

    What is equal to a limit in five digits is shown as equal.
    """
    short = text = closing.number(value)
    digits = 2
    while digits < MOST_DIGITS and any(_side(float(text), limit) != _side(value, limit) for limit in limits):
        digits += 1
        text = f"{value:.{digits}f}"
    return text if digits < MOST_DIGITS else short


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


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


def said(text: str) -> str:
    """The text as a sentence: with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def plural(count: int, one: str, many: str) -> str:
    """``1 is refuted``, ``2 are refuted``."""
    return f"{count} {one if count == 1 else many}"
