"""How often are claims about two equal variants wrong on real servers, and how far do two equal clusters differ?

    python benchmarks/equal_variants.py [--runs 8] [--budget 8] [--on shared|separate] [--workload write ...]
        [--topology galera --nodes 3]

``shared`` alternates two equal variants on one cluster, ``separate`` runs them on two clusters that are started
afresh for each measurement. Every measurement makes the claims of ``CLAIMS``. Both variants are equally fast, so
``beats`` and ``lower`` are wrong whatever they decide, and a guard is wrong when it fails. The last table shows how far
separate clusters differed. A measurement ends when its claims are decided, often after 4 pairs of rounds, so most of
that is the noise of the rounds: ``dbcluster calibrate`` measures f, by which equal clusters can differ.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import secrets
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks import ratios, stage
from pytest_dbcluster import TPCC, ClusterSpec, MySQLSlap, ReleaseName, SysBench
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.cluster_difference import percent
from pytest_dbcluster.cli.calibrate import FreshPairs
from pytest_dbcluster.errors import Inconclusive, SeriesVoid
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import Series, series_of
from pytest_dbcluster.spec import DEFAULT_RELEASE
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.workloads.workload import Workload

SHARED, SEPARATE = "shared", "separate"
SHARED_TARGET, SEPARATE_TARGET = 0.0, 0.01  # of the claims may be wrong
LOADS: Mapping[str, Workload] = {
    **{mode: MySQLSlap(mode) for mode in ("key", "mixed", "read", "update", "write")},
    "read_write": SysBench("oltp_read_write", to="writer"),
    "tpcc": TPCC(threads=8),
}
CLAIMS: Mapping[str, Callable[[Series, Series], Answer]] = {
    "same_as": lambda one, other: one.same_as(other, within=0.1),
    "no_slower_than": lambda one, other: one.no_slower_than(other, by=0.1),
    "beats": lambda one, other: one.beats(other),
    "beats, turned": lambda one, other: other.beats(one),
    "lower": lambda one, other: one.lower("fsyncs_per_commit", than=other),
}
GUARDS = frozenset({"same_as", "no_slower_than"})
WRITING = frozenset(LOADS) - {"key", "read"}


@dataclasses.dataclass
class Count:
    """The outcomes of one claim under one workload. wrong: decided, though the variants are equal."""

    outcomes: dict[Outcome, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    wrong: int = 0
    void: int = 0

    @property
    def claims(self) -> int:
        """All claims that have an outcome."""
        return sum(self.outcomes.values())

    def add(self, claim: str, outcome: Outcome) -> None:
        """Count one outcome of this claim."""
        self.outcomes[outcome] += 1
        self.wrong += outcome is Outcome.FAILS or (outcome is Outcome.HOLDS and claim not in GUARDS)


def make_claims(load: str, source: RoundSource, budget: float, counts: Mapping[str, Count]) -> float | None:
    """Make the claims about two equal variants; return the log ratio of their speeds, None where no round counts."""
    measurement = Measurement(source, Rules(secrets.randbits(63), budget=budget))
    one, other = series_of(measurement)
    for claim, count in counts.items():
        if claim == "lower" and load not in WRITING:
            continue
        try:
            count.add(claim, CLAIMS[claim](one, other).verdict.outcome)
        except (Inconclusive, SeriesVoid) as error:
            count.void += 1
            stage.tell(f"{load}, {claim}: {error}")
    if not measurement.pairs:
        return None
    first, second = (measurement.values.to_compare(number, measurement.metric) for number in (0, 1))
    difference = statistics.median(math.log(b / a) for a, b in zip(first, second, strict=True))
    wrong = sum(count.wrong for count in counts.values())
    stage.tell(f"{load}: {measurement.pairs} pairs, {100 * math.expm1(difference):+.1f} %, {wrong} wrong so far")
    return difference


class Sources:
    """Gives the round source of each measurement: two equal variants of one spec."""

    def __init__(self, pool: Pool, spec: ClusterSpec, where: str) -> None:
        self._pool, self._spec, self._where = pool, spec, where
        self._number = 0

    @contextlib.contextmanager
    def __call__(self, load: Workload) -> Iterator[RoundSource]:
        """A source of this workload; separate clusters end with the context."""
        if self._where == SHARED:
            same = self._spec.with_options(lock_wait_timeout=86399).named("same")  # a switch that changes nothing
            yield stage.stage_of(self._pool, load, [self._spec, same])
            return
        variant = self._pool.resolution.resolve(self._spec, switched=False)
        with FreshPairs(variant, load, self._pool)(self._number) as source:
            self._number += 1
            yield source


def claims_table(counts: Mapping[str, Mapping[str, Count]], target: float) -> list[str]:
    """The table of outcomes, and the share of wrong claims."""
    rows = ["| workload | claim | claims | holds | fails | inconclusive | wrong | void |", f"|{'---|' * 8}"]
    every = [(load, claim, count) for load, of in counts.items() for claim, count in of.items() if count.claims]
    for load, claim, count in every:
        cells = (load, claim, count.claims, *(count.outcomes[outcome] for outcome in Outcome), count.wrong, count.void)
        rows.append(f"| {' | '.join(map(str, cells))} |")
    made, wrong = (sum(getattr(count, name) for _, _, count in every) for name in ("claims", "wrong"))
    if made:
        rows.append(f"\n{wrong} of {made} claims are wrong, {ratios.target_text(wrong / made, target)}")
    return rows


def differences_table(differences: Mapping[str, Sequence[float]]) -> list[str]:
    """The table of how far equal clusters differed, the noise of their rounds included."""
    rows = ["| workload | pairs of clusters | half differ by less than | largest |", f"|{'---|' * 4}"]
    for load, found in differences.items():
        if found:
            sizes = [abs(value) for value in found]
            rows.append(f"| {load} | {len(found)} | {percent(statistics.median(sizes))} | {percent(max(sizes))} |")
    return rows


def main() -> None:
    """Reads the command line and prints the tables."""
    parser = ratios.arguments(__doc__, 8, "measurements of each workload")
    parser.add_argument("--budget", type=float, default=8.0, metavar="S", help="measured seconds of each (default 8)")
    parser.add_argument("--on", choices=(SHARED, SEPARATE), default=SHARED, help="one cluster or two (default shared)")
    parser.add_argument("--workload", nargs="*", choices=LOADS, default=list(LOADS), metavar="LOAD", help="workloads")
    parser.add_argument("--topology", default="standalone", help="of the clusters (default standalone)")
    parser.add_argument("--nodes", type=ratios.positive, default=1, help="of each cluster (default 1)")
    given = parser.parse_args()
    spec = ClusterSpec(given.topology, nodes=given.nodes).on_release(ReleaseName.parse(DEFAULT_RELEASE))
    counts = {load: {claim: Count() for claim in CLAIMS} for load in given.workload}
    differences: dict[str, list[float]] = {load: [] for load in given.workload}
    with stage.clusters() as pool:
        sources = Sources(pool, spec, given.on)
        try:
            for _ in range(given.runs):
                for load in given.workload:
                    with sources(LOADS[load]) as source:
                        if (found := make_claims(load, source, given.budget, counts[load])) is not None:
                            differences[load].append(found)
        finally:
            print("\n".join(claims_table(counts, SHARED_TARGET if given.on == SHARED else SEPARATE_TARGET)))
            if given.on == SEPARATE:
                print("\n" + "\n".join(differences_table(differences)), flush=True)


if __name__ == "__main__":
    ratios.run(main)
