"""``WhyTestbed``: runs the workloads of a testbed again after a verdict, and reads what the servers did meanwhile.

``ServerComparer`` compares two variants with these rounds. No verdict counts them.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterable

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import ConfigError, DBClusterError, Inconclusive, SeriesVoid, Unsupported
from pytest_dbcluster.measuring.why.compared import ServerComparison
from pytest_dbcluster.measuring.why.comparison import compare_servers
from pytest_dbcluster.measuring.why.observation import ObservedRound, ObservedVariant, PlanStep
from pytest_dbcluster.measuring.why.stacks import Stacks
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed.pool import Running
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.testbed.why import cpu_stacks, plans, readings
from pytest_dbcluster.testbed.why.cpu_stacks import Recording
from pytest_dbcluster.testbed.why.readings import StatementExample
from pytest_dbcluster.workloads.workload import Setting, Workload

SCHEMA = "performance_schema"
MOST_ROUNDS, MOST_SECONDS = 3, 60.0  # of each variant; of all extra rounds, if they suffice for one of each
MOST_SAMPLED = 5.0  # seconds of each variant whose CPU is sampled
FIRST_BLOCK = 1_000_000  # of these rounds; claims have fewer blocks, so their inputs are others
SAMPLED_BLOCK = 2_000_000  # the first block of the rounds with samples
WARM_UP = -1  # the block of the first round on a new cluster, which is not read
SEPARATE = "separate servers with performance_schema=ON"
AS_TEXT = "statements sent as text"


class WhyTestbed(Testbed):
    """The variants of another testbed, on servers with performance_schema.

    Variants whose servers have it off get separate servers with it on. The clusters of the other testbed stay.
    """

    __test__ = False

    def __init__(self, of: Testbed) -> None:
        super().__init__(
            of._workloads[0], of.variants, of._pool, of._profile, of._progress, across_durability=True, instances=1
        )
        self._of = of
        self.names, self.load, self._workloads = of.names, of.load, of._workloads
        self.arrival_rate, self._repeat, self._excused = of.arrival_rate, of._repeat, of._excused
        self.variants = [self._with_schema(variant) for variant in of.variants]
        self._texts = {workload: as_text(workload) for workload in of._workloads}
        self._read: dict[int, ObservedRound] = {}  # by variant, its last round
        self._sampled: tuple[Recording, int] | None = None  # of the last round with samples, with its operations
        self._sampling = 0.0  # the usual seconds of a round while rounds are sampled

    def _with_schema(self, variant: Variant) -> Variant:
        """The variant itself if its servers have performance_schema on; otherwise the same with it on."""
        if self._pool.resolution.defaults(variant).get(SCHEMA, "OFF").upper() in ("ON", "1"):
            return variant
        return dataclasses.replace(variant, static=tuple(sorted({**dict(variant.static), SCHEMA: "ON"}.items())))

    @property
    def separate(self) -> list[Variant]:
        """The variants on servers that the other testbed does not have."""
        known = {variant.cluster_key for variant in self._of._all_instances}
        return [variant for variant in self.variants if variant.cluster_key not in known]

    @property
    def remarks(self) -> list[str]:
        """How these rounds differ from those of the verdict."""
        text = any(other is not one for one, other in self._texts.items())
        return [*([SEPARATE] if self.separate else []), *([AS_TEXT] if text else [])]

    @functools.cached_property
    def one_at_a_time(self) -> bool:
        """As in Testbed. Raises Unsupported if there is no room beside the clusters of the verdict."""
        if self._of.one_at_a_time:
            return True
        if self._pool.room_for_all(self._all_instances):
            return False
        raise Unsupported(f"not enough memory for {SEPARATE} beside the others")

    @functools.cached_property
    def _all_instances(self) -> list[Variant]:
        """Also the variants of the other testbed, so that the pool keeps their clusters."""
        return [*self.variants, *self._of._all_instances]

    def observe(self, variant: int, block: int) -> ObservedRound:
        """Run one round of a variant, and return what the servers counted in it. Raises SeriesVoid for a void round."""
        self._read.pop(variant, None)
        self._draw_counting(variant, block)
        return self._read[variant]

    def sample(self, variant: int, block: int, seconds: float) -> Stacks:
        """Run one round of a variant with samples of its servers' CPU; return its CPU seconds per operation.

        seconds: the usual time of a round. Raises SeriesVoid for a void round, and Unsupported without samples.
        """
        self._sampling = seconds
        try:
            self._draw_counting(variant, block)
        finally:
            self._sampling = 0.0
        assert self._sampled
        recording, operations = self._sampled
        return {functions: taken / operations for functions, taken in recording.read().items()}

    def why_not_sampled(self, variants: Iterable[int]) -> str:
        """Why the CPU of these variants' servers cannot be sampled; empty if it can be tried."""
        return next(filter(None, (cpu_stacks.why_not(self._prepare(one, 0).cluster.nodes) for one in variants)), "")

    def _draw_counting(self, variant: int, block: int) -> None:
        if why := self._draw_one(variant, block).void:
            raise SeriesVoid(f"an extra round is void: {why}")

    def _draw_one(self, variant: int, block: int) -> Round:
        running = self._prepare(variant, 0)
        with self._pool.measuring(), self._mark_dirty_on_error(running.cluster):
            return self._round(running, variant, block, 0, time.monotonic())

    def _run_round(self, workload: Workload, setting: Setting, *, variant: str, block: int, position: int) -> Round:
        """The round of Testbed, with its statements as text, between two readings."""
        nodes, number, run = setting.cluster.nodes, self.names.index(variant), super()._run_round
        if self._sampling:
            recording = Recording(nodes, self._sampling)
            with recording.running():
                done = run(self._texts[workload], setting, variant=variant, block=block, position=position)
            self._sampled = recording, max(1, done.outcome.operations)
            return done
        if self.variants[number] in self.separate:
            readings.keep_examples(nodes)
        before = readings.read(nodes)
        done = run(self._texts[workload], setting, variant=variant, block=block, position=position)
        self._read[number] = ObservedRound(done.outcome.operations, readings.read(nodes).since(before))
        return done

    def examples(self, variant: int) -> dict[str, StatementExample]:
        """By statement, an example from the last round of a variant."""
        return readings.examples(self._prepare(variant, 0).cluster.nodes)

    def plans(self, variant: int, examples: dict[str, StatementExample]) -> dict[str, tuple[PlanStep, ...]]:
        """The plans of these examples on a variant."""
        running: Running = self._prepare(variant, 0)
        with self._pool.measuring(), self._mark_dirty_on_error(running.cluster):
            self._switch(running, variant)
            return plans.plans(running.cluster.writers[0], examples)

    def close(self) -> None:
        """End the separate servers."""
        self._pool.end(self.separate)


def as_text(workload: Workload) -> Workload:
    """The workload with statements as text, if it has them prepared.

    MariaDB has no digests of executions of prepared statements, and MySQL has no examples of them with values.
    """
    if getattr(workload, "prepared", False) is not True or not dataclasses.is_dataclass(workload):
        return workload
    try:
        return dataclasses.replace(workload, prepared=False)
    except ConfigError:  # its files have changed since they were read
        return workload


class ServerComparer:
    """Compares the servers of two variants of a testbed, once for each two variants.

    over: returns why no extra round may begin, such as a spent budget; empty while it may.
    """

    def __init__(self, of: Testbed, over: Callable[[], str] = lambda: "") -> None:
        self._of = of
        self._over = over
        self._known: dict[tuple[int, int], ServerComparison] = {}

    def __call__(self, candidate: int, baseline: int, seconds: float) -> ServerComparison:
        """The comparison. An error of the extra rounds is its ``reason``. seconds: the usual time of a round."""
        pair = candidate, baseline
        if pair not in self._known:
            try:
                if why := self._over():
                    raise Inconclusive(why)
                self._known[pair] = self._compare(*pair, seconds)
            except DBClusterError as error:
                names = self._of.names[baseline], self._of.names[candidate]
                self._known[pair] = ServerComparison(*names, reason=str(error).partition("\n")[0])
        return self._known[pair]

    def _compare(self, candidate: int, baseline: int, seconds: float) -> ServerComparison:
        testbed, both = WhyTestbed(self._of), (baseline, candidate)
        number = max(1, min(MOST_ROUNDS, int(MOST_SECONDS / max(2 * seconds, 0.001))))
        warm_ups = 1 if testbed.separate else 0
        whole = formatting.duration(2 * (number + warm_ups) * seconds)
        start = f", after the start of {SEPARATE}" if testbed.separate else ""
        self._of._progress(
            f"{testbed.load}: {formatting.quantity(number, 'extra round')} of each variant to see what differs on the "
            f"servers, about {whole}{start}; no verdict counts them"
        )
        try:
            if warm_ups:
                for variant in both:
                    testbed.observe(variant, WARM_UP)
            rounds: dict[int, list[ObservedRound]] = {variant: [] for variant in both}
            examples: dict[int, dict[str, StatementExample]] = {variant: {} for variant in both}
            for block in range(number):
                for variant in both[:: -1 if block % 2 else 1]:
                    rounds[variant].append(testbed.observe(variant, FIRST_BLOCK + block))
                    examples[variant] |= testbed.examples(variant)
            found = {variant: testbed.plans(variant, shared_examples(examples, variant, both)) for variant in both}
            stacks, no_stacks = self._stacks(testbed, both, seconds)
        finally:
            testbed.close()
        one, other = (
            ObservedVariant(testbed.names[each], tuple(rounds[each]), found[each], stacks.get(each, {}))
            for each in both
        )
        return compare_servers(one, other, testbed.remarks, no_stacks)

    def _stacks(self, testbed: WhyTestbed, both: tuple[int, int], seconds: float) -> tuple[dict[int, Stacks], str]:
        """By variant, the mean of its rounds with samples; without any, the reason."""
        number = max(1, min(MOST_ROUNDS, math.ceil(MOST_SAMPLED / max(seconds, 0.001))))
        try:
            if why := testbed.why_not_sampled(both):
                raise Unsupported(why)
            self._of._progress(
                f"{testbed.load}: {formatting.quantity(number, 'extra round')} of each variant, in which perf samples "
                f"the CPU of the servers, about {formatting.duration(2 * number * seconds)}"
            )
            found: dict[int, dict[tuple[str, ...], float]] = {each: collections.defaultdict(float) for each in both}
            for block in range(number):
                for variant in both[:: -1 if block % 2 else 1]:
                    for functions, taken in testbed.sample(variant, SAMPLED_BLOCK + block, seconds).items():
                        found[variant][functions] += taken / number
        except DBClusterError as error:
            return {}, str(error).partition("\n")[0]
        return dict(found), ""


def shared_examples(
    of: dict[int, dict[str, StatementExample]], variant: int, both: Iterable[int]
) -> dict[str, StatementExample]:
    """The examples whose plans are compared: the same texts for both variants, in the variant's own database.

    The optimizer may choose another plan for another value.
    """
    chosen: dict[str, StatementExample] = {}
    for each in both:  # the baseline's text counts
        chosen = of[each] | chosen
    own = of[variant]
    return {
        statement: dataclasses.replace(example, schema=own[statement].schema) if statement in own else example
        for statement, example in chosen.items()
    }
