"""A comparison of two variants: each workload is measured, and the answers say whether the candidate is worse.

Each workload is asked twice: its throughput in a closed loop, then, where it has an open loop, its p95 at 70 % of what
the slower variant does. ``judged`` turns the two answers into one of three results; it is pure.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict
from pytest_dbcluster.claims.cluster_difference import ONE_IN, percent
from pytest_dbcluster.errors import Inconclusive, SeriesVoid
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.measuring import reach
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.measurement import Measurement, Rules
from pytest_dbcluster.measuring.progress import RoundProgress
from pytest_dbcluster.measuring.series import Series, series_of
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.records import Asked, ClaimRecord, claim_record
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import OpenLoop, Workload

MARGIN = 0.05  # "no worse": slower by less than this
WIDEST = 0.10  # the widest margin that still counts as "no worse" where MARGIN cannot be told
ROOM = 1.1  # a wider margin / what equal clusters can differ by, as log ratios
SHARE = "70 %"  # arrival rate of the open loop
OPERATIONS = 300  # of a round for p95; it needs 200, see rounds.metrics.enough
SHORTEST = 1.0  # seconds of a round for p95
WALL = 1.3  # wall time of a round / its measured time
CLOSED_SHARE = 0.6  # of a workload's time for the throughput; the rest is for p95
ROUNDS_SHARE = 0.95  # of --seconds: the last block ends after it, and then the servers stop
SHARE_OF_TIME = "its share of --seconds"  # what limits the measured seconds of a workload
STEP = 10  # seconds to which an advised --seconds is rounded up
CANDIDATE, BASELINE = 1, 0
COMMAND = "dbcluster compare"


class Result(enum.Enum):
    """What a comparison says about the candidate. ``value`` is the exit code."""

    NO_WORSE = 0
    WORSE = 3
    UNKNOWN = 4


@dataclasses.dataclass(frozen=True)
class Compared:
    """One workload on both variants.

    throughput: the answer about good operations a second. p95: the answer about the latency; None without an open
    loop. closer: the ratio of the throughputs after all rounds. reason: why an answer is missing; else empty. remark:
    on the data of the workload (``Testbed.data_fits``); else empty.
    """

    workload: str
    throughput: Answer | None
    closer: Answer | None = None
    p95: Answer | None = None
    reason: str = ""
    remark: str = ""

    @property
    def result(self) -> Result:
        """What both answers together say."""
        if self.throughput is None:
            return Result.UNKNOWN
        return judged(self.throughput.verdict, None if self.p95 is None else self.p95.verdict)


def told_margin(verdict: Verdict) -> float:
    """The smallest fraction, from ``MARGIN`` on, by which the candidate is certainly not slower (90 % interval).

    On separate clusters it includes what equal ones can differ by. Infinite where the guard fails, where there is no
    interval yet, and where no verdict can be trusted on this machine.
    """
    if verdict.outcome is Outcome.HOLDS:
        return verdict.claim.margin
    if verdict.outcome is Outcome.FAILS or not _trusted(verdict) or not verdict.decided_low > 0:
        return math.inf
    return max(verdict.claim.margin, 1 - verdict.decided_low * math.exp(-verdict.claim.apart))


def slower(verdict: Verdict) -> bool:
    """Whether the candidate is certainly slower: the guard fails, or the whole sequential interval is below 1.

    On separate clusters below 1 by more than what equal ones can differ by.
    """
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return _trusted(verdict) and verdict.high * math.exp(verdict.claim.apart) < 1
    return verdict.outcome is Outcome.FAILS


def _trusted(verdict: Verdict) -> bool:
    """Whether more rounds could decide an inconclusive guard; not so where no verdict can be trusted here."""
    return verdict.needed_margin is not None


def judged(throughput: Verdict, p95: Verdict | None) -> Result:
    """Return what the verdicts on throughput and p95 say about the candidate.

    Worse when either is certainly worse. No worse when the throughput is not slower by MARGIN, or by WIDEST at most
    where MARGIN cannot be told. A p95 that cannot be told does not change the result: a tail needs more rounds.
    """
    if slower(throughput) or (p95 is not None and slower(p95)):
        return Result.WORSE
    return Result.NO_WORSE if told_margin(throughput) <= WIDEST else Result.UNKNOWN


def overall(compared: Sequence[Compared]) -> Result:
    """Worse when one workload is worse, no worse when all are no worse, else unknown."""
    results = {item.result for item in compared}
    if Result.WORSE in results:
        return Result.WORSE
    return Result.NO_WORSE if results == {Result.NO_WORSE} else Result.UNKNOWN


class Comparison:
    """Two variants, baseline first, on clusters of ``pool``.

    end: when to draw no more rounds, by ``time.monotonic``. seconds: of the whole comparison (``--seconds``). seed: of
    the order of rounds. progress: receives lines of progress. asked: what the records of the answers say about the
    command. records: of each answer, with its timeline as CSV.
    """

    def __init__(
        self,
        variants: Sequence[Variant],
        pool: Pool,
        *,
        end: float,
        seconds: float,
        seed: int,
        progress: Report,
        asked: Asked,
    ) -> None:
        self.records: list[tuple[ClaimRecord, str]] = []
        self._asked = asked
        self._variants = variants
        self._pool = pool
        self._end = end
        self._seconds = seconds
        self._count = 1  # workloads of the comparison
        self._seed = seed
        self._progress = progress
        self.differences: Mapping[str, tuple[str, str]] = {}
        self.durability: tuple[str, str] = ("", "")

    def workloads(self, workloads: Sequence[Workload]) -> list[Compared]:
        """Measure the workloads one after the other; each gets an equal share of the time that is left."""
        self._count = len(workloads)
        return [self._one(workload, len(workloads) - number) for number, workload in enumerate(workloads)]

    def _one(self, workload: Workload, left: int) -> Compared:
        """Measure one workload, of ``left`` that are left."""
        share = max(0.0, self._end - time.monotonic()) / left
        name, has_tail = str(workload), isinstance(workload, OpenLoop)
        try:
            closed = self._measurement(workload, share * (CLOSED_SHARE if has_tail else 1.0))
            self._note(closed)
            throughput = _no_slower(closed, None)
            closer = series_of(closed)[CANDIDATE].against(series_of(closed)[BASELINE])
            assert isinstance(closed.source, Testbed)
            remark = closed.source.data_fits(CANDIDATE, BASELINE)
        except (Inconclusive, SeriesVoid) as error:
            return Compared(name, None, reason=str(error))
        try:
            p95 = self._tail(workload, closed, share * (1 - CLOSED_SHARE)) if isinstance(workload, OpenLoop) else None
            return Compared(name, throughput, closer, p95, remark=remark)
        except (Inconclusive, SeriesVoid) as error:
            return Compared(name, throughput, closer, reason=str(error), remark=remark)

    def _tail(self, workload: OpenLoop, closed: Measurement, seconds: float) -> Answer:
        """Ask for p95 at 70 % of the throughput that the slower variant just had in the closed loop.

        Raises Inconclusive where the rounds would be so long that the time does not reach the first look.
        """
        medians = [statistics.median(done.goodput for done in rounds) for rounds in closed.rounds]
        arrival_rate = ArrivalRate(SHARE).found(dict(zip(closed.source.names, medians, strict=True)))
        assert arrival_rate.rate is not None
        length = max(SHORTEST, OPERATIONS / arrival_rate.rate)
        look = reach.first_look(claims.no_slower_than(MARGIN), closed.rules.alpha, closed.instances)
        if (needed := look * 2 * length * WALL) > seconds:
            raise Inconclusive(
                f"p95 needs rounds of {length:.1f} s here, {needed:.0f} s in all, and {seconds:.0f} s are left for it: "
                f"give it more --seconds, or more --threads"
            )
        tail: Any = dataclasses.replace(workload.at_rate(arrival_rate.rate), seconds=length)  # type: ignore[type-var]
        return _no_slower(self._measurement(tail, seconds, arrival_rate), "p95")

    def _measurement(self, workload: Workload, seconds: float, arrival_rate: ArrivalRate | None = None) -> Measurement:
        # Two instances of each, used in turn: two servers differ, even with the same options.
        apart = len({variant.cluster_key for variant in self._variants}) > 1
        testbed = Testbed(
            workload,
            self._variants,
            self._pool,
            "quick",
            self._progress,
            across_durability=True,
            instances=2 if apart else 1,
            sampled=True,
        )
        testbed.arrival_rate = arrival_rate  # the capacity is known, so the testbed need not measure it again
        end = time.monotonic() + seconds

        def over() -> str:
            return "" if time.monotonic() < end else f"{SHARE_OF_TIME} ({seconds:.0f} s) is used"

        rules = rules_of(self._seed, seconds, over, seconds_in_all=self._seconds, workloads=self._count)
        return Measurement(testbed, rules, _Lines(self._progress), self._finished(testbed, workload))

    def _finished(self, testbed: Testbed, workload: Workload) -> Callable[[Answer], None]:
        """Return the function that keeps the record of each answer of this testbed."""
        asked, began = dataclasses.replace(self._asked, test=test_of(workload)), time.monotonic()

        def finished(answer: Answer) -> None:
            record = claim_record(answer, testbed, None, asked, time.monotonic() - began)
            self.records.append((record, testbed.timeline(schema.claim_rounds(record))))

        return finished

    def _note(self, measurement: Measurement) -> None:
        """Keep what differs between the servers, once."""
        if not any(self.durability):
            source = measurement.source
            assert isinstance(source, Testbed)
            self.differences = source.differences(CANDIDATE, BASELINE)
            self.durability = (source.durability(BASELINE), source.durability(CANDIDATE))


def test_of(workload: object) -> str:
    """What stands for the test of a workload (or of its name) in the results."""
    return f"{COMMAND}::{workload}"


def rules_of(seed: int, seconds: float, over: Callable[[], str], *, seconds_in_all: float, workloads: int = 1) -> Rules:
    """The rules for one measurement of a comparison; its texts name ``--seconds``, the option of the command.

    seconds: of this measurement. over: why its time is used. seconds_in_all: of the comparison of so many workloads.
    """

    def larger(needed: int) -> str:
        more = workloads * (needed - seconds) / CLOSED_SHARE / ROUNDS_SHARE
        return f"{needed} s, with about --seconds {STEP * math.ceil((seconds_in_all + more) / STEP)}"

    return Rules(seed, budget=seconds, run_over=over, budget_name=SHARE_OF_TIME, larger_budget=larger)


def _no_slower(measurement: Measurement, metric: str | None) -> Answer:
    """Ask for ``MARGIN``, or for ``WIDEST`` where equal clusters can differ by as much as that.

    A latency can have a wider margin, which shows that the candidate is worse. Raises Inconclusive where throughput can
    differ by ``WIDEST``, and where its time is too short for the first look.
    """
    series: list[Series] = series_of(measurement)
    difference = measurement.source.cluster_difference(CANDIDATE, BASELINE, metric=metric or measurement.metric)
    wider = [] if difference is None or metric is None else [-math.expm1(-ROOM * difference.bound)]
    for margin in (MARGIN, WIDEST, *wider):
        guard = claims.no_slower_than(margin)
        if difference is None or not difference.refuses(guard.kind, guard.margins):
            _require_time(measurement, guard)
            answer = series[CANDIDATE].no_slower_than(series[BASELINE], by=margin, metric=metric)
            answer.report()  # no test reads it
            measurement.end()
            return answer
    assert difference is not None
    raise Inconclusive(
        f"equal clusters can differ by {percent(difference.bound)} (1 in {ONE_IN}; {difference.source}), and no worse "
        f"means slower by {100 * WIDEST:.0f} % at most; to measure how far they differ here: "
        f"{difference.command or 'dbcluster calibrate'}"
    )


def _require_time(measurement: Measurement, guard: Claim) -> None:
    """Raise Inconclusive where the time of this workload ends before the first look, whatever its rounds are."""
    rules, source = measurement.rules, measurement.source
    seconds = reach.shortest(source.round_seconds, source.free_length)
    if seconds is None:
        return
    look = reach.first_look(guard, rules.alpha, measurement.instances)
    if why := reach.beyond_budget(look, 2, seconds, rules.budget, given=False, larger=rules.larger_budget):
        raise Inconclusive(why)


@dataclasses.dataclass
class _Lines:
    """Prints a line of progress at each look of a claim."""

    line: Report

    def __call__(self, event: RoundProgress) -> None:
        if event.last and not event.warm_up and event.estimate and event.pair == event.next_look:
            self.line(f"{event.load}: pair {event.pair}, {event.estimate}")
