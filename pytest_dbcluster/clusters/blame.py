"""Blame: why a load could not be run to its end, in the words of its tool and of the servers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster.errors import WorkloadError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

MOST_LOGGED = 5
MOST_SAID = 1000  # characters


def failed(nodes: Iterable[Node], what: str, words: str) -> WorkloadError:
    """The error of a load that failed: what ended how and where, its tool's words, and what servers logged as errors.

    Lines that several clients said alike are one. Raises NodeDied when a server has died: that is the cause then.
    """
    nodes = list(nodes)
    for node in nodes:
        node.survived()
    said = "\n".join(dict.fromkeys(words.strip().splitlines()))
    logged = [
        f"\n    {node.name} logged: {line}" for node in nodes for line in _distinct(node.new_errors())[:MOST_LOGGED]
    ]
    return WorkloadError(f"{what}: {said[-MOST_SAID:] or 'it said nothing'}" + "".join(logged))


def _distinct(lines: Sequence[str]) -> list[str]:
    """Lines of an error log without their times; those of several threads that say the same are one."""
    return list(dict.fromkeys(line[line.find("[ERROR]") :] for line in lines))
