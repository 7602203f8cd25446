"""The texts with which Allure shows a test that measured: name with the ratio, claims as HTML, message.

Allure removes scripts, styles and parts of inline SVG from a description, so a chart is an embedded image.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Sequence
from html import escape

from pytest_dbcluster import reasons
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import UNDECIDED, Outcome
from pytest_dbcluster.reporting.page import words
from pytest_dbcluster.reporting.page.claim_view import ClaimView
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import closing

INCONCLUSIVE = "inconclusive: "
CLASSES = {  # the state of a claim that ends a test with an error: how the message of pytest begins
    "inconclusive": "pytest_dbcluster.errors.Inconclusive: ",
    "refuted": "pytest_dbcluster.errors.ClaimFailed: ",
}
RANKS = {Outcome.FAILS: 0, Outcome.INCONCLUSIVE: 1, Outcome.HOLDS: 2}  # which claim names the test
WIDTH = 800  # of a chart, in pixels
PAPER = 'style="background: white"'  # a chart is drawn for paper, and Allure has a dark theme
WRAPPED = 'style="white-space: normal; overflow-wrap: anywhere"'  # otherwise Allure cuts off long lines


@dataclasses.dataclass(frozen=True)
class Shown:
    """A claim or a curve of a test."""

    record: ClaimRecord | CurveRecord
    """The claim or curve."""

    chart: str = ""
    """The text of its SVG file; empty without a chart."""


def name(test: str, shown: Sequence[Shown], *, inconclusive: bool = False) -> str:
    """The name of a test with the ratio of its claim: ``test_flush[write]: 1.84 (1.18 .. 3.08)``.

    If there are several claims, it is the first refuted one, or the first inconclusive one; the others are counted.
    Allure calls an inconclusive test ``unknown``, so its name has the state, also without a claim. inconclusive:
    whether the test is inconclusive.
    """
    claims = [one.record for one in shown if isinstance(one.record, ClaimRecord)]
    if not claims:
        return f"{test}: {INCONCLUSIVE.rstrip(': ')}" if inconclusive else test
    asserted = [record for record in claims if record.asserted] or claims
    first = min(asserted, key=lambda record: RANKS[record.verdict.outcome])
    more = f" and {len(asserted) - 1} more" if len(asserted) > 1 else ""
    state = INCONCLUSIVE if words.state(first) == "inconclusive" else ""
    metric = "" if first.metric == "throughput" else f"{first.metric} "
    return f"{test}: {state}{metric}{_estimate(first)}{more}"


def html(docstring: str, shown: Sequence[Shown], why: str = "") -> str:
    """The description of a test: its docstring as text, then its claims and curves.

    why: why the test is inconclusive; empty for others. It is shown if there is no claim.
    """
    text = "".join(f"<p>{escape(part.strip())}</p>" for part in docstring.split("\n\n") if part.strip())
    text += _reason_and_advice(why) if why and not shown else ""
    parts = [_claim(one.record) if isinstance(one.record, ClaimRecord) else _curve(one.record) for one in shown]
    charts = [_image(one.chart, number) for number, one in enumerate(shown, 1)]
    return text + "".join(part + chart for part, chart in zip(parts, charts, strict=True))


def message(text: str, shown: Sequence[Shown]) -> tuple[str, str]:
    """The message of a test that a claim has ended, as one line, and pytest's whole message, which Allure folds.

    Other text stays as it is, with nothing to fold. An inconclusive test always begins with that word.
    """
    for state, before in CLASSES.items():
        if text.startswith(before):
            said = text.removeprefix(before)
            claims = [one.record for one in shown if isinstance(one.record, ClaimRecord)]
            if first := next((record for record in claims if words.state(record) == state), None):
                why = ClaimView(first).needs
                return f"{_answer(first)}: {_estimate(first)}{f'; {why}' if why else ''}", said
            return (f"{INCONCLUSIVE}{said}" if state == "inconclusive" else said), ""
    return text, ""


def _answer(record: ClaimRecord) -> str:
    """State and sentence: ``refuted: flush_2 is not faster than galera3``."""
    return f"{words.state(record)}: {words.sentence(record).removeprefix(UNDECIDED)}"


def _estimate(record: ClaimRecord) -> str:
    """The ratio with the interval that decided the claim."""
    return f"{words.ratio(record)} ({words.deciding_interval(record)})"


def _measured_ratio(record: ClaimRecord) -> str:
    """The ratio with the sequential interval and its level."""
    return f"{words.ratio(record)} ({wording.level(record.verdict)}: {words.interval(record)})"


def _claim(record: ClaimRecord) -> str:
    """The answer in words, then its figures as two tables."""
    guarded = closing.guard_interval(record)
    state = words.state(record)
    view = ClaimView(record)
    figures = {
        "claim": record.text,
        "load": record.load,
        "data": view.data,
        "release": record.release,
        "measured": _measured_ratio(record),
        "holds by": guarded and f"90 %: {guarded}",
        "published": ", ".join(filter(None, (view.published, view.difference))),
        "needs": view.needs,
        "what to do": str(view.advice or ""),
        f"{closing.unit_of(record)}s": f"{record.verdict.pairs}, {record.measured_seconds:.0f} s measured",
        "repeat": record.repeat,
    }
    heading = f"{words.SYMBOLS[state]} {_answer(record)}"
    rows = [(title, text) for title, text in figures.items() if text]
    others = [table for table in (view.medians, view.repetitions) if table]
    tables = "".join(_table(table.columns, table.rows) for table in others)
    return f"<h3>{escape(heading)}</h3>{_table((), rows)}{tables}"


def _reason_and_advice(why: str) -> str:
    """Why a test without a claim is inconclusive, and what to do."""
    advice = reasons.advice(why)
    return f"<h3>{escape(why)}</h3>" + (f"<p>what to do: {escape(str(advice))}</p>" if advice else "")


def _curve(record: CurveRecord) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in record.notes)
    return f"<h3>{escape(record.title)}</h3>{notes}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts; the first column has the headings of the rows."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = [
        f"<th>{escape(title)}</th>{''.join(f'<td {WRAPPED}>{escape(cell)}</td>' for cell in row)}"
        for title, *row in rows
    ]
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in [head, *body] if row)}</table>"


def _image(svg: str, number: int) -> str:
    if not svg:
        return ""
    data = base64.b64encode(svg.encode()).decode()
    return f'<p><img src="data:image/svg+xml;base64,{data}" alt="chart {number}" width="{WIDTH}" {PAPER}></p>'
