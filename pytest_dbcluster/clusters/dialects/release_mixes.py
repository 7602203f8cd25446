"""Which versions the nodes of one cluster may have, as the vendors document it: data, and the functions that read it.

Each function gets the versions of all nodes in order. All nodes start from the data of the oldest version.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from pytest_dbcluster.releases import catalogue

Version = tuple[int, ...]
SERIES = 2  # numbers of a version that name its series
# A newer server, or replica, takes over from the one before it if no long-term series lies between the two.
# https://dev.mysql.com/doc/refman/8.4/en/upgrade-paths.html
# https://dev.mysql.com/doc/refman/8.4/en/replication-compatibility.html
# MariaDB skips series: https://mariadb.com/kb/en/replication-overview/ (cross-version replication compatibility)
LONG_TERM: Mapping[str, Sequence[Version]] = {"mysql": ((8, 0), (8, 4), (9, 7))}
# From here on a group accepts each patch version of its lowest series; before, a lower patch version does not join.
# https://dev.mysql.com/doc/refman/8.4/en/group-replication-upgrade.html
ANY_PATCH: Version = (8, 4)
# The members of a Galera cluster are of one series or of two neighbours, during a rolling upgrade.
# https://mariadb.com/docs/galera-cluster/galera-management/upgrading-galera-cluster/
# All of these have Galera 4, which does not join Galera 3; the oldest version that we accept has it too.
NEIGHBOURS: Mapping[str, Sequence[Version]] = {
    "mariadb": ((10, 5), (10, 6), (10, 11), (11, 4), (11, 8), (12, 3)),
}


@dataclasses.dataclass(frozen=True)
class NodeVersion:
    """The version of one node."""

    product: str
    """The product, such as ``mariadb``."""

    numbers: Version
    """The version as numbers, such as (10, 11, 19); at least those of its series."""

    @property
    def series(self) -> Version:
        """The series, such as (10, 11)."""
        return self.numbers[:SERIES]

    def __str__(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.numbers))}"


def replicas(nodes: Sequence[NodeVersion]) -> str:
    """Why a source, the first node, cannot have these replicas; empty if it can."""
    source, *others = nodes
    for number, replica in enumerate(others, 2):
        if replica.series < source.series:
            return (
                f"node{number} ({replica}) is older than its source node1 ({source}): a replica has the version of its "
                "source or a newer one"
            )
    return _data(nodes)


def galera(nodes: Sequence[NodeVersion]) -> str:
    """Why these nodes cannot be one Galera cluster; empty if they can."""
    return _data(nodes)


def galera_remark(nodes: Sequence[NodeVersion]) -> str:
    """What the vendor says of a Galera cluster of these nodes; empty for one series, and for two neighbours."""
    oldest, *_, newest = sorted(nodes, key=lambda node: node.series)
    known = NEIGHBOURS.get(oldest.product, ())
    between = [series for series in known if oldest.series < series < newest.series]
    if not between:
        return ""
    skipped = ", ".join(".".join(map(str, series)) for series in between)
    return (
        f"{oldest} and {newest} in one Galera cluster: the vendor validates neighbouring series only, and {skipped} "
        "lies between"
    )


def group(nodes: Sequence[NodeVersion], *, multi_primary: bool = False) -> str:
    """Why these members cannot join one group in this order; empty if they can."""
    first, *others = nodes
    for number, member in enumerate(others, 2):
        one, other = _join_versions(member, first)
        if one < other:
            return (
                f"node{number} ({member}) is older than node1 ({first}): a member does not join a group whose lowest "
                "version is newer; name the oldest release first"
            )
        if multi_primary and one > other:
            return "the newer members of a multi-primary group accept no writes; use the single-primary mode"
    return _data(nodes)


def _join_versions(member: NodeVersion, first: NodeVersion) -> tuple[Version, Version]:
    """The versions that decide whether a member joins: the series, and before ANY_PATCH the known patch numbers too."""
    known = min(len(member.numbers), len(first.numbers))
    length = known if max(member.series, first.series) < ANY_PATCH else SERIES
    return member.numbers[:length], first.numbers[:length]


def _data(nodes: Sequence[NodeVersion]) -> str:
    """Why a server of the newest version cannot take over the data of the oldest one; empty if it can."""
    products = list(dict.fromkeys(node.product for node in nodes))
    if len(products) > 1:
        return f"the nodes of a cluster have one product, not {' and '.join(products)}"
    ordered = sorted(nodes, key=lambda node: node.numbers)
    long_term = LONG_TERM.get(catalogue.upstream(products[0]), ())
    for older, newer in itertools.combinations(ordered, 2):
        if between := [series for series in long_term if older.series < series < newer.series]:
            skipped = ".".join(map(str, between[0]))
            return f"{newer} is more than one step after {older}: {products[0]} {skipped} lies between"
    return ""
