"""The effects of options: one table for each measurement of options, the largest effect first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims import wording
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import states
from pytest_dbcluster.reporting.tables.layout import Row, TableBlock


def blocks(records: Sequence[ClaimRecord]) -> list[TableBlock]:
    """A table for each test, workload and release that measured effects; empty without any."""
    groups: dict[tuple[str, str, str], dict[tuple[str, ...], ClaimRecord]] = {}
    for record in records:
        if not record.verdict.claim.of_kind.paired:
            group = groups.setdefault((record.test, record.load, record.release), {})
            levels = tuple(record.rounds)
            if record.asserted or levels not in group:
                group[levels] = record
    return [_block(load, list(group.values())) for (_, load, _), group in groups.items()]


def _block(load: str, records: Sequence[ClaimRecord]) -> TableBlock:
    columns = ("option", f"ratio ({wording.level(records[0].verdict)})", "verdict", "pairs")
    rows = [
        Row((name_of(record), wording.estimate(record.verdict), _word(record), str(record.verdict.pairs)))
        for record in sorted(records, key=lambda record: (len(record.rounds), -size(record)))
    ]
    return TableBlock(f"effects of options, {load}", columns, tuple(rows))


def name_of(record: ClaimRecord) -> str:
    """The levels of an effect, ``sync_binlog: 1 -> 0``; of an interaction those of both options."""
    levels = list(record.rounds)
    pairs = zip(levels[1::2], levels[::2], strict=True)
    return " with ".join(f"{first.replace('=', ': ', 1)} -> {second.partition('=')[2]}" for first, second in pairs)


def size(record: ClaimRecord) -> float:
    """The size of an effect: the absolute log ratio; 0 if it is unknown."""
    ratio = record.verdict.ratio
    return abs(math.log(ratio)) if 0 < ratio < math.inf else 0.0


def _word(record: ClaimRecord) -> str:
    kind = record.verdict.claim.of_kind
    return states.state(record) if record.asserted else kind.word(record.verdict.outcome)
