"""The load generator: how much CPU it used, and which verdicts are valid if it was the bottleneck.

A load generator at its limit measures its own speed instead of the servers'. That limit moves the ratio of two variants
towards 1 and never past 1. So without the limit, a ratio above 1 would be as large or larger. A ratio below 1 would be
as small or smaller. A ratio that could be 1 says nothing about the servers.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster.claims.claim import Outcome, Verdict
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.rounds.round import LoadHost, Round, RunResult

BUSY = 0.9  # share of the measured time that a thread is on a CPU; above it the thread delays its next operation
SHARE = 0.8  # share of the cores that the load generator may use
CORES = "client_cores"  # sample: the number of these cores
USED = "cpu_client"  # sample: cores used by a tool that does not count its own CPU time
PYTEST = "cpu_plugin"  # sample: cores used by pytest itself
NONE = 0.005  # below so many cores, no tool has run: its start uses more


def limit(done: Round) -> str:
    """Why the load generator, and not the servers, limited the speed of a round; empty if it did not.

    It is the limit in two cases: its busiest thread was on a CPU 90 % of the time, or it used 80 % of its cores.
    Inside pytest the limit is 90 % of one core, because Python runs one thread at a time. If several hosts divide the
    workload, each machine is checked: a machine without free cores limits its part, even if the others are idle.
    """
    machines = [(_on(hosts), *figures) for hosts in _machines(done.outcome) for figures in [_figures(hosts, done)]]
    alone = ("", done.outcome.busiest or 0.0, used_cores(done) or 0.0, done.samples.get(CORES, math.inf))
    if (own := _inside_of_pytest(done)) is not None and own >= BUSY:
        return f"the load generator runs inside pytest, which used {own:.2f} of the one core that Python can use"
    for where, busiest, used, cores in machines or [alone]:
        if busiest >= BUSY:
            return f"a thread of the load generator{where} was on a CPU for {100 * busiest:.0f} % of the time"
        if used >= SHARE * cores:
            return f"the load generator{where} used {used:.2g} of its {quantity(cores, 'core')}"
    return ""


def cores_of(outcome: RunResult) -> float | None:
    """The number of cores that all load hosts of a run may use; None for a run on one host."""
    machines = _machines(outcome)
    return sum(hosts[0].cores for hosts in machines) if machines else None


def _machines(outcome: RunResult) -> list[list[LoadHost]]:
    """The hosts that divided a run, by machine."""
    machines: dict[str, list[LoadHost]] = {}
    for host in outcome.load_hosts:
        machines.setdefault(host.machine, []).append(host)
    return list(machines.values())


def _on(hosts: Sequence[LoadHost]) -> str:
    return f" on {' and '.join(host.name for host in hosts)}"


def _figures(hosts: Sequence[LoadHost], done: Round) -> tuple[float, float, float]:
    """The busiest thread of one machine, the cores that it used, and the cores that it may use."""
    used = sum(host.client_seconds for host in hosts) / done.seconds
    return max(host.busiest for host in hosts), used, hosts[0].cores


def line(rounds: Mapping[str, Sequence[Round]]) -> list[str]:
    """A line with the cores that the load generator used and may use, as medians; none if not known.

    For a load generator inside pytest, the line has the cores of pytest, which also does other work. If several hosts
    divided the workload, a line before it lists them.
    """
    variants = [f"{name} {usage}" for name, series in rounds.items() if (usage := _usage(series))]
    hosts = max((done.outcome.load_hosts for series in rounds.values() for done in series), key=len, default=())
    divided = [f"load from {len(hosts)} hosts: {', '.join(host.name for host in hosts)}"] if hosts else []
    return [*divided, f"load generator: {'; '.join(variants)}"] if variants else divided


def _usage(rounds: Sequence[Round]) -> str:
    used = [count for done in rounds if (count := used_cores(done)) is not None]
    cores = [done.samples[CORES] for done in rounds if CORES in done.samples]
    if not used or not cores:
        return ""
    if len(own := [count for done in rounds if (count := _inside_of_pytest(done)) is not None]) > len(rounds) / 2:
        return f"inside pytest, which used {statistics.median(own):.2f} of {quantity(statistics.median(cores), 'core')}"
    busiest = [done.outcome.busiest for done in rounds if done.outcome.busiest is not None]
    thread = f", busiest thread {100 * statistics.median(busiest):.0f} %" if busiest else ""
    return f"{statistics.median(used):.2f} of {quantity(statistics.median(cores), 'core')}{thread}"


def used_cores(done: Round) -> float | None:
    """Cores that the load generator used on average; None if not known.

    They come from the CPU time that the load generator counted, or from the system's figures of its process. The system
    counts hundredths of a second, so in a very short round its figure can exceed all cores.
    """
    if done.outcome.client_seconds is not None:
        return done.outcome.client_seconds / done.seconds
    used = done.samples.get(USED)
    return None if used is None else min(used, done.samples.get(CORES, math.inf))


def mark(rounds: Mapping[str, Sequence[Round]]) -> str:
    """Say which variants had the load generator as bottleneck in most of their rounds; empty if no variant had."""
    limited = []
    for name, series in rounds.items():
        limits = [done.limited for done in series if done.limited]
        if 2 * len(limits) > len(series):
            limited.append(f"{name}, {len(limits)} of {len(series)} rounds ({limits[0]})")
    return f"the load generator is the bottleneck: {'; '.join(limited)}" if limited else ""


def discount(verdict: Verdict, bottleneck: str) -> Verdict:
    """The verdict, or an inconclusive one if the bottleneck may hide the difference that decides the claim.

    ``bottleneck`` is the text of ``mark``.
    """
    if not bottleneck or verdict.outcome is Outcome.INCONCLUSIVE or _stands(verdict):
        return verdict
    reason = f"{verdict.reason}, but {bottleneck}: this may hide the difference that decides the claim"
    return dataclasses.replace(
        verdict, outcome=Outcome.INCONCLUSIVE, reason=reason, needed_pairs=None, needed_margin=None
    )


def _stands(verdict: Verdict) -> bool:
    """Whether every ratio that is possible without the bottleneck gives the same verdict."""
    held = verdict.outcome is Outcome.HOLDS
    if verdict.claim.of_kind.composed:  # a limit moves the ratio of two ratios to either side
        return False
    limits = (verdict.decided_low, verdict.decided_high) if held else (verdict.low, verdict.high)
    low, high = (math.log(value) if value else -math.inf for value in limits)
    if low <= 0 <= high:
        return False
    low, high = (low, math.inf) if low > 0 else (-math.inf, high)
    lower_bound, upper_bound = verdict.claim.bounds
    if verdict.claim.of_kind.claims_nothing:
        return True
    if held:
        return lower_bound <= low and high <= upper_bound
    return high <= lower_bound or upper_bound <= low


def _inside_of_pytest(done: Round) -> float | None:
    """Cores that pytest used in a round, if its load generator was not a program; None otherwise, or if unknown."""
    used = done.samples.get(USED)
    if used is None or used >= NONE or done.outcome.client_seconds is not None:
        return None
    return done.samples.get(PYTEST)
