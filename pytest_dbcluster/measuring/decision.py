"""Ask a claim: draw blocks of rounds until the claim is decided."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster.claims import cluster_difference, estimators, intervals, verdict, wording
from pytest_dbcluster.claims.claim import Claim, Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.claims.factorial import contrasts, judging
from pytest_dbcluster.errors import ConfigError, Inconclusive, LockHeld
from pytest_dbcluster.measuring import remarks, round_trips
from pytest_dbcluster.measuring.answer import Answer, Compared
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.drawing.block_runner import LiveClaim
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.rounds import busy_machine, counters, load_generator, metrics, open_loop
from pytest_dbcluster.rounds.round import SPEEDS, Round

SHARED_STEP = ", except between variants that share their clusters"
NOT_LEARNED = "how far equal clusters differ is not learned from these rounds, because the machine was busy"
SHOWN_PAIRS = 20  # the cap when no verdict can be trusted: enough to show an estimate


def ask(question: Question, measurement: Measurement, *, cap: int | None = None) -> Answer:
    """Draw blocks until the claim is decided, check the clusters, and return the answer.

    Pairs that another claim drew are replayed look by look, so the order of claims changes no verdict. If no verdict
    can be trusted on this machine, it draws at most 20 pairs, to show an estimate. cap: a lower maximum of pairs than
    the run's.

    - SeriesVoid: too many blocks were void, or a check failed.
    - ConfigError: the variants run on separate clusters, and equal clusters can differ by as much as the margin.
    - Inconclusive: the run's time was used before the first block, or the warm-up shows that the budget is too small.
    - LockHeld: another process kept the machine. The rounds so far are reported before, as an inconclusive answer.
    """
    rules, source, drawing = measurement.rules, measurement.source, measurement.drawing
    question, difference = add_cluster_difference(question, measurement)
    claim, variants = question.claim, question.variants
    cap = min(cap or rules.cap, rules.cap)
    untrusted = "" if claim.counts else source.blind_spot(*variants, by_size=claim.of_kind.about_size)
    untrusted = untrusted or metrics.near_capacity(question.metric, source.arrival_rate)
    cap = min(cap, SHOWN_PAIRS) if untrusted else cap
    if question.asserted and question.metric in SPEEDS and claim.of_kind.paired and not claim.of_kind.composed:
        drawing.pace.distance = functools.partial(reach.distance, claim, question.comparisons)
    if question.asserted and not untrusted and (why := why_too_slow(question, measurement)):
        raise Inconclusive(f"{source.load}: {claim.kind} cannot be decided: {why}")
    first_look = reach.first_look(claim, rules.alpha, drawing.instances)
    estimate: tuple[float, float, float] | None = None
    drawn_before = measurement.pairs
    judged = functools.partial(_judge, question, measurement, cap, untrusted)
    answered = functools.partial(_complete_answer, question, difference, measurement, drawn_before)
    looks, timed = claim.of_kind.looks(drawing.instances), question.timed
    decided = judged(drawing.stop_reason(timed), drawn_before=True) if drawn_before else None
    while decided is None:
        try:
            drawing.draw_for(LiveClaim(timed, estimate, cap, first_look, looks, question.brief(source.metric)))
        except Inconclusive as error:  # the run's time was used while it waited for the machine
            if not measurement.pairs:
                raise
            decided = judged(str(error))
            continue
        except LockHeld as error:
            drawing.keep_interrupted()
            if measurement.pairs and (decided := judged(str(error))):
                answer = dataclasses.replace(answered(decided), interrupted=True)
                measurement.claims.add(answer)
                answer.report()  # its test never reads it
            raise
        decided = judged(drawing.stop_reason(timed))
        if measurement.pairs in looks and not question.others:
            estimate = _estimate(question, measurement)
    drawing.check()
    return _conclude(answered(decided), measurement)


def show(question: Question, measurement: Measurement) -> Answer:
    """The answer of a comparison from the rounds that are there; it draws none."""
    cap, over = measurement.rules.cap, "only the rounds of other claims"
    untrusted = measurement.source.blind_spot(*question.variants)
    decided = _judge(question, measurement, cap, untrusted, over, drawn_before=True)
    assert decided is not None
    measurement.claims.add(answer := _complete_answer(question, None, measurement, measurement.pairs, decided))
    return answer


def check_reach(question: Question, measurement: Measurement, look: int | None = None) -> None:
    """Before the first block: end a claim that cannot reach its first look. Starts and draws nothing.

    A comparison without a claim draws what its budget allows. look: the first look; by default that of the claim.
    Raises ConfigError if the budget is too small for the rounds, and Inconclusive if the run's remaining time is.
    """
    source, rules, drawing = measurement.source, measurement.rules, measurement.drawing
    drawing.pace.metric = question.metric
    drawing.begin()
    seconds = reach.shortest_round(source.round_seconds, source.free_length)
    if measurement.pairs or not question.asserted or seconds is None:
        return
    claim, several = question.claim, len(question.timed)
    look, given = look or reach.first_look(claim, rules.alpha, drawing.instances), not source.free_length
    if why := reach.beyond_budget(look, several, seconds, rules.budget, given=given, larger=rules.larger_budget):
        raise ConfigError(f"{source.load}: {claim.kind} cannot be decided: {why}")
    if why := reach.beyond_run(look, several, seconds, rules.run_left()):
        raise Inconclusive(f"{source.load}: {why}; nothing was started for it")


def why_too_slow(question: Question, measurement: Measurement, look: int | None = None) -> str:
    """Why rounds as long as those of the warm-up cannot reach the first look of a claim; warms up before.

    look: as in ``check_reach``.
    """
    rules, drawing = measurement.rules, measurement.drawing
    if measurement.pairs:
        return ""
    drawing.prepare(question.timed)
    measurement.source.choose_rates()
    if drawing.pace.length:
        return ""
    look = look or reach.first_look(question.claim, rules.alpha, drawing.instances)
    if blocks := drawing.warm_up.blocks:
        return reach.why_too_slow(blocks, question.timed, look, rules.budget, larger=rules.larger_budget)
    seconds, several = measurement.source.round_seconds or 0.0, len(question.timed)
    return reach.beyond_budget(look, several, seconds, rules.budget, given=False, larger=rules.larger_budget)


def add_cluster_difference(question: Question, measurement: Measurement) -> tuple[Question, ClusterDifference | None]:
    """The question with the difference that equal clusters can have; None if its variants share a cluster.

    Starts nothing. On separate clusters it raises ConfigError for a margin that is not larger than the difference. It
    raises it too for a counter that depends on what a cluster did before its rounds.
    """
    source, claim, variants = measurement.source, question.claim, question.variants
    why = counters.not_across(question.metric) if claim.counts else ""
    if why and source.cluster_difference(*variants, metric=measurement.metric):
        raise ConfigError(f"{source.load}: {claim.kind} on separate clusters: {why}")
    difference = source.cluster_difference(*variants, metric=question.metric)
    if difference is None:
        return question, None
    if claim.of_kind.composed:
        parts = (source.cluster_difference(*two, metric=question.metric) for two in question.comparisons)
        first, second = question.comparisons
        several = zip(first, second, strict=True)  # two variants on one cluster each: what differs cancels
        alike = not any(source.cluster_difference(*two, metric=question.metric) for two in several)
        if (found := [part for part in parts if part]) and not alike:
            difference = functools.reduce(cluster_difference.add, found)
    if question.asserted and (why := difference.refuses(claim.kind, claim.margins)):
        raise ConfigError(f"{source.load}: {why}")
    return dataclasses.replace(question, claim=dataclasses.replace(claim, apart=difference.bound)), difference


def _differences(question: Question, measurement: Measurement) -> list[float]:
    """How far the clusters of each comparison can differ; 0 for two that share their clusters."""
    if not question.claim.apart:
        return []
    known = [measurement.source.cluster_difference(*two, metric=question.metric) for two in question.comparisons]
    return [difference.bound if difference else 0.0 for difference in known]


def _complete_answer(
    question: Question,
    difference: ClusterDifference | None,
    measurement: Measurement,
    drawn_before: int,
    decided: Verdict,
) -> Answer:
    """The answer with all its lines, also on the difference of equal clusters if it has one."""
    answer = _add_tries(_answer(question, decided, measurement), question, measurement, drawn_before)
    if difference is None:
        return answer
    shared = bool(decided.neighbours) and 0.0 in _differences(question, measurement)
    line = f"{difference.line(question.metric)}{SHARED_STEP if shared else ''}"
    return dataclasses.replace(answer, difference=difference, notes=[line, *answer.notes])


def _add_tries(answer: Answer, question: Question, measurement: Measurement, drawn_before: int) -> Answer:
    """The answer with the lines on earlier tries, and on earlier rounds that may have suggested the claim."""
    if not question.asserted:
        return answer
    number = measurement.claims.try_number(question)
    several = drawn_before and not question.others and question.claim.of_kind.paired  # options share the error
    choice = len(measurement.source.names) if several else 0
    lines = [*remarks.chosen_line(choice), *remarks.try_line(number, measurement.rules.alpha)]
    return dataclasses.replace(answer, notes=[*answer.notes, *lines], tries=number)


def _conclude(answer: Answer, measurement: Measurement) -> Answer:
    """Add the answer to the log of claims. Before that, compare its servers in extra rounds, if that is asked for."""
    seconds = [done.wall for variant in answer.contrast for done in variant.rounds]
    try:
        if measurement.compare_servers and len(answer.contrast) > 1 and seconds:
            candidate, baseline = (variant.number for variant in answer.contrast)
            answer.servers = measurement.compare_servers(candidate, baseline, statistics.median(seconds))
            answer.notes = [*answer.notes, *answer.servers.lines]
    finally:  # the verdict stays if Ctrl-C ends the extra rounds
        measurement.claims.add(answer)
    return answer


def _answer(question: Question, decided: Verdict, measurement: Measurement) -> Answer:
    source, pairs = measurement.source, decided.pairs
    claim, numbers, metric = question.claim, question.variants, question.metric
    variants = tuple(Compared(number, source.names[number], measurement.rounds[number][:pairs]) for number in numbers)
    rounds = {variant.name: variant.rounds for variant in variants}
    if not claim.counts:
        decided = load_generator.discount(decided, load_generator.mark(rounds))
        decided = busy_machine.add_reason(decided, rounds)
    compared = question.comparisons
    carried = tuple(measurement.values.carry_over(*two, metric, pairs) for two in compared)
    named = [(source.names[candidate], source.names[baseline]) for candidate, baseline in compared]
    lines = [] if claim.counts else remarks.carry_over_lines(named, carried)
    if measurement.drawing.instances > 1 and busy_machine.reason(rounds):
        lines = [*lines, NOT_LEARNED]
    lines = [*_losses(question, measurement, pairs), *lines]
    # All variants have one slope, so a claim about two of them shows it too.
    drawn = {name: series[:pairs] for name, series in zip(source.names, measurement.rounds, strict=True)}
    evidence = source.evidence(question)
    taken = round_trips.estimate(drawn, evidence.rtts, source.load)
    answer = answer_of(measurement, claim, decided, variants, metric)
    closing = closing_lines(measurement, metric, pairs, rounds)
    return dataclasses.replace(
        answer,
        asserted=question.asserted,
        notes=[*lines, *([str(taken)] if taken else []), *evidence.notes, *closing],
        evidence=evidence,
        carry_over=carried,
        round_trips=taken,
    )


def answer_of(
    measurement: Measurement, claim: Claim, decided: Verdict, variants: Sequence[Compared], metric: str
) -> Answer:
    """An answer with what it has from its measurement, without its notes and evidence."""
    source = measurement.source
    return Answer(
        claim,
        decided,
        tuple(variants),
        metric,
        usual=source.metric,
        load=source.load,
        seed=measurement.rules.seed,
        content=source.content,
        instances=measurement.drawing.instances,
        arrival_rate=source.arrival_rate,
        void=measurement.drawing.blocks.void_within(decided.pairs),
    )


def closing_lines(
    measurement: Measurement,
    metric: str,
    pairs: int,
    rounds: Mapping[str, Sequence[Round]],
    drained: Mapping[str, Sequence[Round]] | None = None,
) -> list[str]:
    """The last lines of a message. rounds: by the name of a variant. drained: as many rounds of each; None for all."""
    rules, drawing = measurement.rules, measurement.drawing
    pace, blocks = drawing.pace, drawing.blocks
    return [
        *([pace.length.line] if pace.length else []),
        *remarks.repeat_line(pace.repeat),
        *remarks.dropped_line(blocks.dropped),
        *drawing.warm_up.remark,
        *remarks.drain_line(drained or rounds, metric),
        *remarks.round_lines(rounds, measurement.source.arrival_rate),
        *remarks.void_line(blocks.void_within(pairs)),
        *remarks.fixed_seed_line(rules.seed if rules.fixed_seed else None),
    ]


def _losses(question: Question, measurement: Measurement, pairs: int) -> list[str]:
    """For ``fades`` one line with the two ratios that it compares; for other claims none."""
    if not question.claim.of_kind.composed:
        return []
    after, before = (
        estimators.factor(intervals.estimate(measurement.values.pairs(*two, question.metric).first(pairs)))
        for two in question.comparisons
    )
    names = [measurement.source.names[number] for number in reversed(question.variants)]
    return [wording.losses(names, (after, before), question.metric, metrics.unit(question.metric))]


def _judge(
    question: Question,
    measurement: Measurement,
    cap: int,
    untrusted: str,
    over: str,
    *,
    drawn_before: bool = False,
) -> Verdict | None:
    """The verdict after the pairs drawn so far; None to draw more.

    untrusted: why no verdict can be trusted. over: why drawing must end now. Both are empty for no reason.
    drawn_before: replay the looks one by one.
    """
    claim, numbers, metric = question.claim, question.variants, question.metric
    look = reach.first_look(claim, measurement.rules.alpha, measurement.drawing.instances)
    if not claim.of_kind.claims_nothing and measurement.pairs >= look:
        measurement.drawing.pace.fixed = True
        measurement.claims.begin_try(question)
    if over and measurement.pairs < look and measurement.drawing.out_of_budget(question.timed):
        needed = look * measurement.drawing.blocks.seconds(question.timed) / measurement.pairs
        over = f"{over}; a verdict needs at least {look} pairs, which take {needed:.0f} s"
    late = next(filter(None, (open_loop.above_capacity(measurement.rounds[number]) for number in numbers)), "")
    if late and metrics.unit(metric) == metrics.LATENCY:
        untrusted, over = untrusted or late, over or late
    reachable, budget = measurement.drawing.reachable(question.timed)
    terms = verdict.Terms(measurement.rules.alpha, cap, over, untrusted, reachable, budget, measurement.rules.wider)
    if not claim.of_kind.paired:
        return judging.judge(claim, measurement.values.trial(metric), terms, *_options(question))
    parts = [measurement.values.pairs(*two, metric) for two in reversed(question.comparisons)]
    candidate, baseline = ([done.cost for done in measurement.rounds[number]] for number in numbers[:2])
    times = None if question.others else (baseline, candidate)
    judge = verdict.replay if drawn_before else verdict.judge
    return judge(claim, parts, terms, times=times, apart=_differences(question, measurement)[::-1])


def _options(question: Question) -> tuple[int, ...]:
    """The options that a claim about an effect compares, by their number; the variants are their levels."""
    return tuple(number // 2 for number in question.variants[::2])


def _estimate(question: Question, measurement: Measurement) -> tuple[float, float, float]:
    """The ratio of the pairs drawn so far, and the two ends of its sequential interval."""
    assert question.baseline is not None
    if not question.claim.of_kind.paired:
        contrast = contrasts.of(measurement.values.trial(question.metric), *_options(question))
        low, high = contrast.interval(measurement.rules.alpha)
        return estimators.factor(contrast.estimate), estimators.factor(low), estimators.factor(high)
    pairs = measurement.values.pairs(question.candidate, question.baseline, question.metric)
    low, high = intervals.interval(pairs, measurement.rules.alpha)
    return estimators.factor(intervals.estimate(pairs)), estimators.factor(low), estimators.factor(high)
