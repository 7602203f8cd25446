"""Record documents: claims, curves and ledgers as they are saved, one JSON line each.

- ``claims.jsonl`` has a ClaimDocument for each claim.
- ``curves.jsonl`` has a CurveDocument for each curve.
- Ledgers are large and have files of their own: the ``ledgers_file`` of a claim or curve has a LedgerDocument for each
  round with a ledger.

Every line has a format number. Raise FORMAT when a name is removed or changes its meaning. A name may be added without
raising it: readers ignore names that they do not know.

JSON has no infinity: a number that is not finite is the string "inf", "-inf" or "nan".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.claim import Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.measuring.evidence import SpecDocument
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.network import Delay
from pytest_dbcluster.reporting.documents.json_text import Format
from pytest_dbcluster.rounds import busy_machine
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round

FORMAT = 3
OLDER = {
    1: "it kept the seconds of the rounds and not the rounds",
    2: "its rounds were drawn in another order, and judged at other looks",
}
KNOWN = Format(FORMAT, OLDER)


@dataclasses.dataclass(frozen=True)
class RoundDocument(Round):
    """A Round without its ledger. ledger_line: the ledger's line in ``ledgers_file``, 1-based; None without one."""

    ledger_line: int | None = None


@dataclasses.dataclass(frozen=True)
class VoidBlock:
    """What did not count. block: its number, as in the rounds. reason: the variant that made it void, and why."""

    block: int
    reason: str


@dataclasses.dataclass(frozen=True)
class ClaimDocument:
    """A line of ``claims.jsonl``: the fields of a ClaimRecord, and values derived from them for other readers.

    began: the start of the first round's load, in seconds since 1970 (UTC); None without rounds. look: the number of
    the look that decided, 1-based; looks: the numbers of pairs at which this claim could be judged. baseline_first: for
    each pair of ``candidate`` and ``baseline`` whether the baseline ran first. rounds: by variant, the rounds that the
    claim used; the n-th of all variants are the n-th pair. seconds: by variant, the measured seconds of each of these
    rounds. values: by variant, the claim's metric for each of these rounds, in the unit in which it is shown. void: the
    rounds and blocks that did not count. void_rounds: the rounds of each of them. rounds_file, ledgers_file,
    chart_file, timeline_file: paths relative to the results directory; None where there is no such file. Fields with a
    default are missing in lines that were written before there were such fields.
    """

    format: int
    began: float | None
    look: int
    looks: tuple[int, ...]
    baseline_first: tuple[bool, ...]
    instances: int
    test: str
    text: str
    load: str
    candidate: str
    baseline: str
    metric: str
    verdict: Verdict
    message: str
    published: float | None
    asserted: bool
    measured_seconds: float
    wall_seconds: float
    seed: int
    release: str
    profile: str
    durability: Mapping[str, str]
    differences: Mapping[str, tuple[str, str]]
    fingerprint: Mapping[str, str]
    repeat: str
    published_seconds: Mapping[str, tuple[float, ...]]
    drains: Mapping[str, float]
    drained: float | None
    void: tuple[VoidBlock, ...]
    arrival_rate: ArrivalRate | None
    limited: str
    cluster_difference: ClusterDifference | None
    seconds: Mapping[str, tuple[float, ...]]
    values: Mapping[str, tuple[float, ...]]
    rounds: Mapping[str, tuple[RoundDocument, ...]]
    void_rounds: tuple[tuple[RoundDocument, ...], ...]
    rounds_file: str
    ledgers_file: str | None
    chart_file: str | None
    carry_over: CarryOver | None = None  # lines of earlier versions have none
    claim_id: str = ""
    kind: str = ""
    provisioner: str = ""
    storage: str = ""
    parity: str = ""
    specs: Mapping[str, SpecDocument] = dataclasses.field(default_factory=dict)
    sweep_field: str = ""
    sweep_value: int | float | str | bool | None = None
    timeline_file: str | None = None
    depends_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    run_id: str = ""
    data_fits: str = ""
    network: Mapping[str, tuple[Delay, ...]] = dataclasses.field(default_factory=dict)
    round_trips: RoundTripsTaken | None = None
    tries: int = 1
    others: busy_machine.OthersLoad | None = None


@dataclasses.dataclass(frozen=True)
class PointDocument:
    """A CurvePoint. value: the value of the curve's field; converted to text unless it is a number, text or None."""

    value: int | float | str | bool | None
    variant: str
    rounds: tuple[RoundDocument, ...]
    median: float
    low: float | None
    high: float | None


@dataclasses.dataclass(frozen=True)
class CurveDocument:
    """A line of ``curves.jsonl``: the fields of a CurveRecord.

    table_file, ledgers_file: paths relative to the results directory; None where there is no such file. Fields with a
    default are missing in older lines.
    """

    format: int
    test: str
    load: str
    field: str
    metric: str
    release: str
    profile: str
    seed: int
    fingerprint: Mapping[str, str]
    points: tuple[PointDocument, ...]
    notes: tuple[str, ...]
    table_file: str
    ledgers_file: str | None
    drawn: int = 0
    depends_on: Mapping[str, str] = dataclasses.field(default_factory=dict)
    baseline: str = ""
    number: int = 0


@dataclasses.dataclass(frozen=True)
class TypeDocument:
    """A LedgerEntry: the transactions of one type.

    attempts: by n (1-based), the number of transactions that ended at their n-th attempt. latencies: counts by bucket
    (``rounds/histogram.py``). Older lines have no unknown_there and unknown_gone.
    """

    attempts: Mapping[int, int]
    committed: int
    rolled_back: int
    failed: int
    unknown: int
    aborted_seconds: float
    latencies: Mapping[int, int]
    unknown_there: int = 0
    unknown_gone: int = 0


@dataclasses.dataclass(frozen=True)
class LedgerDocument:
    """The ledger of one round; its line also has the round's ``RunResult.figures``, by name.

    block, position: of the round, 0-based, as in the rounds of the claim. void: why the round does not count; empty
    when it counts. by_second: the successful operations of each second of the round. errors: (number of the server
    error, node, how often).
    """

    format: int
    block: int
    position: int
    variant: str
    void: str
    by_second: tuple[int, ...]
    errors: tuple[tuple[int, str, int], ...]
    types: Mapping[str, TypeDocument]
