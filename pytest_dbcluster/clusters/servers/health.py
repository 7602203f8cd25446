"""Health: how a server says what it may be used for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Health:
    """A statement, and the answers that are wanted of it.

    statement: its answer is pairs of a name and a value. reader, writer: the values with which a server may take
    reads, and those with which it may take writes, by names in lower case. Where one is empty, a server that answers
    at all is well.
    """

    statement: str = "SHOW GLOBAL STATUS LIKE 'uptime'"
    reader: Mapping[str, str] = dataclasses.field(default_factory=dict)
    writer: Mapping[str, str] = dataclasses.field(default_factory=dict)
