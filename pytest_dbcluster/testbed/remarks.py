"""Lines of a claim's message about the variants: their hosts, their shapes, and the variables that differ."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dbcluster.formatting import counted
from pytest_dbcluster.spec import ClusterSpec, HostNeeds

SHOWN = 20  # variables shown; two vendors differ in hundreds


def hosts_line(needs: Mapping[str, HostNeeds]) -> list[str]:
    """One line with the limits of each variant's hosts; empty where no variant has limits."""
    limits = {name: str(host_needs) or "no limits" for name, host_needs in needs.items()}
    if not any(map(str, needs.values())):
        return []
    if len(set(limits.values())) == 1:
        return [f"each node's host: {next(iter(limits.values()))}"]
    return [f"each node's host: {'; '.join(f'{name} {limit}' for name, limit in limits.items())}"]


def shapes_line(specs: Mapping[str, ClusterSpec]) -> list[str]:
    """One line with the number of nodes and the proxy of each variant; empty where all have the same."""
    shapes = {name: f"{counted(spec.nodes, 'node')} behind {spec.proxy or 'no proxy'}" for name, spec in specs.items()}
    if len(set(shapes.values())) == 1:
        return []
    return [f"clusters: {', '.join(f'{name} {shape}' for name, shape in shapes.items())}"]


def differing_line(baseline: str, candidate: str, differ: Mapping[str, tuple[str, str]]) -> str:
    """One line with the effective variables that differ between two variants, the first SHOWN with their values."""
    changes = [f"{name}: {old} -> {new}" for name, (old, new) in differ.items()]
    rest = f", and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return f"variables that differ ({baseline} -> {candidate}): {', '.join(changes[:SHOWN]) or 'none'}{rest}"
