"""The message of a verdict about repetitions, such as of an event: sentence, interval, error, and every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import UNDECIDED, Outcome, Verdict
from pytest_dbcluster.claims.repetitions.kind import RepetitionKind, seconds_text
from pytest_dbcluster.claims.repetitions.proportion import ProportionKind
from pytest_dbcluster.claims.repetitions.samples import Repetitions

INDEPENDENT = ", if {}s are independent"


def message(
    verdict: Verdict,
    *,
    names: tuple[str, ...],
    metric: str,
    unit: str,
    samples: Mapping[str, Repetitions],
    seconds: float,
    seed: int,
    load: str,
    extra: Sequence[str] = (),
) -> str:
    """The lines that a verdict prints, as one text.

    names: as in ``Claim.call``. unit: of the metric. samples: by variant. seconds: the time of all repetitions. load:
    the workload and its event. extra: more lines.
    """
    claim, kind = verdict.claim, verdict.claim.of_kind
    assert isinstance(kind, RepetitionKind)
    sentence = claim.sentence(verdict.outcome, names, metric, unit).removeprefix(UNDECIDED)
    within = wording.interval(verdict)
    within = within if within == formatting.NO_INTERVAL else f"{wording.level(verdict)} interval {within}"
    first = [
        f"{kind.word(verdict.outcome).upper()}: {sentence}; measured {wording.ratio(verdict)} ({within}), "
        f"claimed {kind.range_text(claim)}"
    ]
    if verdict.outcome is Outcome.INCONCLUSIVE:
        first += [f"why: {verdict.reason}", f"next: it needs {kind.needs(verdict)}"]
    done = f"{formatting.quantity(verdict.pairs, kind.repetition)} of {load} in {seconds:.0f} s"
    first += [done + (f"; {error(verdict)}" if verdict.outcome is not Outcome.INCONCLUSIVE else "")]
    for name, own in samples.items():
        first += _values(name, own, metric, unit, kind.censored)
    details = [f"{claim.call(names, metric, usual='')}   seed {seed}", f"-> {verdict.reason}", *extra]
    return "\n".join(["\n  ".join(first), "\n  ".join([wording.DETAILS, *details])])


def error(verdict: Verdict) -> str:
    """What a verdict promises: its error, and on what that rests."""
    kind = verdict.claim.of_kind
    assert isinstance(kind, RepetitionKind)
    rests = INDEPENDENT.format(kind.repetition) if kind.independent else ""
    if isinstance(kind, ProportionKind) and verdict.ratio:
        return verdict.reason
    if isinstance(kind, ProportionKind):
        share = kind.interval_text(verdict.low, verdict.high, ()).rpartition(" .. ")[2]
        sure = f"with {wording.level(verdict)} confidence{rests}"
        return f"{kind.an_exception} in up to {share} of the events remains possible, {sure}"
    alpha = verdict.alpha * (2 if kind.claims_nothing else 1)  # a difference may be shown wrongly to either side
    return f"this verdict is wrong at most 1 time in {1 / alpha:.0f}{rests}"


def _values(name: str, own: Repetitions, metric: str, unit: str, why: str) -> list[str]:
    """A line with every value, and a line about lower bounds if there are any. why: they are lower bounds."""
    if own.texts:
        return [f"{metric.partition(':')[0]} of {name}: {', '.join(own.texts)}"]
    texts = [
        f"{'> ' if number < len(own.censored) and own.censored[number] else ''}{_text(value, unit)}"
        for number, value in enumerate(own.values)
    ]
    title = f"{metric}{f' in {unit}' if unit else ''} of {name}"
    largest = f"; largest {_text(max(own.values), unit)}" if own.values else ""
    lines = [f"{title}: {', '.join(texts)}{largest}"]
    if censored := sum(own.censored):
        lines.append(f"{formatting.quantity(censored, 'value')} of {name} {why}: a lower bound")
    return lines


def _text(value: float, unit: str) -> str:
    return seconds_text(value) if unit else formatting.amount(value)
