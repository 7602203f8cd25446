"""A comparison of two variants: measures each workload, and writes each answer at once.

Each workload has one or two answers: its throughput in a closed loop, and its p95 in an open loop at 70 % of the slower
throughput. ``no_worse`` turns the answers into one of three results.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.cli.compare import guards
from pytest_dbcluster.cli.compare.guards import BASELINE, CANDIDATE
from pytest_dbcluster.cli.compare.racing import RacedWorkload
from pytest_dbcluster.errors import ConfigError, DBClusterError, Inconclusive, LockHeld, SeriesVoid, Unsupported
from pytest_dbcluster.formatting import Report, duration
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.drawing.blocks import BlockPlan
from pytest_dbcluster.measuring.drawing.progress import RoundProgress
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.race import running
from pytest_dbcluster.reporting import results_directory, schema
from pytest_dbcluster.reporting.documents import run_document, run_recorder
from pytest_dbcluster.reporting.documents.machine import machine
from pytest_dbcluster.reporting.documents.run_recorder import RunRecorder
from pytest_dbcluster.reporting.page import report_page
from pytest_dbcluster.reporting.recording import Asked, claim_record
from pytest_dbcluster.reporting.records import ClaimRecord, Reading
from pytest_dbcluster.reporting.results_directory import Results
from pytest_dbcluster.reporting.resume.digests import Conditions
from pytest_dbcluster.reporting.resume.earlier import Earlier, Key, key_of_line
from pytest_dbcluster.reporting.resume.earlier_tries import EarlierTries
from pytest_dbcluster.reporting.resume.recall import Recall
from pytest_dbcluster.reporting.tables import closing, no_worse
from pytest_dbcluster.reporting.tables.no_worse import MARGIN, WIDEST, ComparedWorkload, Result, test_of
from pytest_dbcluster.reporting.unwritten import Unwritten
from pytest_dbcluster.rounds import metrics, round_length
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.system.tracing import recorder, time_spent
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.testbed.capacity.capacity_testbed import CapacityTestbed
from pytest_dbcluster.testbed.comparability import with_seconds
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.testbed.why.why_testbed import ServerComparer
from pytest_dbcluster.workloads.workload import OpenLoop, Workload

SHARE = "70 %"  # arrival rate of the open loop
RATE = "its arrival rate"  # what has changed for an answer, in messages
OPERATIONS = 260  # of a round for p95; it needs 200, see rounds.metrics.require_operations
WALL = 1.3  # wall time of a round / its measured time
LONGEST = 0.8  # seconds of a round for the throughput: most differences are clear at the first look
CLOSED_SHARE = 0.75  # of a workload's time for the throughput; the rest is for p95
ROUNDS_SHARE = 0.95  # of --seconds: the last block ends after it, and then the servers stop
SHARE_OF_TIME = "its share of --seconds"  # the limit of a workload's measured seconds, in messages
STEP = 10  # seconds; an advised --seconds is a multiple of it
BETWEEN = 10.0  # seconds between two lines of progress, unless a claim is judged

OUTCOMES: Mapping[Result, run_document.Outcome] = MappingProxyType(
    {
        Result.NO_WORSE: "holds",
        Result.WORSE: "refuted",
        Result.UNKNOWN: "inconclusive",
        Result.BROKEN: run_document.BROKEN,
    }
)


class ComparisonResults:
    """The results of a comparison: each answer is written at once, so that no end of the command loses it.

    The first answer removes the results of the previous comparison.

    - directory: the directory of the results.
    - asked: the command in the records.
    - count: the number of workloads.
    - options: the options of the command on which answers depend.
    - earlier: the results to continue (``--resume``); None for none.
    - progress: receives lines of progress.
    """

    def __init__(
        self,
        directory: Path,
        asked: Asked,
        count: int,
        options: Sequence[object],
        earlier: Earlier | None,
        progress: Report,
    ) -> None:
        self.directory = directory
        self.asked = asked
        self.records: list[ClaimRecord] = list(earlier.answers.values()) if earlier else []
        self.line = progress
        self._earlier = earlier
        self._count = count
        self._began = time.time()
        self._lost = Unwritten()
        self._conditions = Conditions(tuple(options), machine(runs.directory()))

    @property
    def continues(self) -> bool:
        """Whether this continues an earlier comparison."""
        return self._earlier is not None

    @functools.cached_property
    def _recorder(self) -> RunRecorder:
        before = self._earlier
        if before is None:
            with self._lost.note(self.directory):
                results_directory.clear(self.directory)
        begun = run_recorder.new_run(
            Path.cwd(), runs.directory(), self.asked.repeat, self._count, before.runs if before else ()
        )
        tests = before.run.tests if before and before.run else ()
        return RunRecorder(self.directory, dataclasses.replace(begun, began=self._began, tests=tests), self._lost)

    @functools.cached_property
    def _results(self) -> Results:
        made = Results(self.directory, self._lost, self._recorder.document.run_id)
        if self._earlier:
            made.go_on(*self._earlier.numbers)
        return made

    def recall(self, testbed: Testbed, loads: Sequence[object], test: str) -> Recall:
        """The object that looks up the claims of a measurement in the earlier results. test: see ``test_of``."""
        asked = dataclasses.replace(self.asked, test=test)
        return Recall(testbed, loads, asked, self._conditions, self._earlier, self)

    def recorder(self, recall: Recall) -> Callable[[Answer], None]:
        """Return the function that writes each answer of a testbed."""
        began = time.monotonic()

        def record_answer(answer: Answer) -> None:
            record = claim_record(answer, None, recall.asked, time.monotonic() - began)
            record = dataclasses.replace(record, depends_on=recall.of_answer(answer))
            with span("chart"):
                self.add(record, recall.source.timeline(schema.claim_rounds(record)))

        return record_answer

    def add(self, record: ClaimRecord, timeline: str = "") -> None:
        """Write one answer. timeline: its samples of every second as CSV."""
        self._recorder.note_record(record.test, record.release)
        self._results.add(record, timeline)
        self.records.append(record)

    def take_over(self, key: Key, reading: Reading) -> None:
        """Note an answer of the earlier results."""
        assert self._earlier is not None
        if key not in self._earlier.taken:
            record = self._earlier.take(key, reading)
            self._recorder.take_over(key.test)
            self._recorder.note_record(record.test, record.release)
            self.line(f"taken over: {record.text} ({record.load})")

    def drop(self, key: Key, changed: Sequence[str]) -> None:
        """Drop an answer of the earlier results, because its conditions have changed."""
        assert self._earlier is not None
        before = self._earlier.answers[key]
        self.records = [record for record in self.records if record is not before]
        self._results.rewrite(schema.CLAIMS, lambda line: None if key_of_line(line) == key else line)
        self.line(f"measured again ({', '.join(changed)} changed): {before.text} ({before.load})")

    def rate_of_tail(self, workload: OpenLoop, test: str, asked: ArrivalRate) -> ArrivalRate | None:
        """The rate with which the earlier comparison began its answer about p95; None without such an answer.

        It may be a lowered rate, which is in the name of the workload. An answer at other capacities is dropped.
        asked: the rate that follows from the capacities.
        """
        if (earlier := self._earlier) is None:
            return None
        for key, record in earlier.answers.items():
            before = record.arrival_rate
            if before is None or (record.test, record.metric) != (test, no_worse.TAIL):
                continue
            begun = (rate for rate in (asked, before) if str(workload.at_rate(rate.rate)) == record.load)
            if before.capacities == asked.capacities and (rate := next(begun, None)):
                return rate
            if key not in earlier.outdated:
                earlier.outdated[key] = [RATE]
                self.drop(key, [RATE])
        return None

    def finish(self, compared: Sequence[ComparedWorkload | RacedWorkload]) -> list[str]:
        """As ``finish_tests``, with the answers of these workloads."""
        return self.finish_tests((test_of(item.workload), OUTCOMES[item.result], item.reason) for item in compared)

    def finish_tests(self, ended: Iterable[tuple[str, run_document.Outcome, str]]) -> list[str]:
        """Write the end of the comparison and make its page; return lines with advice, unwritten files and the page.

        ended: test name, outcome and reason of each workload.
        """
        for test, outcome, reason in ended:
            self._recorder.part(test, outcome, reason, 0.0)
            self._recorder.end_test(test)
        if recorded := recorder.current():
            self._recorder.note_time(time_spent.by_group(recorded))
        self._recorder.finish("")
        tests = self._recorder.document.tests
        self._results.finish(self.records, [], tests=tests)
        advice = [*closing.to_calibrate(self.records), *closing.guide_lines(self.records, tests)]
        advice += closing.to_explain(self.records, "--why")
        with span("page"):
            return [*advice, *self._lost.lines(), report_page.make(self.directory, self.line)]


def is_failure(error: DBClusterError) -> bool:
    """Whether an error says that a server or a workload failed, and not that time or memory do not suffice."""
    return not isinstance(error, Inconclusive | LockHeld | ConfigError | Unsupported)


class Comparison:
    """Two variants, baseline first, or several that race, on clusters of ``pool``.

    - end: the end of drawing, by ``Turns.clock`` of the pool, which stops while other runs have the machine.
    - seconds: the seconds of the whole comparison (``--seconds``).
    - seed: the seed of the order of rounds.
    - progress: receives lines of progress.
    - kept: the results, with those of an earlier comparison.
    """

    _plan: BlockPlan | None = None
    _parts = 1  # claims that share alpha
    _share = CLOSED_SHARE  # of a workload's time for its throughput, or for the effects of options

    def __init__(
        self,
        variants: Sequence[Variant],
        pool: Pool,
        *,
        end: float,
        seconds: float,
        seed: int,
        progress: Report,
        kept: ComparisonResults,
    ) -> None:
        self._kept = kept
        self._objective: Objective | None = None
        self._held = ""  # the process that has the machine for so long that we measure nothing more
        self._variants = variants
        self._pool = pool
        self._end = end
        self._seconds = seconds
        self._count = 1  # workloads of the comparison
        self._seed = seed
        self._progress = progress
        self.evidence = Evidence()  # evidence of the first workload with any
        self._explains = False

    def workloads(
        self, workloads: Sequence[Workload], objective: Objective | None = None, *, explains: bool = False
    ) -> list[ComparedWorkload]:
        """Measure the workloads one after the other; each gets an equal share of the remaining time.

        objective: compare capacities at it, in place of throughput and p95. explains: whether extra rounds show what
        differs on the servers (``--why``).
        """
        self._count, self._objective, self._explains = len(workloads), objective, explains
        return [self._compare_one(workload, len(workloads) - number) for number, workload in enumerate(workloads)]

    def races(self, workloads: Sequence[Workload]) -> list[RacedWorkload]:
        """Race all variants on the workloads, one after the other; each gets an equal share of the remaining time."""
        self._count = len(workloads)
        return [self._race_one(workload, len(workloads) - number) for number, workload in enumerate(workloads)]

    def _race_one(self, workload: Workload, left: int) -> RacedWorkload:
        """The race on one of the ``left`` remaining workloads. After an error, earlier answers stay."""
        if self._held:
            return RacedWorkload(str(workload), None, self._held)
        seconds = max(0.0, self._end - self._pool.turns.clock()) / left
        measurement: Measurement | None = None
        try:
            measurement = self._measurement(workload, test_of(workload), seconds, race=True)
            answer = running.run(measurement).answer
            answer.report()  # no test reads it
            measurement.end()
        except DBClusterError as error:
            return RacedWorkload(str(workload), _interrupted_answer(measurement), self._why(error), is_failure(error))
        held = answer.verdict.outcome is Outcome.HOLDS
        return RacedWorkload(str(workload), answer, "" if held else answer.verdict.reason)

    def _compare_one(self, workload: Workload, left: int) -> ComparedWorkload:
        """Measure one of the ``left`` remaining workloads. After an error, earlier answers stay."""
        name, now = self._objective.name_of(workload) if self._objective else str(workload), self._pool.turns.clock()
        test, two_answers = test_of(name), isinstance(workload, OpenLoop) and not self._objective
        if self._held:
            return ComparedWorkload(name, None, reason=self._held)
        end = now + max(0.0, self._end - now) / left
        closed: Measurement | None = None
        throughput: Answer | None = None
        try:
            closed = self._measurement(workload, test, (end - now) * (CLOSED_SHARE if two_answers else 1.0))
            self._note(closed)
            throughput = guards.no_slower(closed, None)
            closer = guards.closer(closed)
            self._note(closed)
            again = remarks.try_line(throughput.tries, closed.rules.alpha)
            remark = "; ".join(filter(None, (*closer.evidence.data_fits.values(), *again)))
        except DBClusterError as error:
            known = _interrupted_answer(closed) if throughput is None else throughput
            shown = None if known is None else no_worse.of_answer(known)
            return ComparedWorkload(name, shown, reason=self._why(error), failed=is_failure(error))
        measured = no_worse.of_answer(throughput), no_worse.of_answer(closer)
        try:
            if not isinstance(workload, OpenLoop) or not two_answers:
                return ComparedWorkload(name, *measured, remark=remark)
            p95 = no_worse.of_answer(self._tail(workload, test, closed, end, (1 - CLOSED_SHARE) * (end - now)))
            return ComparedWorkload(name, *measured, p95, remark=remark)
        except DBClusterError as error:
            why, failed = self._why(error), is_failure(error)
            return ComparedWorkload(name, *measured, reason=why, failed=failed, remark=remark)

    def _why(self, error: DBClusterError) -> str:
        """Why there is no answer. Raises the error if it ends everything before the first answer."""
        if isinstance(error, LockHeld):
            self._held = str(error)
        if not isinstance(error, Inconclusive | SeriesVoid) and not self._kept.records:
            raise error
        return str(error)

    def _tail(self, workload: OpenLoop, test: str, closed: Measurement, end: float, share: float) -> Answer:
        """Measure p95 at 70 % of the throughput of the slower variant in the closed loop.

        If rounds have too few operations, such as at a lowered rate, longer rounds follow. An answer of an earlier
        comparison at the same capacities needs no time. Raises Inconclusive if the time would end before the first look
        at rounds of this length. end: the end of the workload's time, by the clock of the pool. share: the maximum
        seconds of p95, but for a first look that needs more. An open p95 does not change the answer.
        """
        drawn = [closed.values.rounds(number) for number in (BASELINE, CANDIDATE)]
        medians = [statistics.median(done.goodput for done in rounds) for rounds in drawn]
        asked = ArrivalRate(SHARE).with_capacities(dict(zip(closed.source.names, medians, strict=True)))
        known = self._kept.rate_of_tail(workload, test, asked)
        rate: ArrivalRate | None = known or asked
        look = reach.first_look(kinds.no_slower_than(MARGIN), closed.rules.alpha, closed.drawing.instances)
        length = 0.0
        while True:
            assert rate is not None
            assert rate.rate is not None
            length = max(round_length.SHORTEST, OPERATIONS / rate.rate, length)
            seconds, needed = max(0.0, end - self._pool.turns.clock()), look * 2 * length * WALL
            if known is None and needed > seconds:
                raise Inconclusive(
                    f"p95 needs rounds of {length:.1f} s here, {needed:.0f} s in total, but {seconds:.0f} s are left; "
                    "use more --seconds, or more --threads"
                )
            tail = with_seconds(workload.at_rate(rate.rate), length)
            measurement = self._measurement(tail, test, min(seconds, max(share, needed)), rate, after=closed)
            try:
                return guards.no_slower(measurement, no_worse.TAIL)
            except metrics.TooFewOperations as error:
                longer = max(metrics.seconds_needed(rounds, no_worse.TAIL, str(tail)) for rounds in measurement.rounds)
                if not length < longer < math.inf:
                    raise Inconclusive(str(error)) from None
                known, length, rate = None, longer, measurement.source.arrival_rate
                self._progress(f"{workload}: rounds of {length:.1f} s, to have enough operations for p95")

    def _measurement(
        self,
        workload: Workload,
        test: str,
        seconds: float,
        arrival_rate: ArrivalRate | None = None,
        *,
        race: bool = False,
        after: Measurement | None = None,
    ) -> Measurement:
        """A measurement of a workload for ``seconds``. test: its test name in the results.

        An answer at an arrival rate does not depend on the length of its rounds, which follows from the rate. It needs
        no warm-up on clusters that ran rounds of ``after`` a moment before.
        """
        testbed = self._testbed(workload)
        # The capacity is known, so the testbed need not measure it again.
        testbed.arrival_rate, testbed.warm = arrival_rate, after is not None and bool(after.pairs)
        if race:
            testbed.prepare_race(None)
        now, rules = self._pool.turns.clock, self._rules(seconds, after)
        asked = with_seconds(workload, None) if arrival_rate else workload
        recall = self._kept.recall(testbed, [asked] * len(self._variants), test)
        tries = EarlierTries(recall, Path.cwd())
        lines = _Lines(self._progress, lambda: now() - (self._end - ROUNDS_SHARE * self._seconds), self._seconds)
        return Measurement(
            testbed,
            rules,
            lines,
            self._kept.recorder(recall),
            test=test,
            recall=recall,
            tries=tries,
            plan=self._plan,
            compare_servers=ServerComparer(testbed) if self._explains and arrival_rate is None else None,
        )

    def _rules(self, seconds: float, after: Measurement | None) -> Rules:
        """The rules of a measurement that begins now; seconds and after as in ``_measurement``."""
        now = self._pool.turns.clock
        end = now() + seconds

        def over() -> str:
            return "" if now() < end else f"{SHARE_OF_TIME} ({seconds:.0f} s) is over"

        share = 1 - CLOSED_SHARE if after else self._share
        rules = rules_of(self._seed, seconds, over, seconds_in_all=self._seconds, workloads=self._count, share=share)
        cap = guards.tail_cap(after) if after else rules.cap
        alpha = rules.alpha / self._parts
        return dataclasses.replace(rules, alpha=alpha, cap=cap, wider=WIDEST, time_left=lambda: end - now())

    def _testbed(self, workload: Workload) -> Testbed:
        """The round source of a workload."""
        # Two alternating instances of each: two servers differ, even with the same options.
        apart = len({variant.cluster_key for variant in self._variants}) > 1
        given = workload, *([self._objective] if self._objective else []), self._variants, self._pool, "quick"
        permits: dict[str, Any] = {"seed": self._seed} if self._objective else {"sampled": True}
        make: Callable[..., Testbed] = CapacityTestbed if self._objective else Testbed
        return make(*given, self._progress, across_durability=True, instances=2 if apart else 1, **permits)

    def _note(self, measurement: Measurement) -> None:
        """Keep the differences of the servers, once. If earlier answers may suffice, this starts no servers."""
        if not self.evidence.durability and (measurement.pairs or not self._kept.continues):
            question = Question(kinds.differs(), CANDIDATE, BASELINE, measurement.metric)
            self.evidence = measurement.source.evidence(question)


def _interrupted_answer(measurement: Measurement | None) -> Answer | None:
    """The answer of an interrupted measurement; None if there is none."""
    answers = measurement.claims.answers if measurement else ()
    return next((answer for answer in answers if answer.interrupted and answer.asserted), None)


def rules_of(
    seed: int,
    seconds: float,
    over: Callable[[], str],
    *,
    seconds_in_all: float,
    workloads: int = 1,
    share: float = CLOSED_SHARE,
) -> Rules:
    """The rules for one measurement of a comparison; its texts name ``--seconds``, the option of the command.

    seconds: the seconds of this measurement. over: returns why its time is over. seconds_in_all: the seconds of the
    comparison of all ``workloads``. share: of a workload's seconds for this measurement.
    """

    def larger(needed: int) -> str:
        more = workloads * (needed - seconds) / share / ROUNDS_SHARE
        return f"{needed} s, with about --seconds {STEP * math.ceil((seconds_in_all + more) / STEP)}"

    return Rules(seed, budget=seconds, run_over=over, budget_name=SHARE_OF_TIME, larger_budget=larger, longest=LONGEST)


@dataclasses.dataclass
class _Lines:
    """Prints a line of progress at each look of a claim, and between them every ten seconds."""

    line: Report

    elapsed: Callable[[], float]
    """Returns the seconds since the begin of the comparison."""

    seconds: float
    """The seconds of the comparison (``--seconds``)."""

    _told: float = -math.inf

    def __call__(self, event: RoundProgress) -> None:
        passed, at_look = self.elapsed(), not event.warm_up and event.estimate and event.pair == event.next_look
        if not event.last or not (at_look or passed - self._told >= BETWEEN):
            return
        self._told = passed
        place = "warm-up" if event.warm_up else f"{event.claim}, pair {event.pair}"
        place += f": {event.estimate}" if event.estimate else ""
        self.line(f"{event.load}: {place}; {duration(passed)} of about {duration(self.seconds)}")
