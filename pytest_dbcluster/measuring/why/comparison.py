"""Comparison: compares what the servers of two variants did in extra rounds.

The extra rounds are few, and no verdict counts them. ``has_moved`` says what counts as a difference. It has no stated
chance of error.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence

from pytest_dbcluster.measuring.why import wording
from pytest_dbcluster.measuring.why.compared import ComparedFigure, ComparedStatement, ServerComparison
from pytest_dbcluster.measuring.why.observation import ObservedRound, ObservedVariant, StatementCounts
from pytest_dbcluster.measuring.why.stacks import compare_stacks

LEAST_RATIO = 1.1  # of the means of something that moved
LEAST_SHARE = 0.02  # of the time of all statements: a smaller difference is not among the largest
LEAST_COUNT = 10  # growth of a status variable that is compared
LARGEST = 3
MOST_STATEMENTS, MOST_WAITS, MOST_STATUS = 20, 12, 12
# Waits that repeat the time of statements, or that are no work of the server.
OVERLAPPING = ("idle", "wait/io/table/", "wait/io/socket/")
# Readings, which do not count anything.
GAUGES = re.compile(
    r"pages_(data|dirty|free|misc|total|latched|old)$|bytes_(data|dirty)$|current|history_list|lsn|checkpoint|_avg$|"
    r"_max$|_min$|_size$|pending|_open_|mem_|_state|_index$|queue|interval|distance|window|_id$|_used|committed$|"
    r"thread_count$|paused$|oooe|oool|downto|version|capacity|tablespaces"
)


def compare_servers(
    baseline: ObservedVariant, candidate: ObservedVariant, remarks: Sequence[str] = (), no_stacks: str = ""
) -> ServerComparison:
    """Compare two variants that were observed with the same workload. no_stacks: why they have no stacks."""
    both = (baseline, candidate)
    statements = _statements(both)
    waits = _figures(both, lambda done: done.counts.waits)
    least = 1 / max(1, min(sum(done.operations for done in one.rounds) for one in both))
    status = [one for one in _figures(both, lambda done: done.counts.status) if one.moved and _counts(one, least)]
    status.sort(key=lambda one: -abs(math.log((one.candidate + least) / (one.baseline + least))))
    stacks = compare_stacks(baseline.stacks, candidate.stacks)
    return ServerComparison(
        baseline.name,
        candidate.name,
        min(len(one.rounds) for one in both),
        remarks=tuple(remarks),
        largest=tuple(_largest(statements, waits, status, (baseline.name, candidate.name))),
        statements=tuple(statements[:MOST_STATEMENTS]),
        waits=tuple(waits[:MOST_WAITS]),
        status=tuple(status[:MOST_STATUS]),
        stacks=stacks,
        cpu=wording.cpu(stacks),
        no_stacks=no_stacks,
    )


def has_moved(baseline: Sequence[float], candidate: Sequence[float]) -> bool:
    """Whether all rounds of one variant lie above those of the other, by more than a tenth in the mean."""
    low, high = sorted((baseline, candidate), key=statistics.fmean)
    return max(low) < min(high) and statistics.fmean(high) > LEAST_RATIO * statistics.fmean(low)


Both = tuple[ObservedVariant, ObservedVariant]


def _statements(both: Both) -> list[ComparedStatement]:
    """All statements; other plans that matter come first, then the largest change of latency."""
    texts = dict.fromkeys(text for one in both for done in one.rounds for text in done.counts.statements)
    made = []
    for text in texts:
        by_round = [[_of_round(done, text) for done in one.rounds] for one in both]
        totals = [sum(operations for operations, _ in rounds) for rounds in by_round]
        sums = [sum((counts for _, counts in rounds), StatementCounts()) for rounds in by_round]
        baseline, candidate = (each.of_one(total) for each, total in zip(sums, totals, strict=True))
        seconds = [[counts.seconds / operations for operations, counts in rounds] for rounds in by_round]
        plans = [one.plans.get(text, ()) for one in both]
        made.append(ComparedStatement(text, baseline, candidate, plans[0], plans[1], has_moved(seconds[0], seconds[1])))
    return sorted(made, key=lambda one: (not one.matters, -abs(one.change)))


def _of_round(done: ObservedRound, text: str) -> tuple[int, StatementCounts]:
    return max(1, done.operations), done.counts.statements.get(text, StatementCounts())


def _figures(both: Both, values: Callable[[ObservedRound], Mapping[str, float]]) -> list[ComparedFigure]:
    """What all rounds of both variants have, per operation; the largest change first."""
    every = [values(done) for one in both for done in one.rounds]
    made = []
    for name in (name for name in every[0] if all(name in other for other in every)):
        baseline, candidate = ([values(done)[name] / max(1, done.operations) for done in one.rounds] for one in both)
        means = statistics.fmean(baseline), statistics.fmean(candidate)
        if any(means):
            made.append(ComparedFigure(name, *means, has_moved(baseline, candidate)))
    return sorted(made, key=lambda one: -abs(one.change))


def _counts(figure: ComparedFigure, least: float) -> bool:
    """Whether a status variable counts something, and often enough. least: 1 / operations of a variant."""
    return max(figure.baseline, figure.candidate) >= LEAST_COUNT * least and not GAUGES.search(figure.name)


def _largest(
    statements: Sequence[ComparedStatement],
    waits: Sequence[ComparedFigure],
    status: Sequence[ComparedFigure],
    names: tuple[str, str],
) -> list[str]:
    """Sentences about the largest differences: other plans, then statements and waits by time, then status."""
    spent = max(sum(getattr(one, side).seconds for one in statements) for side in ("baseline", "candidate"))
    first = [wording.other_plan(one, names) for one in statements if one.matters]
    timed = [(one.change, wording.statement(one)) for one in statements if one.moved and not one.matters]
    waited = [one for one in waits if one.moved and not one.name.startswith(OVERLAPPING)]
    timed += [(one.change, wording.wait(one)) for one in waited]
    timed.sort(key=lambda one: -abs(one[0]))
    second = [text for change, text in timed if abs(change) >= LEAST_SHARE * spent]
    return [*first, *second, *map(wording.status, status)][:LARGEST]
