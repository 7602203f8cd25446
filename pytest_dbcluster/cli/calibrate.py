"""``dbcluster calibrate``: measure how far fresh equal clusters differ on this machine, and keep it in the cache.

Each pair of clusters is started afresh from the same spec, measured against each other, and ended. Each pair is written
to the cache at once, so an interrupted calibration keeps what it has and goes on later.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pytest_dbcluster.claims.cluster_difference import LEAST_PAIRS, ONE_IN, percent
from pytest_dbcluster.cli.compare import workload_of
from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.errors import ConfigError, Inconclusive, ProvisionError, SeriesVoid, Unsupported
from pytest_dbcluster.formatting import Report, duration
from pytest_dbcluster.hosts.provisioner import given_images, provisioner_class
from pytest_dbcluster.measuring.measurement import Measurement, Rules
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed import cluster_differences
from pytest_dbcluster.testbed.cluster_differences import Calibration, Key
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload

SECONDS = 600.0  # of measured time for a pair of clusters, at most
LEAVE_SECONDS = 20.0  # maximum wait for the machine's lock before the servers are stopped without it
FAILURES = 3  # pairs of clusters in a row that could not be measured
MEDIAN = math.sqrt(math.pi / 2)  # standard error of a median / that of a mean, for normal values


def run_calibrate(arguments: argparse.Namespace) -> int:
    """``dbcluster calibrate``: measure until ``--pairs`` pairs of clusters are known; return 0, or 130 after Ctrl-C."""
    if arguments.pairs < LEAST_PAIRS or arguments.rounds < 1:
        raise ConfigError(
            f"--pairs {arguments.pairs} --rounds {arguments.rounds}: it takes {LEAST_PAIRS} or more pairs of clusters, "
            "and a round or more of each"
        )
    workload = workload_of(arguments.workload, arguments.threads)
    nodes = arguments.nodes if arguments.nodes is not None else 1 if arguments.topology == "standalone" else 3
    spec = ClusterSpec(
        arguments.topology, nodes=nodes, release=ReleaseName.parse(arguments.release), proxy=arguments.proxy
    )
    images = given_images(arguments.image, arguments.provisioner)
    chosen = provisioner_class(arguments.provisioner)
    provisioner = chosen(chosen=dict(images)) if images else chosen()
    resolution = Resolution(provisioner, fragments=Path(), below=None, progress=tell)
    pool = Pool(resolution)
    with contextlib.ExitStack() as stack:
        stack.callback(provisioner.close)
        stack.callback(_end, pool)
        with pool.turns.building():
            variant = resolution.resolve(spec, switched=False)
        key = Key.of(variant, workload, provisioner)
        if arguments.again:
            key.path.unlink(missing_ok=True)
        waits_for = f"another process that calibrates {key}"
        key.path.parent.mkdir(parents=True, exist_ok=True)
        with cache.held(key.path.with_name(f"{key.path.name}.lock"), progress=tell, waits_for=waits_for):
            fresh = FreshPairs(variant, workload, pool)
            ended = calibrated(key, fresh, pairs=arguments.pairs, rounds=arguments.rounds, progress=tell)
    for line in summary(cluster_differences.read(key), arguments.pairs):
        print(line)
    return 130 if ended else 0


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
    *,
    pairs: int,
    rounds: int,
    progress: Report,
) -> bool:
    """Measure until the calibration of this key has so many pairs of clusters. Return whether Ctrl-C ended it.

    fresh: gives a source of two fresh equal clusters. rounds: of each cluster. Each pair is kept in the cache as soon
    as it is measured. A pair whose rounds are void is left out; three in a row raise its error. Raises ProvisionError
    when the cache cannot be written.
    """
    known, failures, began = cluster_differences.read(key), 0, time.monotonic()
    had = len(known.differences)
    if had:
        progress(f"{key}: {had} pairs of clusters are known from {known.date}")
    number = 0
    try:
        while len(known.differences) < pairs:
            try:
                with fresh(number) as source:
                    difference, noise = difference_of(source, rounds)
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


def difference_of(source: RoundSource, rounds: int) -> tuple[float, float]:
    """The log ratio of the speeds of the two clusters of a source, and its standard error from the rounds' noise.

    It is the median of the pairs of rounds, so that stalled rounds do not count. rounds: of each cluster; as many more
    as the last block has. Raises SeriesVoid, and Inconclusive when the pair takes too long.
    """
    end = time.monotonic() + SECONDS * 2

    def over() -> str:
        return "" if time.monotonic() < end else f"a pair of clusters took more than {duration(SECONDS * 2)}"

    measurement = Measurement(source, Rules(secrets.randbits(63), budget=SECONDS, run_over=over))
    while measurement.pairs < rounds:
        if why := measurement.over((0, 1)):
            raise Inconclusive(f"{source.load}: {why}, after {measurement.pairs} of {rounds} rounds of each cluster")
        measurement.draw((0, 1))
    measurement.check()
    first, second = (measurement.compared(number, source.metric) for number in (0, 1))
    ratios = [math.log(b / a) for a, b in zip(first, second, strict=True)]
    spread = statistics.stdev(ratios) if len(ratios) > 1 else 0.0
    return statistics.median(ratios), MEDIAN * spread / math.sqrt(len(ratios))


def _line(known: Calibration, pairs: int, seconds: float, measured: int) -> str:
    """One line of progress after a pair of clusters."""
    done = len(known.differences)
    left = f", about {duration((pairs - done) * seconds / measured)} left" if done < pairs else ""
    last, noise = percent(abs(known.differences[-1])), percent(known.noise[-1])
    return f"pair {done} of {pairs}: the clusters differ by {last} (standard error {noise}){left}"


def summary(known: Calibration, pairs: int) -> Sequence[str]:
    """What a calibration says, in lines."""
    done = len(known.differences)
    if known.difference is None:
        default = f"{LEAST_PAIRS - done} more are needed before it replaces the default"
        return [f"{known.key}: {done} of {pairs} pairs of clusters; {default}"]
    sizes = sorted(map(abs, known.differences))
    own = math.sqrt(statistics.fmean(value * value for value in known.noise))
    return [
        f"{known.key}: equal clusters differ by {percent(known.difference.bound)} at most (1 in {ONE_IN}), from {done} "
        f"pairs of clusters",
        f"half of the pairs differed by less than {percent(statistics.median(sizes))}, the largest by "
        f"{percent(sizes[-1])}; the rounds' own noise is {percent(own)} of it",
        f"kept in {known.key.path}",
    ]
