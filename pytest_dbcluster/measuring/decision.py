"""Ask a claim: draw blocks of rounds until the claim is decided."""

from __future__ import annotations

import dataclasses
import functools

from pytest_dbcluster.claims import critical_values, estimators, intervals, verdict, wording
from pytest_dbcluster.claims.block_order import Block
from pytest_dbcluster.claims.claim import Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.errors import ConfigError, Inconclusive, LockHeld
from pytest_dbcluster.measuring import reach, remarks, round_trips
from pytest_dbcluster.measuring.answer import Answer, Compared
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.rounds import busy_machine, counters, load_generator, metrics, open_loop

SHARED_STEP = ", except between variants that share their clusters"
NOT_LEARNED = "how far equal clusters differ is not learned from these rounds, because the machine was busy"
SHOWN_PAIRS = 20  # the cap when no verdict can be trusted: enough to show an estimate


def ask(question: Question, measurement: Measurement, *, cap: int | None = None) -> Answer:
    """Draw blocks until the claim is decided, check the clusters, and return the answer.

    cap: a lower maximum of pairs than the run's. Pairs that another claim has drawn are replayed look by look, so the
    order of the claims in a test changes no verdict. When no verdict can be trusted on this machine, it draws at most
    20 pairs, to show an estimate. Raises SeriesVoid for too many void blocks or a failed check. Raises ConfigError
    for a margin that is not larger than the difference that equal clusters can have, where the variants run on separate
    ones. Raises Inconclusive when the run's time is used before the first block, and when the warm-up shows that the
    budget ends before the first look. Raises LockHeld; its rounds so far are an inconclusive answer, reported before.
    """
    rules, source = measurement.rules, measurement.source
    question, difference = apart(question, measurement)
    claim, variants = question.claim, question.variants
    cap = min(cap or rules.cap, rules.cap)
    untrusted = "" if claim.counts else source.blind_spot(*variants, by_size=claim.of_kind.about_size)
    untrusted = untrusted or metrics.near_capacity(question.metric, source.arrival_rate)
    cap = min(cap, SHOWN_PAIRS) if untrusted else cap
    if question.asserted and not untrusted and (why := measurement.too_slow(question)):
        raise Inconclusive(f"{source.load}: {claim.kind} cannot be decided: {why}")
    estimate: tuple[float, float, float] | None = None
    drawn_before = measurement.pairs
    judged = functools.partial(_judged, question, measurement, cap, untrusted)
    answered = functools.partial(_told, question, difference, measurement, drawn_before)
    decided = judged(measurement.over(variants), drawn_before=True) if drawn_before else None
    while decided is None:
        try:
            measurement.draw(variants, estimate, cap)
        except Inconclusive as error:  # the run's time was used while it waited for the machine
            if not measurement.pairs:
                raise
            decided = judged(str(error))
            continue
        except LockHeld as error:
            if _keep_begun(measurement) and (decided := judged(str(error))):
                answer = dataclasses.replace(answered(decided), interrupted=True)
                measurement.finish(answer)
                answer.report()  # its test never reads it
            raise
        decided = judged(measurement.over(variants))
        if measurement.pairs in critical_values.looks(measurement.instances) and not question.others:
            estimate = _so_far(question, measurement)
    measurement.check()
    measurement.finish(answer := answered(decided))
    return answer


def apart(question: Question, measurement: Measurement) -> tuple[Question, ClusterDifference | None]:
    """The question with the difference that equal clusters can have; None where its variants share a cluster.

    Starts nothing. Raises ConfigError on separate clusters for a margin that is not
    larger than the difference, and for a counter that depends on what a cluster did before its rounds.
    """
    source, claim, variants = measurement.source, question.claim, question.variants
    why = counters.not_across(question.metric) if claim.counts else ""
    if why and source.cluster_difference(*variants, metric=measurement.metric):
        raise ConfigError(f"{source.load}: {claim.kind} on separate clusters: {why}")
    difference = source.cluster_difference(*variants, metric=question.metric)
    if difference is None:
        return question, None
    if question.asserted and (why := difference.refuses(claim.kind, claim.margins)):
        raise ConfigError(f"{source.load}: {why}")
    return dataclasses.replace(question, claim=dataclasses.replace(claim, apart=difference.bound)), difference


def _apart(question: Question, measurement: Measurement) -> list[float]:
    """How far the clusters of each comparison can differ; 0 for two that share their clusters."""
    if not question.claim.apart:
        return []
    known = [measurement.source.cluster_difference(*two, metric=question.metric) for two in question.comparisons]
    return [difference.bound if difference else 0.0 for difference in known]


def _told(
    question: Question,
    difference: ClusterDifference | None,
    measurement: Measurement,
    drawn_before: int,
    decided: Verdict,
) -> Answer:
    """The answer with all its lines, also on the difference of equal clusters where it has one."""
    answer = _repeated(_answer(question, decided, measurement), question, measurement, drawn_before)
    if difference is None:
        return answer
    shared = bool(decided.neighbours) and 0.0 in _apart(question, measurement)
    line = f"{difference.line(question.metric)}{SHARED_STEP if shared else ''}"
    return dataclasses.replace(answer, difference=difference, notes=[line, *answer.notes])


def _repeated(answer: Answer, question: Question, measurement: Measurement, drawn_before: int) -> Answer:
    """The answer with the lines about earlier tries, and about rounds by which the claim may have been chosen."""
    if not question.asserted:
        return answer
    number = measurement.tried.get(question.key, 1)
    choice = len(measurement.source.names) if drawn_before and not question.others else 0
    lines = [*remarks.chosen_line(choice), *remarks.try_line(number, measurement.rules.alpha)]
    return dataclasses.replace(answer, notes=[*answer.notes, *lines], tries=number)


def _answer(question: Question, decided: Verdict, measurement: Measurement) -> Answer:
    source, pairs = measurement.source, decided.pairs
    claim, numbers, metric = question.claim, question.variants, question.metric
    variants = tuple(Compared(number, source.names[number], measurement.rounds[number][:pairs]) for number in numbers)
    if not claim.counts:
        bottleneck = load_generator.mark({variant.name: variant.rounds for variant in variants})
        decided = load_generator.discount(decided, bottleneck)
        decided = busy_machine.add_reason(decided, {variant.name: variant.rounds for variant in variants})
    compared = question.comparisons
    carried = tuple(measurement.carry_over(candidate, baseline, metric, pairs) for candidate, baseline in compared)
    named = [(source.names[candidate], source.names[baseline]) for candidate, baseline in compared]
    lines = [] if claim.counts else remarks.carry_over_lines(named, carried)
    if measurement.instances > 1 and busy_machine.reason({variant.name: variant.rounds for variant in variants}):
        lines = [*lines, NOT_LEARNED]
    lines = [*_losses(question, measurement, pairs), *lines]
    # Of all variants: a claim about two of them tells no slope between the others.
    drawn = {name: series[:pairs] for name, series in zip(source.names, measurement.rounds, strict=True)}
    evidence = source.evidence(question)
    taken = round_trips.taken(drawn, evidence.rtts, source.load)
    return Answer(
        claim,
        decided,
        variants,
        metric,
        usual=source.metric,
        load=source.load,
        seed=measurement.rules.seed,
        instances=measurement.instances,
        arrival_rate=source.arrival_rate,
        asserted=question.asserted,
        notes=[*lines, *([str(taken)] if taken else []), *evidence.notes, *measurement.notes(numbers, metric, pairs)],
        evidence=evidence,
        void=measurement.void_blocks(pairs),
        carry_over=carried,
        round_trips=taken,
    )


def _losses(question: Question, measurement: Measurement, pairs: int) -> list[str]:
    """Of ``fades`` one line with the two ratios that it compares; else none."""
    if not question.claim.of_kind.composed:
        return []
    after, before = (
        estimators.factor(intervals.estimate(measurement.pairs_of(*two, question.metric).first(pairs)))
        for two in question.comparisons
    )
    names = [measurement.source.names[number] for number in reversed(question.variants)]
    return [wording.losses(names, (after, before), question.metric, metrics.unit(question.metric))]


def _judged(
    question: Question,
    measurement: Measurement,
    cap: int,
    untrusted: str,
    over: str,
    *,
    drawn_before: bool = False,
) -> Verdict | None:
    """The verdict after the pairs drawn so far, None to draw on; ``drawn_before`` replays the looks one by one.

    ``over`` says why drawing must end now, ``untrusted`` why no verdict can be trusted; empty for no reason.
    """
    claim, numbers, metric = question.claim, question.variants, question.metric
    look = reach.first_look(claim, measurement.rules.alpha, measurement.instances)
    if not claim.of_kind.claims_nothing and measurement.pairs >= look:
        measurement.look(question)
    if over and measurement.pairs < look and measurement.spent(numbers):
        needed = look * measurement.seconds(numbers) / measurement.pairs
        over = f"{over}; the first look comes after {look} pairs, which take {needed:.0f} s"
    late = next(filter(None, (open_loop.above_capacity(measurement.rounds[number]) for number in numbers)), "")
    if late and metrics.unit(metric) == metrics.LATENCY:
        untrusted, over = untrusted or late, over or late
    terms = verdict.Terms(measurement.rules.alpha, cap, over, untrusted)
    parts = [measurement.pairs_of(*two, metric) for two in reversed(question.comparisons)]
    candidate, baseline = ([done.cost for done in measurement.rounds[number]] for number in numbers[:2])
    times = None if question.others else (baseline, candidate)
    judge = verdict.replay if drawn_before else verdict.judge
    return judge(claim, parts, terms, times=times, apart=_apart(question, measurement)[::-1])


def _so_far(question: Question, measurement: Measurement) -> tuple[float, float, float]:
    """The ratio of the pairs drawn so far, and the two ends of its sequential interval."""
    pairs = measurement.pairs_of(question.candidate, question.baseline, question.metric)
    low, high = intervals.interval(pairs, measurement.rules.alpha)
    return estimators.factor(intervals.estimate(pairs)), estimators.factor(low), estimators.factor(high)


def _keep_begun(measurement: Measurement) -> int:
    """Count the whole pairs of an interrupted opening block as pairs of later blocks; return how many count then.

    No look comes at such a number of pairs, so they change the estimate and decide nothing.
    """
    block, rounds = measurement.begun
    if not rounds or block.length == 1 or rounds[0].block != len(measurement.blocks):  # such as a warm-up
        return measurement.pairs
    measurement.openings = len(measurement.blocks)
    begun = block.order[: len(rounds)], block.pairs[: len(rounds)], rounds
    for pair in range(block.length):
        mine = [(number, done) for number, its, done in zip(*begun, strict=True) if its == pair]
        if len(mine) == len(measurement.rounds):
            measurement.blocks.append(Block(tuple(number for number, _ in mine), (0,) * len(mine)))
            for number, done in mine:
                measurement.rounds[number].append(done)
    return measurement.pairs
