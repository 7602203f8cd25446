"""Wall time to a verdict with rounds of a chosen length, over the time with rounds of 2 s.

    python benchmarks/round_length.py [--runs 5] [--workload read_write] [--claim flush|same]

Three Galera nodes keep running; each run makes the claim once with either length, alternating. The time is that of the
claim: warm-up, rounds, checks. ``flush`` claims that flush=2 beats the default, ``same`` that the default is no more
than 10 % slower than itself (a switch to an option of the same value). A verdict that is not ``holds`` is listed.
"""

from __future__ import annotations

import dataclasses

from benchmarks import ratios, stage
from fixtures.clusters import FLUSH_2, GALERA
from pytest_dbcluster import TPCC, SysBench
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.workloads.workload import Workload

TARGET = 1.0
LOADS: dict[str, SysBench | TPCC] = {
    "read_write": SysBench("oltp_read_write", to="writer"),
    "write_only": SysBench("oltp_write_only", to="writer"),
    "tpcc": TPCC(threads=8),
}
OTHERS = {"flush": FLUSH_2, "same": GALERA.with_options(lock_wait_timeout=86399).named("same")}


def claim(pool: Pool, load: Workload, kind: str, seed: int) -> tuple[float, Outcome]:
    """The seconds until the claim is answered on running clusters, and its outcome."""
    measurement = Measurement(stage.stage_of(pool, load, [GALERA, OTHERS[kind]]), Rules(seed))
    default, other = series_of(measurement)
    outcomes: list[Outcome] = []

    def answer() -> None:
        found = other.beats(default) if kind == "flush" else other.no_slower_than(default, by=0.1)
        verdict, length = found.verdict, measurement.drawing.pace.length
        outcomes.append(verdict.outcome)
        chosen = length.line if length else "rounds of 2 s"
        stage.tell(
            f"{verdict.outcome.value}, {verdict.ratio:.3f}, {verdict.pairs} pairs, sd {verdict.pair_sd:.3f}; {chosen}"
        )

    return ratios.seconds(answer), outcomes[0]


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "claims with each length")
    parser.add_argument("--workload", choices=LOADS, default="read_write")
    parser.add_argument("--claim", choices=OTHERS, default="flush")
    arguments = parser.parse_args()
    free: SysBench | TPCC = LOADS[arguments.workload]
    fixed = dataclasses.replace(free, seconds=2.0)
    seeds, missed = iter(range(1, 10**6)), {"chosen": 0, "2 s": 0}

    def time_claim(name: str, load: Workload) -> float:
        took, outcome = claim(pool, load, arguments.claim, next(seeds))
        missed[name] += outcome is not Outcome.HOLDS
        return took

    with stage.clusters() as pool:
        claim(pool, free, arguments.claim, 0)  # not measured: starts and populates the cluster
        mine, theirs = ratios.alternate(
            arguments.runs, lambda: time_claim("chosen", free), lambda: time_claim("2 s", fixed)
        )
    quotient = ratios.ratio(mine, theirs)
    print(f"| {arguments.workload}, {arguments.claim}: to a verdict | seconds | not held |")
    print("|---|---|---|")
    print(f"| rounds of a chosen length | {ratios.Figure.of(mine)} | {missed['chosen']} of {arguments.runs} |")
    print(f"| rounds of 2 s | {ratios.Figure.of(theirs)} | {missed['2 s']} of {arguments.runs} |")
    print(f"\nchosen / 2 s {quotient}, {ratios.target_text(quotient.median, TARGET)}")


if __name__ == "__main__":
    ratios.run(main)
