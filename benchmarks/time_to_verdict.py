"""Wall time to a correct verdict that flush=2 beats the default: the plugin over the published method.

    python benchmarks/time_to_verdict.py [--runs 3] [--mode write] [--iterations 10]

Both begin and end without running servers; programs and templates are cached. Published method: for each variant a
cluster starts with the variant's options, and mysqlslap's published command line runs 10 iterations. With fewer
iterations (--iterations) the time of the call is scaled to 10. The plugin starts these clusters too, which favours the
published method. The published method gives two averages without an error probability; the plugin's verdict may be
wrong in 1 of 2000 cases.
"""

from __future__ import annotations

from benchmarks import ratios, stage
from fixtures.clusters import FLUSH_2, GALERA
from pytest_dbcluster import MySQLSlap
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.mysqlslap import WRITING
from pytest_dbcluster.workloads.workload import Setting

TARGET = 0.25
ITERATIONS = 10


def ours(mode: str, seed: int) -> tuple[float, Outcome]:
    """The seconds until the claim is answered and all servers have stopped, and the outcome."""
    outcomes: list[Outcome] = []

    def answer() -> None:
        with stage.clusters() as pool:
            measurement = Measurement(stage.stage_of(pool, MySQLSlap(mode), [GALERA, FLUSH_2]), Rules(seed))
            default, flush_2 = series_of(measurement)
            verdict = flush_2.beats(default).verdict
            stage.tell(f"ours: {verdict.outcome.value}, {verdict.ratio:.2f} after {verdict.pairs} pairs")
            outcomes.append(verdict.outcome)

    return ratios.seconds(answer), outcomes[0]


def published_seconds(mode: str, iterations: int) -> float:
    """The seconds of the published method, with the time of its calls scaled to 10 iterations."""
    calls: list[float] = []

    def both() -> None:
        with stage.clusters() as pool:
            testbed = stage.stage_of(pool, MySQLSlap(mode), [GALERA, FLUSH_2], "paper")
            averages = []
            for variant in testbed.variants:
                took, average = _call(pool, variant, MySQLSlap(mode, iterations=iterations))
                calls.append(took)
                averages.append(average)
            stage.tell(f"published: {averages[0]:.3f} s and {averages[1]:.3f} s, ratio {averages[0] / averages[1]:.2f}")

    return scale(ratios.seconds(both), sum(calls), iterations)


def _call(pool: Pool, variant: Variant, load: MySQLSlap) -> tuple[float, float]:
    """One call on a new cluster of the variant: its wall time, and the average that it reports, in seconds."""
    cluster = bring_up(variant.to_start(variant.options), pool.provisioner)
    try:
        setting = Setting(cluster, pool.client(variant.release), variant.release, "paper", stage.tell)
        average: list[float] = []
        return ratios.seconds(lambda: average.append(load.run(setting).seconds)), average[0]
    finally:
        cluster.close()
        pool.provisioner.give_back(cluster.hosts)


def scale(wall: float, calls: float, iterations: int) -> float:
    """The wall time scaled to 10 iterations; ``calls`` seconds of ``wall`` were spent on ``iterations`` iterations."""
    return wall - calls + calls * ITERATIONS / iterations


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 3, "verdicts of each kind")
    parser.add_argument("--mode", choices=sorted(WRITING), default="write")
    parser.add_argument("--iterations", type=ratios.positive, default=ITERATIONS, help="of each published call")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []

    def time_verdict() -> float:
        took, outcome = ours(arguments.mode, len(outcomes))
        outcomes.append(outcome)
        return took

    mine, theirs = ratios.alternate(
        arguments.runs, time_verdict, lambda: published_seconds(arguments.mode, arguments.iterations)
    )
    note = "" if arguments.iterations == ITERATIONS else f", scaled from {arguments.iterations} iterations"
    quotient = ratios.ratio(mine, theirs)
    print("| to a verdict | seconds |")
    print("|---|---|")
    print(f"| ours | {ratios.Figure.of(mine)} |")
    print(f"| published{note} | {ratios.Figure.of(theirs)} |")
    right = sum(outcome is Outcome.HOLDS for outcome in outcomes)
    print(f"\n{right} of {arguments.runs} of our verdicts are correct; ours / published {quotient}, ", end="")
    print(
        ratios.target_text(quotient.median, TARGET)
        if right == arguments.runs
        else "target not met: a verdict was not correct"
    )


if __name__ == "__main__":
    ratios.run(main)
