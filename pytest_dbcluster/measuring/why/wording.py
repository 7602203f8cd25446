"""Wording: sentences about what the servers of two variants did differently. The baseline comes first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.formatting import NOTHING, elide
from pytest_dbcluster.measuring.why.compared import ComparedFigure, ComparedStatement, steps_differ
from pytest_dbcluster.measuring.why.observation import PlanStep
from pytest_dbcluster.measuring.why.stacks import ComparedStack, function_times

LONGEST = 72  # characters of a statement in a sentence
FULL_SCAN, INDEX_SCAN = "ALL", "index"  # types of access


def other_plan(one: ComparedStatement, names: tuple[str, str]) -> str:
    """The sentence about a statement with another plan: both plans, both latencies, and the rows examined.

    names: baseline and candidate. Equal steps of plans of the same length are left out.
    """
    plans = (one.baseline_plan, one.candidate_plan)
    if len(plans[0]) == len(plans[1]):
        apart = [pair for pair in zip(*plans, strict=True) if steps_differ(*pair)]
        plans = tuple(first for first, _ in apart), tuple(second for _, second in apart)
    both = "; ".join(f"{name} {plan_text(plan)}" for name, plan in zip(names, plans, strict=True))
    rows = f"rows examined {_number(one.baseline.rows_examined)} v {_number(one.candidate.rows_examined)}"
    return f"another plan of {elide(one.statement, LONGEST)}: {both}; {_times(one)}; {rows}"


def statement(one: ComparedStatement) -> str:
    """The sentence about a statement with another latency."""
    return f"{elide(one.statement, LONGEST)}: {_times(one)}"


def wait(one: ComparedFigure) -> str:
    """The sentence about a wait, whose values are seconds."""
    return f"{one.name}: {times(one.baseline, one.candidate)}"


def status(one: ComparedFigure) -> str:
    """The sentence about a status variable."""
    ratio = ratio_text(one.baseline, one.candidate)
    return f"{one.name}: {_number(one.baseline)} v {_number(one.candidate)} per operation ({ratio})"


def cpu(stacks: Sequence[ComparedStack]) -> str:
    """The sentence about the CPU time of the servers, and the function whose own time differs most."""
    if not stacks:
        return ""
    whole = times(sum(one.baseline for one in stacks), sum(one.candidate for one in stacks))
    first = function_times(stacks)[0]
    name = f"functions without a name in {first.name[1:-1]}" if first.name.startswith("[") else first.name
    return f"CPU of the servers: {whole}; most different: {name}, {times(first.baseline, first.candidate)}"


def plan_text(plan: Sequence[PlanStep]) -> str:
    """A plan in words, such as ``key email of customers (const), about 1 row``."""
    return ", then ".join(map(_step_text, plan)) or NOTHING


def _step_text(step: PlanStep) -> str:
    table = step.table or "no table"
    if step.access == FULL_SCAN:
        how = f"full scan of {table}"
    elif step.access == INDEX_SCAN:
        how = f"full scan of the index {step.key} of {table}"
    else:
        how = f"key {step.key} of {table} ({step.access})" if step.key else f"{step.access} {table}".strip()
    expected = f", about {formatting.quantity(step.rows, 'row')}" if step.rows else ""
    return f"{how}{expected}{f' [{step.extra}]' if step.extra else ''}"


def _times(one: ComparedStatement) -> str:
    return times(one.baseline.seconds, one.candidate.seconds)


def times(baseline: float, candidate: float) -> str:
    """Two times per operation with their ratio; both are in seconds."""
    ratio = ratio_text(baseline, candidate)
    return f"{1e3 * baseline:.3g} v {1e3 * candidate:.3g} ms per operation ({ratio})"


def ratio_text(baseline: float, candidate: float) -> str:
    """The ratio candidate / baseline as text; ``from 0`` and ``to 0`` for nothing on one side."""
    if not baseline or not candidate:
        return NOTHING if baseline == candidate else ("to 0" if baseline else "from 0")
    return formatting.ratio(candidate / baseline)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == math.floor(value) else f"{value:.3g}"
