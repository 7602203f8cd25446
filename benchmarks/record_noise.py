"""Records rounds of one workload on one unchanged cluster, as a trace for noise_replay.py.

    python benchmarks/record_noise.py [--mode write] [--runs 2000] [--trace reports/latest/noise-write.json]

Saves every 50 rounds, and at Ctrl-C. An existing trace is continued up to --runs rounds; a trace of another workload or
machine is refused. Rounds run as in claims: reset, settle, then measure. Ten rounds before the first one, and before
each continuation, are dropped.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from benchmarks import ratios, stage
from fixtures.clusters import GALERA
from pytest_dbcluster import ConfigError, MySQLSlap
from pytest_dbcluster.reporting.recording import fingerprint
from pytest_dbcluster.workloads.mysqlslap import MODES

SAVE_EVERY = 50
WARM_UPS = 10


class Trace(TypedDict):
    """The file: ``rounds`` in seconds, ``begins`` with the 0-based rounds at which a recording started or continued."""

    workload: str
    recorded: str
    rounds: list[float]
    begins: list[int]
    fingerprint: dict[str, str]


def open_trace(path: Path, workload: str, machine: dict[str, str]) -> Trace:
    """The trace to continue, or a new trace. Raises ConfigError for a trace of another workload or machine."""
    if not path.exists():
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Trace(workload=workload, recorded=now, rounds=[], begins=[], fingerprint=machine)
    try:
        trace: Trace = json.loads(path.read_text(encoding="utf-8"))
        theirs = {"workload": trace["workload"], **trace["fingerprint"]}
        trace["rounds"], trace["begins"] = list(trace["rounds"]), list(trace["begins"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is not a trace of rounds: {error!r}") from None
    ours = {"workload": workload, **machine}
    differ = [f"{name} {theirs.get(name)} and not {value}" for name, value in ours.items() if theirs.get(name) != value]
    if differ:
        raise ConfigError(f"{path} cannot be continued; it holds {', '.join(differ)}")
    return trace


def save(path: Path, trace: Trace) -> None:
    """Write the trace atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps(trace), encoding="utf-8")
    fresh.replace(path)


def record(trace: Trace, rounds: int, draw: Callable[[], float], keep: Callable[[], None]) -> None:
    """Run rounds until the trace has ``rounds`` of them; save it every 50 rounds and whenever it ends."""
    began, first = time.monotonic(), len(trace["rounds"])
    trace["begins"].append(first)
    try:
        while len(trace["rounds"]) < rounds:
            trace["rounds"].append(draw())
            done = len(trace["rounds"])
            if done % SAVE_EVERY == 0:
                keep()
            if done - first == WARM_UPS or done % SAVE_EVERY == 0:
                left = (time.monotonic() - began) / (done - first) * (rounds - done)
                stage.tell(f"{done} of {rounds} rounds, about {left / 60:.0f} min to go")
    finally:
        keep()


def main() -> None:
    """Reads the command line and records."""
    parser = ratios.arguments(__doc__, 2000, "rounds of the complete trace")
    parser.add_argument("--mode", choices=MODES, default="write")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="default reports/latest/noise-MODE.json")
    arguments = parser.parse_args()
    path = arguments.trace or stage.ROOT / "reports" / "latest" / f"noise-{arguments.mode}.json"
    load = MySQLSlap(arguments.mode)
    trace = open_trace(path, str(load), {**fingerprint({}), "release": stage.server().version, "cluster": str(GALERA)})
    if len(trace["rounds"]) < arguments.runs:
        with stage.clusters() as pool:
            testbed = stage.stage_of(pool, load, [GALERA])
            stage.blocks(testbed, WARM_UPS - 1)
            record(
                trace,
                arguments.runs,
                lambda: testbed.round(0, block=len(trace["rounds"]), position=0).seconds,
                lambda: save(path, trace),
            )
            testbed.check()
    print(f"{path}: {len(trace['rounds'])} rounds; python benchmarks/noise_replay.py {path}")


if __name__ == "__main__":
    ratios.run(main)
