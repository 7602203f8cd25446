"""How often are claims about options that do nothing wrong on a real server?

    python benchmarks/null_options.py [--runs 20] [--budget 20] [--load key|write]

Each run measures ten options together on one running server, as ``measure.factorial`` does. No statement of the loads
uses them. So ``beats`` is wrong whatever it decides, and ``same_as`` is wrong when it fails. The options of a run share
alpha.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence

from benchmarks import ratios, stage
from benchmarks.equal_variants import SHARED_TARGET, Count, claims_table
from pytest_dbcluster import ClusterSpec, MySQLSlap, ReleaseName
from pytest_dbcluster.errors import Inconclusive, SeriesVoid
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.drawing.levels import LevelPlan
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.factorial.effects import Effects
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.spec import DEFAULT_RELEASE
from pytest_dbcluster.testbed.options import levels
from pytest_dbcluster.testbed.options.level_testbed import LevelTestbed
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.workloads.workload import Workload

TOGETHER = 10
WITHIN = 0.05
LOADS: Mapping[str, Workload] = {mode: MySQLSlap(mode) for mode in ("key", "write")}
# Time-outs that nothing reaches, and limits of functions that no statement calls.
OPTIONS = {
    "lock_wait_timeout": (86400, 86399),
    "wait_timeout": (28800, 28799),
    "interactive_timeout": (28800, 28799),
    "net_retry_count": (10, 11),
    "max_connect_errors": (100, 101),
    "connect_timeout": (10, 11),
    "delayed_insert_timeout": (300, 301),
    "group_concat_max_len": (1048576, 1048575),
    "div_precision_increment": (4, 5),
    "max_sp_recursion_depth": (0, 1),
    "default_week_format": (0, 1),
    "slave_net_timeout": (60, 61),
    "deadlock_timeout_long": (50000000, 50000001),
    "expire_logs_days": (0, 1),
    "innodb_stats_persistent_sample_pages": (20, 21),
    "innodb_stats_transient_sample_pages": (8, 9),
    "innodb_lock_wait_timeout": (50, 51),
    "min_examined_row_limit": (0, 1),
    "max_prepared_stmt_count": (16382, 16381),
    "slow_launch_time": (2, 3),
}


def measure(pool: Pool, load: Workload, names: Sequence[str], budget: float, counts: Mapping[str, Count]) -> None:
    """Count the outcomes of the claims about these options. budget: the measured seconds."""
    spec = ClusterSpec("standalone").on_release(ReleaseName.parse(DEFAULT_RELEASE))
    options = levels.read({name: OPTIONS[name] for name in names})
    usual = pool.resolution.defaults(pool.resolution.resolve(spec))
    variants = [pool.resolution.resolve(one) for one in levels.specs(spec, options, usual)]
    testbed = LevelTestbed(options, load, variants, pool, "quick", stage.tell)
    rules = Rules(secrets.randbits(63), budget=budget)
    rules = dataclasses.replace(rules, alpha=rules.alpha / len(options))
    measurement = Measurement(testbed, rules, plan=LevelPlan())
    effects = Effects(measurement, options)
    for name in effects:
        asks: dict[str, Callable[[], Answer]] = {
            "same_as": functools.partial(effects[name].same_as, within=WITHIN),
            "beats": effects[name].beats,
        }
        for claim, ask in asks.items():
            try:
                counts[claim].add(claim, ask().verdict.outcome)
            except (Inconclusive, SeriesVoid) as error:
                counts[claim].void += 1
                stage.tell(f"{load}, {name}: {error}")
    wrong = sum(count.wrong for count in counts.values())
    stage.tell(f"{load}: {2 * measurement.pairs} rounds, {len(options)} options, {wrong} wrong so far")


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 20, "runs of ten options")
    parser.add_argument("--budget", type=float, default=20.0, metavar="S", help="measured seconds of each (default 20)")
    parser.add_argument("--load", choices=LOADS, default="key", help="the load (default key)")
    given = parser.parse_args()
    counts = {claim: Count() for claim in ("beats", "same_as")}
    groups = itertools.cycle([list(OPTIONS)[:TOGETHER], list(OPTIONS)[TOGETHER:]])
    with stage.clusters() as pool:
        try:
            for names in itertools.islice(groups, given.runs):
                measure(pool, LOADS[given.load], names, given.budget, counts)
        finally:
            print("\n".join(claims_table({given.load: counts}, SHARED_TARGET)), flush=True)


if __name__ == "__main__":
    ratios.run(main)
