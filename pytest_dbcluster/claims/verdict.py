"""The verdict of a claim about paired log ratios: it holds, it fails, or it is inconclusive.

Everything here is pure. A claim is asked after every pair and answers only at its looks (``critical_values.LOOKS``);
the error it promises is that of all looks together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims import critical_values, estimators
from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict
from pytest_dbcluster.errors import ConfigError

ALPHA = critical_values.ALPHAS[0]
CAP = critical_values.LOOKS[-1]
FUTILITY_FROM = 28
FUTILE = 0.05
ROUNDING = 1e-12

Values = tuple[float, ...]
Asked = Sequence[tuple[Claim, Values]]

STALLS_KIND = claims.STALLS
STALL_PAIRS = 40
STALL_HOLD_LEVEL = critical_values.GUARD_LEVEL


@dataclasses.dataclass(frozen=True)
class Terms:
    """Under which terms a claim is judged.

    alpha: the chance of a wrong verdict per side; one that ``critical_values`` has. cap: the number of pairs that ends
    the drawing, 160 at most. out_of_budget: a reason to end it now; empty for none. blind: why no answer could be
    trusted, however many pairs were drawn; empty for none.
    """

    alpha: float = ALPHA
    cap: int = CAP
    out_of_budget: str = ""
    blind: str = ""


USUAL = Terms()


def judge(
    claim: Claim,
    log_ratios: Sequence[float],
    terms: Terms = USUAL,
    *,
    orders: Sequence[bool] | None = None,
    times: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Verdict | None:
    """The verdict of the look at hand; None between looks and while the claim is open, so draw another pair.

    ``log_ratios``: log(candidate / baseline) of each pair. ``orders`` says of each pair whether the baseline ran first.
    ``times`` are the seconds per round of baseline and candidate, for the count of stalls. Raises ConfigError for an
    alpha without critical values, ValueError for a ratio that is not a number.
    """
    values = tuple(map(estimators.bounded, log_ratios))
    decision = _decide([(claim, values)], terms)
    if decision is None:
        return None
    verdict = _verdict(*decision, claim, values, terms.alpha)
    if orders is not None:
        effect = estimators.factor(estimators.order_effect(values, orders)) - 1
        verdict = dataclasses.replace(verdict, order_effect=effect)
    if times is not None:
        verdict = dataclasses.replace(verdict, stalls=estimators.stall_test(*times)[:2])
    return inconclusive(verdict, terms.blind)


def replay(
    claim: Claim,
    log_ratios: Sequence[float],
    terms: Terms = USUAL,
    *,
    orders: Sequence[bool] | None = None,
    times: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Verdict | None:
    """The verdict of a claim that finds its pairs drawn already: that of the first look which decides.

    Takes what ``judge`` takes. None when these pairs decide nothing. A budget ends only the last of them, so
    a claim that is asked second answers as if it had been asked first.
    """
    past = dataclasses.replace(terms, out_of_budget="")

    def judged(look: int) -> Verdict | None:
        seen = None if orders is None else orders[:look]
        taken = None if times is None else (times[0][:look], times[1][:look])
        return judge(claim, log_ratios[:look], past, orders=seen, times=taken)

    return _first(judged, len(log_ratios), terms.cap) or judge(claim, log_ratios, terms, orders=orders, times=times)


def judge_ordered(
    log_ratios_per_neighbour: Sequence[Sequence[float]], terms: Terms = USUAL, *, step: float = 0.0
) -> Verdict | None:
    """The verdict on an order of variants, slowest first; one series of log(next / this) per step.

    The order holds when every step is proven at ``alpha`` (intersection-union, hence uncorrected) and fails
    when one is refuted at ``alpha`` / number of steps. The verdict is that of the smallest step and carries
    those of all. Raises ConfigError for fewer than 2 or more than 5 variants, ValueError for unlike series.
    """
    steps = len(log_ratios_per_neighbour)
    if not 1 <= steps <= critical_values.MOST_NEIGHBOURS:
        raise ConfigError(f"ordered takes 2 to {critical_values.MOST_NEIGHBOURS + 1} variants, not {steps + 1}")
    if len(set(map(len, log_ratios_per_neighbour))) > 1:
        raise ValueError("every step of an order needs the same number of pairs")
    claim = claims.ordered(step)
    series = [tuple(map(estimators.bounded, values)) for values in log_ratios_per_neighbour]
    decision = _decide([(claim, values) for values in series], terms)
    if decision is None:
        return None
    parts = tuple(inconclusive(_verdict(*decision, claim, values, terms.alpha), terms.blind) for values in series)
    smallest = weakest(parts)
    where = f" (the smallest step, {smallest + 1} of {steps})" if steps > 1 else ""
    return dataclasses.replace(parts[smallest], reason=parts[smallest].reason + where, neighbours=parts)


def weakest(steps: Sequence[Verdict]) -> int:
    """The number, from 0, of the smallest of these steps."""
    return min(range(len(steps)), key=lambda k: steps[k].ratio)


def replay_ordered(
    log_ratios_per_neighbour: Sequence[Sequence[float]], terms: Terms = USUAL, *, step: float = 0.0
) -> Verdict | None:
    """What ``replay`` is to ``judge``, for an order: takes what ``judge_ordered`` takes."""
    past = dataclasses.replace(terms, out_of_budget="")

    def judged(look: int) -> Verdict | None:
        return judge_ordered([values[:look] for values in log_ratios_per_neighbour], past, step=step)

    drawn = min(map(len, log_ratios_per_neighbour), default=0)
    return _first(judged, drawn, terms.cap) or judge_ordered(log_ratios_per_neighbour, terms, step=step)


def _first(judged: Callable[[int], Verdict | None], drawn: int, cap: int) -> Verdict | None:
    """The verdict of the first look at so many drawn pairs that decides."""
    return next(filter(None, (judged(look) for look in critical_values.LOOKS if look <= min(drawn, cap))), None)


def _decide(asked: Asked, terms: Terms) -> tuple[Outcome, str] | None:
    """Outcome and reason of the look at hand: the claims hold together, or one of them fails."""
    drawn = len(asked[0][1])
    alpha, cap = terms.alpha, min(terms.cap, CAP)
    upcoming = critical_values.next_look(drawn)
    last = upcoming is None or upcoming > cap
    if drawn in critical_values.LOOKS and drawn <= cap:
        answers = [_answer(claim, values, alpha, alpha / len(asked)) for claim, values in asked]
        failed = [answer for answer in answers if answer and answer[0] is Outcome.FAILS]
        if failed or all(answers):
            return (failed or answers)[0]
        if drawn >= FUTILITY_FROM and not last and _chance(asked, alpha, cap) < FUTILE:
            return (
                Outcome.INCONCLUSIVE,
                f"futile: chance to decide before the cap of {cap} pairs < {100 * FUTILE:.0f} %",
            )
    if terms.out_of_budget:
        return Outcome.INCONCLUSIVE, terms.out_of_budget
    if last and drawn >= min(cap, critical_values.LOOKS[0]):
        return Outcome.INCONCLUSIVE, f"cap of {cap} pairs"
    return None


def _answer(claim: Claim, values: Values, alpha: float, alpha_fail: float) -> tuple[Outcome, str] | None:
    """What the intervals of one look say; None while the claim is open."""
    low, high = claim.bounds
    hold = estimators.interval(values, claim.hold_level(alpha))
    if claim.kind == "differs":
        apart = _clear(hold[0], low) or _clear(high, hold[1])
        return (Outcome.HOLDS, "interval excludes equal speed") if apart else None
    if (math.isinf(low) or _clear(hold[0], low)) and (math.isinf(high) or _clear(high, hold[1])):
        return Outcome.HOLDS, "interval lies inside the claim"
    fail = estimators.interval(values, alpha_fail)
    if _clear(low, fail[1]) or _clear(fail[0], high):
        return Outcome.FAILS, f"interval lies {'below' if _clear(low, fail[1]) else 'above'} the claim"
    return None


def _clear(greater: float, less: float) -> bool:
    """Whether one number is above another by more than rounding: pairs without noise can lie on a bound."""
    return greater > less + ROUNDING


def _chance(asked: Asked, alpha: float, cap: int) -> float:
    """Chance that the last look before the cap decides, if the pairs to come resemble those drawn."""
    end = critical_values.last_look(cap) or cap
    holds, fails = [], 0.0
    for claim, values in asked:
        level, sd = claim.hold_level(alpha), estimators.pair_sd(values)
        centre = estimators.hodges_lehmann(values)
        above, below = centre - claim.bounds[0], claim.bounds[1] - centre
        held = [estimators.chance_beyond(gap, sd, len(values), level, end) for gap in (above, below)]
        if claim.kind == "differs":
            holds.append(sum(held))
            continue
        holds.append(max(0.0, sum(held) - 1))
        fails += sum(estimators.chance_beyond(-gap, sd, len(values), alpha / len(asked), end) for gap in (above, below))
    return min(holds) + fails


def _verdict(outcome: Outcome, reason: str, claim: Claim, values: Values, alpha: float) -> Verdict:
    """The verdict with everything that its message shows."""
    centre = estimators.hodges_lehmann(values)
    low, high = estimators.around(estimators.interval(values, alpha), centre)
    decided = estimators.around(estimators.interval(values, claim.hold_level(alpha)), centre)
    visible = estimators.detectable(values, claim.hold_level(alpha))
    first, second = estimators.halves(values)
    is_open = outcome is Outcome.INCONCLUSIVE
    return Verdict(
        outcome=outcome,
        claim=claim,
        pairs=len(values),
        ratio=estimators.factor(centre),
        low=estimators.factor(low),
        high=estimators.factor(high),
        decided_low=estimators.factor(decided[0]),
        decided_high=estimators.factor(decided[1]),
        reason=reason,
        detectable=estimators.factor(visible) - 1,
        needed_pairs=_pairs_needed(claim, values, alpha) if is_open else None,
        needed_margin=_margin_needed(claim, centre, visible) if is_open else None,
        pair_sd=estimators.pair_sd(values),
        halves=(estimators.factor(first), estimators.factor(second)),
        order_effect=math.nan,
        lag1=estimators.lag1(values),
        alpha=alpha,
    )


def _pairs_needed(claim: Claim, values: Values, alpha: float) -> int | None:
    """Pairs that would decide with power .8 if the estimate were the truth; None if it lies on the bound."""
    if len(values) < 2:
        return None
    centre = estimators.hodges_lehmann(values)
    distance = min(abs(centre - bound) for bound in claim.bounds)
    low, high = claim.bounds
    inside = claim.kind == "differs" or low < centre < high
    wanted = estimators.pairs_needed(distance, estimators.pair_sd(values), claim.hold_level(alpha) if inside else alpha)
    return max(wanted, len(values) + 1) if wanted else None


def _margin_needed(claim: Claim, centre: float, visible: float) -> float | None:
    """The margin at which a guard would hold with power .8, were the estimate the truth."""
    if not claim.guard or math.isinf(visible):
        return None
    shift = abs(centre) if claim.kind == "same_as" else max(0.0, -centre)
    return -math.expm1(-(shift + visible))


def inconclusive(verdict: Verdict, blind: str) -> Verdict:
    """The verdict, or an inconclusive one with a reason that no number of pairs removes."""
    if not blind:
        return verdict
    return dataclasses.replace(
        verdict, outcome=Outcome.INCONCLUSIVE, reason=blind, needed_pairs=None, needed_margin=None
    )


def judge_stalls(candidate: Sequence[float], baseline: Sequence[float], terms: Terms = USUAL) -> Verdict | None:
    """One look, after 40 pairs: fails when the candidate's stalls are too many for chance at ``alpha``.

    The arguments are seconds per round; of more than 40 pairs, or than the cap, the first ones count, so that it makes
    no difference what was drawn for other claims. Holds when chance explains the stalls at .05 (exact test on the
    discordant pairs). Inconclusive between the two, with fewer pairs than 40, and when ``terms.blind`` says why no
    answer could be trusted. None while pairs are missing.
    """
    most = min(terms.cap, STALL_PAIRS)
    candidate, baseline = candidate[:most], baseline[:most]
    few = ""
    if len(candidate) < STALL_PAIRS:
        few = f"cap of {terms.cap} pairs" if len(candidate) == most else terms.out_of_budget
        if not few:
            return None
    times = (baseline, candidate)
    ratios = [estimators.log_ratio(b, c) for b, c in zip(baseline, candidate, strict=True)]
    base = judge(claims.differs(), ratios, Terms(terms.alpha, out_of_budget=few or "one look"), times=times)
    assert base is not None
    theirs, ours, chance = estimators.stall_test(baseline, candidate)
    outcome, words = _stall_answer(chance, terms.alpha, few)
    found = dataclasses.replace(
        base,
        outcome=outcome,
        claim=Claim(STALLS_KIND, 0.0),
        reason=f"{words}: {ours} v {theirs}",
        stalls=(theirs, ours),
        needed_pairs=STALL_PAIRS if few and outcome is Outcome.INCONCLUSIVE else None,
        needed_margin=None,
    )
    return inconclusive(found, terms.blind)


def _stall_answer(chance: float, alpha: float, few: str) -> tuple[Outcome, str]:
    """What this chance of as many stalls says; ``few`` is why there are too few pairs to hold."""
    if chance <= alpha:
        return Outcome.FAILS, "more stalls than chance explains"
    if chance > STALL_HOLD_LEVEL and not few:
        return Outcome.HOLDS, "no more stalls than chance explains"
    return Outcome.INCONCLUSIVE, few or "could be chance, could be not"
