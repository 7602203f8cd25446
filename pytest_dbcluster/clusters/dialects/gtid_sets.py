"""GTIDs that one server has and another lacks, of MariaDB (``0-1-130``) and MySQL (``uuid:1-5:7``).

MariaDB's ``gtid_binlog_state`` has only the last GTID of each server in each domain. The servers of a domain share its
sequence numbers. So the GTIDs of a server that another one lacks are consecutive, since at any time one server writes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

MARIADB = re.compile(r"(\d+)-(\d+)-(\d+)")  # domain, server, sequence number
INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")


@dataclasses.dataclass(frozen=True)
class GtidInterval:
    """Consecutive GTIDs of one origin."""

    origin: str
    """MariaDB: domain and server id. MySQL: the UUID, with the tag if it has one."""

    first: int
    """The number of the first GTID."""

    last: int
    """The number of the last GTID."""

    @property
    def size(self) -> int:
        """The number of GTIDs."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        separator = "-" if MARIADB.fullmatch(f"{self.origin}-1") else ":"
        first, last = (f"{self.origin}{separator}{number}" for number in (self.first, self.last))
        return first if first == last else f"{first}..{last}"


def lacking(own: str, other: str) -> list[GtidInterval]:
    """The GTIDs of ``own`` that ``other`` lacks, both as a server returns them; empty for none."""
    if any(MARIADB.fullmatch(part) for part in _parts(own)):
        return _lacking_of_mariadb(_last_by_server(own), _last_by_server(other))
    known = list(_intervals(other))
    return [left for interval in _intervals(own) for left in _without(interval, known)]


def _parts(gtids: str) -> list[str]:
    return [part for part in "".join(gtids.split()).split(",") if part]


def _last_by_server(state: str) -> dict[tuple[str, str], int]:
    found = (MARIADB.fullmatch(part) for part in _parts(state))
    return {(match[1], match[2]): int(match[3]) for match in found if match}


def _lacking_of_mariadb(own: dict[tuple[str, str], int], other: dict[tuple[str, str], int]) -> list[GtidInterval]:
    lines = []
    for (domain, server), last in own.items():
        known = other.get((domain, server), 0)
        if last > known:
            earlier = [number for (of, _), number in own.items() if of == domain and number < last]
            lines.append(GtidInterval(f"{domain}-{server}", 1 + max([known, *earlier]), last))
    return lines


def _intervals(executed: str) -> Iterator[GtidInterval]:
    for part in _parts(executed):
        uuid, *words = part.lower().split(":")
        origin = uuid
        for word in words:
            if match := INTERVAL.fullmatch(word):
                yield GtidInterval(origin, int(match[1]), int(match[2] or match[1]))
            else:  # a tag: the intervals after it belong to it
                origin = f"{uuid}:{word}"


def _without(interval: GtidInterval, known: list[GtidInterval]) -> list[GtidInterval]:
    left = [interval]
    for one in known:
        if one.origin == interval.origin:
            left = [
                GtidInterval(part.origin, first, last)
                for part in left
                for first, last in (
                    (part.first, min(part.last, one.first - 1)),
                    (max(part.first, one.last + 1), part.last),
                )
                if first <= last
            ]
    return left
