"""Clients that the servers turned away during a round, because they had no free connection.

A load generator that is turned away tries again and reports nothing. Its round then measures how long clients wait for
a connection, and not how fast the servers are. So a round in which a server turned a client away is void.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.rounds.counters import Reading

FULL = "connection_errors_max_connections"  # status of both vendors: refusals by max_connections
ABORTED = "aborted_connects"  # status: refusals by max_user_connections, and other failed connects
WORDS = re.compile(r"[^\n]*(?:too many connections|max_user_connections)[^\n]*", re.IGNORECASE)
ROOM = 10  # connections of the plugin, proxies and monitoring, beside those of the workload
MOST_SAID = 200  # characters of the workload's message


@dataclasses.dataclass(frozen=True)
class ConnectionLimits:
    """The connections that a node accepts at once."""

    node: str
    """Name of the node."""

    connections: int
    """Connections of all users (``max_connections``)."""

    of_user: int = 0
    """Connections of one user (``max_user_connections``); 0 for no separate limit."""

    def __str__(self) -> str:
        of_user = f", max_user_connections={self.of_user}" if self.of_user else ""
        return f"{self.node}: max_connections={self.connections}{of_user}"


def counts(before: Reading, after: Reading, names: Sequence[str] = (FULL, ABORTED)) -> list[int]:
    """How often these statuses counted a connection between two readings, by node; 0 if a node has no such status."""
    pairs = zip(before, after, strict=True)
    return [int(sum(now[name] - then[name] for name in names if name in then and name in now)) for then, now in pairs]


def reason(before: Reading, after: Reading, limits: Sequence[ConnectionLimits], clients: int, said: str = "") -> str:
    """Why a round in which servers turned connections away is void, and what to do; empty if they did not.

    - before, after: the statuses of each node.
    - limits: the limits of each node, in the same order.
    - clients: the number of clients of the workload; 0 if not known.
    - said: the message of a workload that failed.

    A failed connect has many causes, so it counts only on a node that limits the connections of a user.
    """
    full, aborted = counts(before, after, [FULL]), counts(before, after, [ABORTED])
    refused = {limit: full[number] or (aborted[number] if limit.of_user else 0) for number, limit in enumerate(limits)}
    refused = {limit: count for limit, count in refused.items() if count > 0}
    words = WORDS.search(said)
    if not refused and not words:
        return ""
    text = f"clients were turned away ({words[0].strip()[:MOST_SAID]})" if words else ""
    if refused:
        nodes = ", ".join(f"{count} by {limit}" for limit, count in refused.items())
        text = f"{quantity(sum(refused.values()), 'connection')} turned away ({nodes})"
    opens = f"; the workload has {quantity(clients, 'client')}" if clients else ""
    value = f"max_connections={clients + ROOM} or more" if clients else "a larger max_connections"
    return f"{text}{opens}: set {value} and no lower max_user_connections, or use fewer clients"
