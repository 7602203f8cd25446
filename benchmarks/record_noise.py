"""Records real rounds of one load on one unchanged cluster, as the trace that noise_replay.py reads.

    python benchmarks/record_noise.py [--mode write] [--runs 2000] [--trace reports/latest/noise-write.json]

Saves every 50 rounds, and at Ctrl-C. A trace that exists is continued up to --runs rounds; one of another load or
machine is refused. Rounds are drawn as claims draw them: reset, settle, then measure; ten before the first, and
before each continuation, are dropped.
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
from pytest_dbcluster.reporting.records import fingerprint
from pytest_dbcluster.workloads.mysqlslap import MODES

SAVE_EVERY = 50
WARM_UPS = 10


class Trace(TypedDict):
    """The file: ``rounds`` are seconds, ``begins`` the rounds at which a recording began or went on."""

    workload: str
    recorded: str
    rounds: list[float]
    begins: list[int]
    fingerprint: dict[str, str]


def opened(path: Path, workload: str, machine: dict[str, str]) -> Trace:
    """The trace to continue, or a new one. Raises ConfigError for one of something else."""
    if not path.exists():
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Trace(workload=workload, recorded=now, rounds=[], begins=[], fingerprint=machine)
    try:
        found: Trace = json.loads(path.read_text(encoding="utf-8"))
        theirs = {"workload": found["workload"], **found["fingerprint"]}
        found["rounds"], found["begins"] = list(found["rounds"]), list(found["begins"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is no trace of rounds: {error!r}") from None
    ours = {"workload": workload, **machine}
    differ = [f"{name} {theirs.get(name)} and not {value}" for name, value in ours.items() if theirs.get(name) != value]
    if differ:
        raise ConfigError(f"{path} cannot be continued; it holds {', '.join(differ)}")
    return found


def save(path: Path, trace: Trace) -> None:
    """Write the trace whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(json.dumps(trace), encoding="utf-8")
    fresh.replace(path)


def record(trace: Trace, rounds: int, draw: Callable[[], float], keep: Callable[[], None]) -> None:
    """Draw until the trace has so many rounds; keep it every 50 rounds and whatever ends it."""
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
    parser = ratios.arguments(__doc__, 2000, "rounds that the trace has at the end")
    parser.add_argument("--mode", choices=MODES, default="write")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="default reports/latest/noise-MODE.json")
    said = parser.parse_args()
    path = said.trace or stage.ROOT / "reports" / "latest" / f"noise-{said.mode}.json"
    load = MySQLSlap(said.mode)
    trace = opened(path, str(load), {**fingerprint(), "release": stage.server().version, "cluster": str(GALERA)})
    if len(trace["rounds"]) < said.runs:
        with stage.clusters() as pool:
            rooms = stage.stage_of(pool, load, [GALERA])
            stage.blocks(rooms, WARM_UPS - 1)
            record(
                trace,
                said.runs,
                lambda: rooms.round(0, block=len(trace["rounds"]), position=0).seconds,
                lambda: save(path, trace),
            )
            rooms.check()
    print(f"{path}: {len(trace['rounds'])} rounds; python benchmarks/noise_replay.py {path}")


if __name__ == "__main__":
    ratios.run(main)
