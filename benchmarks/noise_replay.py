"""Counts wrong verdicts on recorded noise: claims that compare a server with itself, replayed from a trace.

    python benchmarks/noise_replay.py trace.json ... [--experiments 3000] [--effect 0.10] [--limit 0.001]

A trace is one JSON object with consecutive rounds of one workload on one unchanged server, in seconds:
{"workload": "write", "recorded": "2026-02-03T04:05:06Z", "rounds": [0.412, ...], "fingerprint": {...}}
An experiment takes a window of consecutive rounds at a random offset, assigns the rounds of each block to two variants
at random, and evaluates the claims. Nothing differs, so every failed claim is wrong, and so is every ``beats`` that
holds. --effect makes the candidate's rounds faster by that fraction; the table then shows the verdicts. The exit status
is 1 if a rate of wrong verdicts is significantly above --limit.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.block_order import blocks
from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict
from pytest_dbcluster.claims.kinds import beats, no_slower_than, same_as
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.verdict import Terms, replay

CLAIMS = (beats(), no_slower_than(0.05), same_as(0.10))
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Trace:
    """Consecutive rounds of one workload in seconds, with the date of the recording and the machine's fingerprint."""

    workload: str
    recorded: str
    rounds: tuple[float, ...]
    fingerprint: dict[str, object]


def read_trace(path: Path) -> Trace:
    """The trace in a file. Raises SystemExit with the file name if the file is not a trace."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        rounds = tuple(map(float, raw["rounds"]))
        trace = Trace(str(raw["workload"]), str(raw["recorded"]), rounds, dict(raw.get("fingerprint", {})))
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{path} is not a trace of rounds: {error!r}")
    if len(rounds) < 2 * critical_values.LOOKS[0] or not all(0 < seconds < math.inf for seconds in rounds):
        sys.exit(f"{path}: a trace needs at least {2 * critical_values.LOOKS[0]} rounds of more than 0 s, each finite")
    return trace


def draw(times: Sequence[float], seed: int, effect: float) -> Pairs:
    """The pairs of two variants that consecutive rounds are assigned to, as a measurement with this seed would.

    times: log seconds of each round. effect: the fraction by which the candidate is faster. A last block without
    enough rounds is left out.
    """
    placed: list[tuple[float, float, bool]] = []
    begin = 0
    for block in blocks(2, seed):
        rounds = times[begin : begin + len(block.order)]
        begin += len(block.order)
        if len(rounds) < len(block.order):
            break
        by_pair = {
            (pair, variant): place for place, (pair, variant) in enumerate(zip(block.pairs, block.order, strict=True))
        }
        for pair in range(block.length):
            baseline, candidate = by_pair[pair, 0], by_pair[pair, 1]
            placed.append((-rounds[candidate], -rounds[baseline], baseline < candidate))
    candidates, baselines, baseline_first = zip(*placed, strict=True)
    gain = math.log1p(effect)
    return Pairs(tuple(speed + gain for speed in candidates), baselines, baseline_first)


def replay_windows(trace: Trace, claim: Claim, experiments: int, seed: int, effect: float) -> list[Verdict]:
    """The verdicts of one claim on ``experiments`` windows; a verdict that needs more rounds is out of budget."""
    generator = random.Random(seed)
    length = min(2 * critical_values.LOOKS[-1], len(trace.rounds))
    verdicts = []
    times = [math.log(seconds) for seconds in trace.rounds]
    for _ in range(experiments):
        start = int(generator.random() * (len(times) - length + 1))
        pairs = draw(times[start : start + length], generator.getrandbits(32), effect)
        verdict = replay(claim, pairs, Terms(out_of_budget="end of the trace"))
        assert verdict is not None
        verdicts.append(verdict)
    return verdicts


def wrong(verdict: Verdict) -> bool:
    """Whether a verdict about two equal variants is wrong."""
    if verdict.outcome is Outcome.FAILS:
        return True
    return verdict.outcome is Outcome.HOLDS and not verdict.claim.guard


def at_most(count: int, of: int, rate: float) -> float:
    """The probability of at most ``count`` events in ``of`` trials, each with probability ``rate``."""
    if rate <= 0 or rate >= 1:
        return float(rate <= 0 or count >= of)
    odds, none = math.log(rate) - math.log1p(-rate), of * math.log1p(-rate)
    ways = (math.lgamma(of + 1) - math.lgamma(k + 1) - math.lgamma(of - k + 1) for k in range(count + 1))
    return min(1.0, math.fsum(math.exp(way + k * odds + none) for k, way in enumerate(ways)))


def upper_bound(count: int, of: int) -> float:
    """The rate above which ``count`` events or fewer have a probability under 5 % (one-sided Clopper-Pearson, 1934)."""
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        low, high = (rate, high) if at_most(count, of, rate) > 1 - CONFIDENCE else (low, rate)
    return high


def report(trace: Trace, experiments: int, seed: int, effect: float) -> Iterator[tuple[int, str]]:
    """For each claim: the number of wrong verdicts, and the table line."""
    cv = statistics.stdev(trace.rounds) / statistics.fmean(trace.rounds)
    for claim in CLAIMS:
        verdicts = replay_windows(trace, claim, experiments, seed, effect)
        holds, fails = (
            100 * sum(verdict.outcome is outcome for verdict in verdicts) / experiments
            for outcome in (Outcome.HOLDS, Outcome.FAILS)
        )
        pairs = statistics.fmean(verdict.pairs for verdict in verdicts)
        count = sum(map(wrong, verdicts)) if not effect else 0
        errors = "-" if effect else f"{count} (<= {100 * upper_bound(count, experiments):.2f} %)"
        rounds = f"{len(trace.rounds)}, CV {100 * cv:.1f} %"
        asked = f"{claim.kind} {claim.margin:g}"
        answers = f"{holds:.1f} / {fails:.1f}"
        yield count, f"| {trace.workload} | {rounds} | {asked} | {errors} | {answers} | {pairs:.1f} |"


def main() -> int:
    """Reads the command line and prints the table; returns the exit status, 1 if the limit was exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--experiments", type=int, default=3000, help="windows per trace and claim")
    parser.add_argument("--effect", type=float, default=0.0, help="make the candidate faster by this fraction")
    parser.add_argument("--limit", type=float, default=0.001, help="the promised rate of wrong verdicts")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    kept = True
    print(f"{arguments.experiments} experiments, effect {arguments.effect:+.0%}, seed {arguments.seed}\n")
    print("| workload | rounds | claim | wrong (95 % bound) | holds / fails % | mean pairs |")
    print("|---|---|---|---|---|---|")
    for trace in map(read_trace, arguments.traces):
        for count, line in report(trace, arguments.experiments, arguments.seed, arguments.effect):
            print(line, flush=True)
            above = 1 - at_most(count - 1, arguments.experiments, arguments.limit) if count else 1.0
            kept = kept and above >= 1 - CONFIDENCE
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
