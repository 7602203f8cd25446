"""Health: the conditions under which a server accepts reads or writes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Health:
    """A statement, and the values in its result that allow reads or writes.

    If no values are required, every server that answers the statement is healthy.
    """

    statement: str = "SHOW GLOBAL STATUS LIKE 'uptime'"
    """Returns two columns, name and value."""

    reader: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The required values for reads, by name in lower case."""

    writer: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The required values for writes, by name in lower case."""

    def accepts(self, role: str, seen: Mapping[str, str]) -> bool:
        """Whether a server with these values accepts ``reader`` or ``writer`` connections."""
        wanted: Mapping[str, str] = getattr(self, role)
        return all(seen.get(name) == value for name, value in wanted.items())
