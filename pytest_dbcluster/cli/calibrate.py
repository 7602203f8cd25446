"""``dbcluster calibrate``: measure how far fresh equal clusters differ on this machine, and keep it in the cache.

Each pair of clusters is started afresh from the same spec, measured against each other, and ended. Each pair is written
to the cache at once, so an interrupted calibration keeps what it has and goes on later.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import secrets
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pytest_dbcluster.claims import intervals
from pytest_dbcluster.claims.block_order import PER_EIGHT
from pytest_dbcluster.claims.cluster_difference import LEAST_PAIRS, ONE_IN, percent
from pytest_dbcluster.claims.critical_values import LOOKS
from pytest_dbcluster.cli.compare import workload_of
from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.clusters.topology import usual_nodes
from pytest_dbcluster.errors import ConfigError, Inconclusive, ProvisionError, SeriesVoid, Unsupported
from pytest_dbcluster.formatting import Report, duration
from pytest_dbcluster.hosts.given import given_elsewhere
from pytest_dbcluster.hosts.provisioner import given_images, provisioner_class
from pytest_dbcluster.measuring.measurement import Measurement, Rules
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.rounds import round_length
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed import cluster_differences
from pytest_dbcluster.testbed.cluster_differences import Calibration, Key
from pytest_dbcluster.testbed.comparability import lasting
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload

SECONDS = 600.0  # of measured time for a pair of clusters, at most
LEAVE_SECONDS = 20.0  # maximum wait for the machine's lock before the servers are stopped without it
FAILURES = 3  # pairs of clusters in a row that could not be measured
ROUNDS = 40  # of each cluster, where no time is given
LEAST_ROUNDS = 2 * PER_EIGHT  # of each cluster: one eight for either half
LEAST_SECONDS = 5.0  # of a pair of clusters
PARTS = 40  # rounds that the time of a pair would have room for: so long is a round, where its workload leaves it open


def run_calibrate(arguments: argparse.Namespace) -> int:
    """``dbcluster calibrate``: measure until ``--pairs`` pairs of clusters are known; return 0, or 130 after Ctrl-C.

    SIGTERM and SIGHUP are as Ctrl-C, unless the caller has set them to be ignored (nohup).
    """
    _check(arguments.pairs, arguments.rounds, arguments.seconds)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    workload = workload_of(arguments.workload, arguments.threads)
    if arguments.seconds is not None:
        length = arguments.seconds / arguments.pairs / PARTS
        workload = lasting(workload, min(round_length.USUAL, max(round_length.SHORTEST, length)))
    nodes = usual_nodes(arguments.topology) if arguments.nodes is None else arguments.nodes
    spec = ClusterSpec(
        arguments.topology, nodes=nodes, release=ReleaseName.parse(arguments.release), proxy=arguments.proxy
    )
    images = given_images(arguments.image, arguments.provisioner)
    chosen = provisioner_class(arguments.provisioner)
    machines = given_elsewhere(arguments, arguments.provisioner)
    provisioner = chosen(chosen=dict(images)) if images else chosen(**machines)
    resolution = Resolution(provisioner, fragments=Path(), below=None, progress=tell)
    pool = Pool(resolution)
    with contextlib.ExitStack() as stack:
        stack.callback(provisioner.close)
        stack.callback(_end, pool)
        with pool.turns.building():
            provisioner.expect([spec])
            variant = resolution.resolve(spec, switched=False, client_of=[workload])
        key = Key.of(variant, workload, provisioner)
        if arguments.again:
            key.path.unlink(missing_ok=True)
        waits_for = f"another process that calibrates {key}"
        key.path.parent.mkdir(parents=True, exist_ok=True)
        with cache.held(key.path.with_name(f"{key.path.name}.lock"), progress=tell, waits_for=waits_for):
            fresh = FreshPairs(variant, workload, pool)
            plan = Plan(arguments.pairs, arguments.rounds, arguments.seconds)
            ended = calibrated(key, fresh, plan, progress=tell)
    for line in summary(cluster_differences.read(key), arguments.pairs):
        print(line)
    return 130 if ended else 0


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured.

    pairs: of clusters. rounds: of each cluster at most; None for ROUNDS, or for as many as the time allows. seconds: of
    all pairs with the starts of their clusters; None for as long as the rounds take.
    """

    pairs: int
    rounds: int | None = None
    seconds: float | None = None

    @property
    def most_rounds(self) -> int:
        """Of each cluster."""
        return self.rounds or (ROUNDS if self.seconds is None else LOOKS[-1])

    def share(self, used: float, done: int) -> float:
        """Seconds of the next pair of clusters: the rest of the time in equal parts; infinite without a limit.

        used: seconds of the ``done`` pairs.
        """
        return math.inf if self.seconds is None else max(0.0, self.seconds - used) / (self.pairs - done)


def _check(pairs: int, rounds: int | None, seconds: float | None) -> None:
    """Raise ConfigError for numbers that give no calibration."""
    if pairs < LEAST_PAIRS or (rounds is not None and rounds < LEAST_ROUNDS):
        given = "" if rounds is None else f" --rounds {rounds}"
        raise ConfigError(
            f"--pairs {pairs}{given}: it takes {LEAST_PAIRS} or more pairs of clusters, and {LEAST_ROUNDS} rounds or "
            "more of each cluster"
        )
    if seconds is not None and not LEAST_SECONDS * pairs <= seconds < math.inf:
        raise ConfigError(
            f"--seconds {seconds:g}: {pairs} pairs of clusters take {LEAST_SECONDS * pairs:g} s or more; a pair of "
            "three-node clusters takes some 20 s"
        )


def _end(pool: Pool) -> None:
    with pool.turns.building(most=LEAVE_SECONDS):
        pool.close()


class FreshPairs:
    """Gives pairs of fresh equal clusters of one variant, one pair after the other, as a round source."""

    def __init__(self, variant: Variant, workload: Workload, pool: Pool) -> None:
        self._variant, self._workload, self._pool = variant, workload, pool

    @contextlib.contextmanager
    def __call__(self, number: int) -> Iterator[RoundSource]:
        """A source whose two variants are two clusters that have just been started; they end with the context."""
        try:
            # Numbers of instances that differ from pair to pair make the clusters of each pair new ones.
            variants = [self._variant.on_instance(2 * number + side) for side in (0, 1)]
            testbed = Testbed(self._workload, variants, self._pool, "quick", tell, instances=1)
            if testbed.in_turns:
                raise Unsupported(f"no memory for two clusters of {self._variant.spec} side by side; try fewer --nodes")
            yield testbed
        finally:
            with self._pool.turns.building():
                self._pool.close()


def calibrated(
    key: Key,
    fresh: Callable[[int], contextlib.AbstractContextManager[RoundSource]],
    plan: Plan,
    *,
    progress: Report,
) -> bool:
    """Measure until the calibration of this key has so many pairs of clusters. Return whether Ctrl-C ended it.

    fresh: gives a source of two fresh equal clusters. Each pair is kept in the cache as soon as it is measured. A pair
    whose rounds are void is left out; three in a row raise its error. Raises ProvisionError when the cache cannot be
    written.
    """
    known, failures, began, pairs = cluster_differences.read(key), 0, time.monotonic(), plan.pairs
    had = len(known.differences)
    if had:
        progress(f"{key}: {had} pairs of clusters are known from {known.date}")
    number = 0
    try:
        while len(known.differences) < pairs:
            start = time.monotonic()
            share = plan.share(start - began, len(known.differences))
            try:
                with fresh(number) as source:
                    difference, noise = difference_of(source, plan.most_rounds, start + share)
            except (Inconclusive, SeriesVoid) as error:
                failures += 1
                if failures >= FAILURES:
                    raise
                progress(f"a pair of clusters is left out: {error}")
                continue
            finally:
                number += 1
            failures = 0
            known = _kept(known.with_pair(difference, noise))
            progress(_line(known, pairs, time.monotonic() - began, len(known.differences) - had))
    except KeyboardInterrupt:
        kept = f"{len(known.differences)} of {pairs} pairs of clusters are kept"
        progress(f"interrupted: {kept}; the same command goes on")
        return True
    return False


def _kept(known: Calibration) -> Calibration:
    try:
        known.write()
    except OSError as error:
        raise ProvisionError(f"cannot keep the calibration in {known.key.path}: {error.strerror}") from error
    return known


def difference_of(source: RoundSource, rounds: int, until: float = math.inf) -> tuple[float, float]:
    """The log ratio of the speeds of the two clusters of a source, and what the noise of its rounds is.

    The noise is half of the difference between the two halves of the rounds: its square estimates the variance of the
    log ratio, without a model of how rounds depend on each other. rounds: of each cluster, as many more as the last
    block has. until: when to draw no more, by ``time.monotonic``; LEAST_ROUNDS are drawn in any case. Raises
    SeriesVoid, and Inconclusive when the pair takes too long.
    """
    end = time.monotonic() + SECONDS * 2

    def over() -> str:
        return "" if time.monotonic() < end else f"a pair of clusters took more than {duration(SECONDS * 2)}"

    rules = Rules(secrets.randbits(63), budget=SECONDS, run_over=over, budget_name="of a pair of clusters")
    measurement = Measurement(source, rules)
    while measurement.pairs < rounds and (measurement.pairs < LEAST_ROUNDS or time.monotonic() < until):
        if why := measurement.over((0, 1)):
            raise Inconclusive(f"{source.load}: {why}, after {measurement.pairs} of {rounds} rounds of each cluster")
        measurement.draw((0, 1))
    measurement.check()
    pairs = measurement.pairs_of(1, 0, source.metric)
    half = len(pairs) // 2
    first, second = (intervals.hodges_lehmann(part) for part in (pairs.ratios[:half], pairs.ratios[half:]))
    return intervals.estimate(pairs), abs(first - second) / 2


def _line(known: Calibration, pairs: int, seconds: float, measured: int) -> str:
    """One line of progress after a pair of clusters."""
    done = len(known.differences)
    left = f", about {duration((pairs - done) * seconds / measured)} left" if done < pairs else ""
    last, noise = percent(abs(known.differences[-1])), percent(known.noise_in_all)
    return f"pair {done} of {pairs}: the clusters differ by {last} (noise of the rounds so far {noise}){left}"


def summary(known: Calibration, pairs: int) -> Sequence[str]:
    """What a calibration says, in lines."""
    done = len(known.differences)
    if known.difference is None:
        default = f"{LEAST_PAIRS - done} more are needed before it replaces the default"
        return [f"{known.key}: {done} of {pairs} pairs of clusters; {default}"]
    sizes = sorted(map(abs, known.differences))
    own = known.noise_in_all
    return [
        f"{known.key}: equal clusters differ by {percent(known.difference.bound)} at most (1 in {ONE_IN}), from {done} "
        f"pairs of clusters",
        f"half of the pairs differed by less than {percent(statistics.median(sizes))}, the largest by "
        f"{percent(sizes[-1])}; the rounds' own noise has a standard deviation of {percent(own)}, which f leaves out",
        f"kept in {known.key.path}",
    ]
