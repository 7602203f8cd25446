"""What a claim's message says of the variants: their hosts, their shapes, and the variables on which they differ."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dbcluster.formatting import counted
from pytest_dbcluster.spec import ClusterSpec, HostNeeds

SHOWN = 20  # of the variables that differ; those of two vendors are hundreds


def hosts_line(needs: Mapping[str, HostNeeds]) -> list[str]:
    """One line: what each variant's hosts are limited to; none where nobody asked for anything."""
    said = {name: str(one) or "no limits" for name, one in needs.items()}
    if not any(map(str, needs.values())):
        return []
    if len(set(said.values())) == 1:
        return [f"each node's host: {next(iter(said.values()))}"]
    return [f"each node's host: {'; '.join(f'{name} {words}' for name, words in said.items())}"]


def shapes_line(specs: Mapping[str, ClusterSpec]) -> list[str]:
    """One line: the nodes of each variant and the proxy before them; none where all are of one shape."""
    said = {name: f"{counted(one.nodes, 'node')} behind {one.proxy or 'no proxy'}" for name, one in specs.items()}
    if len(set(said.values())) == 1:
        return []
    return [f"clusters: {', '.join(f'{name} {words}' for name, words in said.items())}"]


def differing_line(baseline: str, candidate: str, differ: Mapping[str, tuple[str, str]]) -> str:
    """One line: the effective variables on which two variants differ, and their values; of many the first."""
    said = [f"{name}: {old} -> {new}" for name, (old, new) in differ.items()]
    rest = f", and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
    return f"variables that differ ({baseline} -> {candidate}): {', '.join(said[:SHOWN]) or 'none'}{rest}"
