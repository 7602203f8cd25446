"""``dbcluster calibrate``: measure how far fresh equal clusters differ on this machine, and keep it in the cache.

It starts each pair of fresh clusters from the same spec, measures one against the other, and ends them. It writes each
pair to the cache at once, so an interrupted calibration keeps its pairs and continues later.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from pytest_dbcluster.claims.cluster_difference import LEAST_PAIRS, ONE_IN, percent
from pytest_dbcluster.claims.critical_values import LOOKS
from pytest_dbcluster.cli.clusters import add_cluster, add_where
from pytest_dbcluster.cli.text import tell
from pytest_dbcluster.cli.workload_option import add_workload, workload_of
from pytest_dbcluster.clusters.topology import usual_nodes
from pytest_dbcluster.errors import ConfigError, Inconclusive, ProvisionError, SeriesVoid, Unsupported
from pytest_dbcluster.formatting import Report, duration, option_seconds, quantity
from pytest_dbcluster.hosts.given import HelpText, remote_arguments
from pytest_dbcluster.hosts.provisioner import parse_images
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.rounds import round_length
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed import calibrations
from pytest_dbcluster.testbed.calibrations import LEAST_ROUNDS, Calibration, CalibrationKey, PairDifference
from pytest_dbcluster.testbed.comparability import metric, with_seconds
from pytest_dbcluster.testbed.pool import Pool, open_pool
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import OpenLoop, Workload

SECONDS = 600.0  # maximum measured time of a pair of clusters
FAILURES = 3  # failed pairs of clusters in a row that end a calibration
ROUNDS = 40  # rounds of each cluster without --seconds
LEAST_SECONDS = 5.0  # minimum time of a pair of clusters
OPEN_LOOP = "70 %"  # of capacity: the arrival rate of a calibration of latencies
PARTS = 40  # the length of a round is the time of a pair / PARTS, if the workload does not set it


def add_calibrate(calibrate: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster calibrate`` to its parser."""
    calibrate.set_defaults(run=run_calibrate)
    calibrate.description = HelpText(
        "Start pairs of fresh equal clusters, measure each pair, and keep how far they differ in each metric. "
        "In later claims between variants on separate clusters of this kind, a difference must be larger than that "
        "(1 in 200), in place of a default. Each pair is kept at once: after Ctrl-C, the same command continues. "
        "Run nothing else on the machine.",
        "Measure how far fresh equal clusters differ. Later claims between separate clusters use it in place of a "
        "default. After Ctrl-C, the same command continues. Run nothing else on the machine.",
    )
    calibrate.epilog = (
        "example: dbcluster calibrate galera --workload mysqlslap:write takes about an hour, or eight minutes with "
        "--seconds 8m"
    )
    calibrate.usage = "%(prog)s TOPOLOGY [options]"
    add = add_cluster(calibrate, "what to measure")
    add_workload(add, "mysqlslap:write", default="mysqlslap:write")
    add(
        "--open-loop",
        action="store_true",
        help=HelpText("at 70 %% of capacity, for claims about latencies", "at 70 %% of capacity, for latencies"),
    )
    _add_extent(calibrate)
    add_where(calibrate)


def _add_extent(calibrate: argparse.ArgumentParser) -> None:
    """Add the options for the extent of a calibration."""
    add = calibrate.add_argument_group("how much").add_argument
    add("--pairs", type=int, default=24, metavar="N", help="pairs of clusters in total (default 24)")
    add(
        "--rounds",
        type=int,
        metavar="N",
        help=HelpText(
            "rounds of each cluster (default 40; with --seconds as many as fit)", "rounds of each cluster (default 40)"
        ),
    )
    add(
        "--seconds",
        metavar="TIME",
        help=HelpText(
            "time of all pairs with the starts of their clusters, such as 8m (default: the time of --rounds)",
            "time of all pairs (default: that of --rounds)",
        ),
    )
    add("--again", action="store_true", help="forget the existing pairs and start again")


def run_calibrate(arguments: argparse.Namespace) -> int:
    """``dbcluster calibrate``: measure until there are ``--pairs`` pairs of clusters, and show the result; return 0.

    Ctrl-C, SIGTERM and SIGHUP show the pairs so far, and end it as another command.
    """
    seconds = None if arguments.seconds is None else option_seconds("--seconds", arguments.seconds)
    _check(arguments.pairs, arguments.rounds, seconds)
    workload = _workload(arguments.workload, arguments.threads, open_loop=arguments.open_loop)
    if seconds is not None:
        length = seconds / arguments.pairs / PARTS
        workload = with_seconds(workload, min(round_length.USUAL, max(round_length.SHORTEST, length)))
    nodes = usual_nodes(arguments.topology) if arguments.nodes is None else arguments.nodes
    spec = ClusterSpec(arguments.topology, nodes=nodes, release=arguments.release, proxy=arguments.proxy)
    images = parse_images(arguments.image, arguments.provisioner)
    machines = remote_arguments(arguments, arguments.provisioner)
    pool = open_pool(arguments.provisioner, images=images, machines=machines, progress=tell)
    with contextlib.ExitStack() as stack:
        stack.callback(pool.leave)
        pool.provisioner.expect([spec])
        variant = pool.resolution.resolve(spec, switched=False, client_of=[workload])
        key = CalibrationKey.of(variant, workload, pool.provisioner)
        if arguments.again:
            key.path.unlink(missing_ok=True)
        waits_for = f"another process that calibrates {key}"
        key.path.parent.mkdir(parents=True, exist_ok=True)
        with cache.hold_file(key.path.with_name(f"{key.path.name}.lock"), progress=tell, waits_for=waits_for):
            fresh = FreshPairs(variant, workload, pool)
            plan = CalibrationPlan(arguments.pairs, arguments.rounds, seconds)
            try:
                run_plan(key, fresh, plan, metric([workload]), progress=tell)
            except KeyboardInterrupt:
                _show(key, arguments.pairs, workload)
                raise
    _show(key, arguments.pairs, workload)
    return 0


def _show(key: CalibrationKey, pairs: int, workload: Workload) -> None:
    """Print the calibration so far. pairs: the planned number of pairs of clusters."""
    print("\n".join(summary(calibrations.read(key), pairs, metric([workload]))))


def _workload(text: str, threads: int | None, *, open_loop: bool) -> Workload:
    """The workload of the options. Raises ConfigError for an open loop of a workload that has none."""
    workload = workload_of(text, threads)
    if not open_loop:
        return workload
    if not isinstance(workload, OpenLoop):
        others = "sysbench:SCRIPT, tpcc or SQL files"
        raise ConfigError(f"--open-loop: {text} has no arrival rate; measure latencies with {others}")
    changed: Any = workload
    return cast("Workload", dataclasses.replace(changed, rate=OPEN_LOOP))


@dataclasses.dataclass(frozen=True)
class CalibrationPlan:
    """The extent of a calibration."""

    pairs: int
    """Number of pairs of clusters."""

    rounds: int | None = None
    """Maximum of rounds of each cluster; None for ROUNDS, or for as many as the time allows."""

    seconds: float | None = None
    """Seconds of all pairs with the starts of their clusters; None for no limit."""

    @property
    def most_rounds(self) -> int:
        """The maximum of rounds of each cluster."""
        return self.rounds or (ROUNDS if self.seconds is None else LOOKS[-1])

    def share(self, used: float, done: int) -> float:
        """Seconds of the next pair of clusters: an equal part of the remaining time; infinite without a limit.

        used: seconds of the ``done`` pairs.
        """
        return math.inf if self.seconds is None else max(0.0, self.seconds - used) / (self.pairs - done)


def _check(pairs: int, rounds: int | None, seconds: float | None) -> None:
    """Raise ConfigError for numbers that are too small for a calibration."""
    if pairs < LEAST_PAIRS or (rounds is not None and rounds < LEAST_ROUNDS):
        given = "" if rounds is None else f" --rounds {rounds}"
        raise ConfigError(
            f"--pairs {pairs}{given}: use {LEAST_PAIRS} or more pairs of clusters, and {LEAST_ROUNDS} rounds or "
            "more of each cluster"
        )
    if seconds is not None and seconds < LEAST_SECONDS * pairs:
        raise ConfigError(
            f"--seconds {seconds:g}: {pairs} pairs of clusters need {LEAST_SECONDS * pairs:g} s or more; a pair of "
            "three-node clusters needs about 20 s"
        )


class FreshPairs:
    """Gives pairs of fresh equal clusters of one variant, one pair after the other, as a round source."""

    def __init__(self, variant: Variant, workload: Workload, pool: Pool) -> None:
        self._variant, self._workload, self._pool = variant, workload, pool

    @contextlib.contextmanager
    def __call__(self, number: int) -> Iterator[RoundSource]:
        """A source whose two variants are two fresh clusters; they end with the context."""
        try:
            # Each pair has new numbers of instances, so its clusters are new.
            variants = [self._variant.on_instance(2 * number + side) for side in (0, 1)]
            testbed = Testbed(self._workload, variants, self._pool, "quick", tell, instances=1)
            if testbed.one_at_a_time:
                raise Unsupported(f"not enough memory for two clusters of {self._variant.spec}; try fewer --nodes")
            yield testbed
        finally:
            with self._pool.turns.building():
                self._pool.close()


def run_plan(
    key: CalibrationKey,
    fresh: Callable[[int], contextlib.AbstractContextManager[RoundSource]],
    plan: CalibrationPlan,
    metric: str,
    *,
    progress: Report,
) -> None:
    """Measure until the calibration of this key has so many pairs of clusters.

    fresh: gives a source of two fresh equal clusters. metric: the metric in the lines of progress. Each pair is written
    to the cache at once. A pair with void rounds is left out; three in a row raise its error. Raises ProvisionError if
    the cache is not writable, and KeyboardInterrupt after a line about what is kept.
    """
    known, failures, began, pairs = calibrations.read(key), 0, time.monotonic(), plan.pairs
    had = len(known.pairs)
    if had:
        progress(f"{key}: continuing with {quantity(had, 'pair')} of clusters from {known.date}")
    number = 0
    try:
        while len(known.pairs) < pairs:
            start = time.monotonic()
            share = plan.share(start - began, len(known.pairs))
            try:
                with fresh(number) as source:
                    found = difference_of(source, plan.most_rounds, start + share)
            except (Inconclusive, SeriesVoid) as error:
                failures += 1
                if failures >= FAILURES:
                    raise
                progress(f"a pair of clusters is left out: {error}")
                continue
            finally:
                number += 1
            failures = 0
            known = _keep(key, found)
            progress(_line(known, metric, pairs, time.monotonic() - began, len(known.pairs) - had))
    except KeyboardInterrupt:
        kept = f"{len(known.pairs)} of {pairs} pairs of clusters are kept"
        progress(f"interrupted: {kept}; the same command continues")
        raise


def _keep(key: CalibrationKey, found: Mapping[str, PairDifference]) -> Calibration:
    try:
        return calibrations.add(key, found)
    except OSError as error:
        raise ProvisionError(f"cannot keep the calibration in {key.path}: {error.strerror}") from error


def difference_of(source: RoundSource, rounds: int, until: float = math.inf) -> dict[str, PairDifference]:
    """The difference of the two clusters of a source by metric, as in ``calibrations.rounds_difference``.

    rounds: the rounds of each cluster; the last block may have more. until: the end of drawing, by ``time.monotonic``,
    but not before LEAST_ROUNDS. Raises SeriesVoid, and Inconclusive if the pair takes too long.
    """
    end = time.monotonic() + SECONDS * 2

    def over() -> str:
        return "" if time.monotonic() < end else f"a pair of clusters took more than {duration(SECONDS * 2)}"

    rules = Rules(secrets.randbits(63), budget=SECONDS, run_over=over, budget_name="of a pair of clusters")
    measurement = Measurement(source, rules)
    while measurement.pairs < rounds and (measurement.pairs < LEAST_ROUNDS or time.monotonic() < until):
        if why := measurement.drawing.stop_reason((0, 1)):
            raise Inconclusive(f"{source.load}: {why}, after {measurement.pairs} of {rounds} rounds of each cluster")
        measurement.drawing.draw((0, 1))
    measurement.drawing.check()
    first, second = measurement.rounds
    return calibrations.rounds_difference(first, second, source.load)


def _line(known: Calibration, metric: str, pairs: int, seconds: float, measured: int) -> str:
    """One line of progress after a pair of clusters."""
    done, found = len(known.pairs), known.differences(metric)
    left = f", about {duration((pairs - done) * seconds / measured)} left" if done < pairs else ""
    last, noise = percent(abs(found[-1]) if found else math.nan), percent(known.noise(metric))
    return (
        f"pair {done} of {pairs}: the clusters differ by {last} in {metric} (noise of the rounds so far {noise}){left}"
    )


def summary(known: Calibration, pairs: int, metric: str) -> Sequence[str]:
    """The lines about a calibration: first this metric, then the difference in each other one."""
    done, found = len(known.pairs), known.difference(metric)
    if found is None:
        default = f"it replaces the default after {LEAST_PAIRS - done} more"
        return [f"{known.key}: {done} of {pairs} pairs of clusters; {default}"]
    sizes = sorted(map(abs, known.differences(metric)))
    own = known.noise(metric)
    others = sorted({name for pair in known.pairs for name in pair} - {metric})
    shown = [f"{name} {percent(one.bound)}" for name in others if (one := known.difference(name)) and ":" not in name]
    return [
        f"{known.key}: equal clusters differ by {percent(found.bound)} at most in {metric} (1 in {ONE_IN}), from "
        f"{quantity(done, 'pair')} of clusters",
        f"half of the pairs differed by less than {percent(statistics.median(sizes))}, the largest by "
        f"{percent(sizes[-1])}; the noise of the rounds, a standard deviation of {percent(own)}, is subtracted",
        f"in other metrics: {', '.join(shown)}",
        f"kept in {known.key.path}",
    ]
