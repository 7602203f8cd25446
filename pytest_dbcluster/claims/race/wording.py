"""The message of a race: who wins, the table of all variants, then the details."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dbcluster.claims import cluster_difference, wording
from pytest_dbcluster.claims.claim import UNDECIDED, Outcome, Verdict
from pytest_dbcluster.claims.race import standing
from pytest_dbcluster.claims.race.standing import Standing


def message(
    verdict: Verdict,
    standings: Sequence[Standing],
    *,
    metric: str,
    usual: str,
    unit: str,
    seconds: float,
    seed: int,
    load: str,
    extra: Sequence[str] = (),
    carried: bool = False,
) -> str:
    """The lines that a race prints, as one text. Arguments as in ``wording.message``."""
    claim, names = verdict.claim, tuple(one.name for one in standings)
    sentence = claim.sentence(verdict.outcome, names, metric, unit).removeprefix(UNDECIDED)
    rounds = sum(one.rounds for one in standings)
    figures = f"{rounds} rounds in {seconds:.0f} s"
    next_lines = []
    if verdict.outcome is Outcome.INCONCLUSIVE:
        needs = wording.needs(verdict, seconds, load, len(names))
        next_lines = [f"why: {verdict.reason}", f"next: it needs {needs}"]
    else:
        figures = f"{figures}; {wording.UNBOUNDED if carried else error(verdict, len(names))}"
    first = [
        f"{claim.of_kind.word(verdict.outcome).upper()}: {sentence}",
        *next_lines,
        *table(standings),
        figures,
    ]
    details = [
        f"{claim.call(names, metric, usual)}   metric {metric}   {verdict.pairs} blocks, seed {seed}",
        f"-> {verdict.reason}; intervals at {wording.confidence(2 * verdict.alpha / (len(names) - 1))}",
        *extra,
    ]
    return "\n".join(["\n  ".join(first), "\n  ".join([wording.DETAILS, *details])])


def table(standings: Sequence[Standing]) -> list[str]:
    """The lines of the table, aligned."""
    cells = [standing.columns(standings), *standing.rows(standings)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["   ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def error(verdict: Verdict, variants: int) -> str:
    """The error of a race with a winner."""
    wrong = f"this verdict is wrong at most 1 time in {1 / verdict.alpha:.0f}"
    if not verdict.claim.apart:
        return wrong
    differ = cluster_difference.percent(verdict.claim.apart)
    one_in = f"up to {variants - 1} in {cluster_difference.ONE_IN}"
    return f"{wrong}, unless a cluster differs from an equal one of the best variant by more than {differ} ({one_in})"
