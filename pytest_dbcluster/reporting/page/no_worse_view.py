"""The answer of ``dbcluster compare`` from its results: one sentence, one table, and what differs in effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.reporting.documents.run_document import BROKEN, CUT_SHORT
from pytest_dbcluster.reporting.page import summary
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import no_worse
from pytest_dbcluster.reporting.tables.no_worse import ComparedRow, ComparedWorkload, EffectDifferences

START = no_worse.test_of("")
COLUMNS = ("", "metric", "", "", "", "verdict")  # for headings that the terminal leaves empty
NOT_BEGUN = "other workloads"


@dataclasses.dataclass(frozen=True)
class NoWorseView:
    """The answer of one comparison."""

    sentence: str
    """The answer in words."""

    columns: tuple[str, ...]
    """The heading of each column of ``rows``."""

    rows: tuple[tuple[ComparedRow, str], ...]
    """The rows of ``no_worse.rows``, each with the address of its claim in the page; empty without details."""

    remarks: tuple[str, ...]
    """The remarks below the rows."""

    differences: EffectDifferences
    """The differences of the running servers."""


def view(source: Source, keys: Mapping[tuple[str, str], str]) -> NoWorseView | None:
    """The answer of a comparison; None for a test run, for races, and before the first answer.

    keys: by test and metric, the address of a claim in the page.
    """
    if not source.claims or not all(record.test.startswith(START) for record in source.claims):
        return None
    if any(record.standings for record in source.claims):
        return None
    first = source.claims[0]
    names = first.baseline, first.candidate
    compared = workloads(source)
    known = next((record for record in source.claims if record.durability), first)
    return NoWorseView(
        sentence=no_worse.sentence(compared, names),
        columns=tuple(column or name for column, name in zip(no_worse.columns(names), COLUMNS, strict=True)),
        rows=tuple(
            (row, keys.get((no_worse.test_of(row.workload), row.claimed), "")) for row in no_worse.rows(compared)
        ),
        remarks=tuple(no_worse.remarks(compared)),
        differences=no_worse.differences(known.differences, known.durability, names),
    )


def workloads(source: Source) -> list[ComparedWorkload]:
    """The workloads of a comparison in the order of its run, then one item for those not begun."""
    run = source.run
    by_test: dict[str, list[ClaimRecord]] = {}
    for record in source.claims:
        by_test.setdefault(record.test, []).append(record)
    tests = {test.test: test for test in run.tests} if run else {}
    found = []
    for name in dict.fromkeys([*tests, *by_test]):
        test = tests.get(name)
        ended = test is not None and test.outcome != CUT_SHORT
        reason = test.reason if test and ended else ""
        made = _workload(name.removeprefix(START), by_test.get(name, ()), reason)
        found.append(dataclasses.replace(made, failed=test is not None and test.outcome == BROKEN))
    if run and len(found) < run.selected:
        found.append(ComparedWorkload(NOT_BEGUN, None, reason="the comparison ended before them"))
    return found


def _workload(name: str, records: Sequence[ClaimRecord], reason: str) -> ComparedWorkload:
    guards = [record for record in records if record.asserted]
    throughput = next((record for record in guards if record.metric != no_worse.TAIL), None)
    if throughput is None:
        return ComparedWorkload(name, None, reason=reason or summary.NO_REASON[CUT_SHORT])
    closer = closer_of(throughput, records)
    p95 = next((record for record in guards if record.metric == no_worse.TAIL), None)
    again = remarks.try_line(throughput.tries, throughput.verdict.alpha)
    return ComparedWorkload(
        name,
        no_worse.of_record(throughput),
        None if closer is None else no_worse.of_record(closer),
        None if p95 is None else no_worse.of_record(p95),
        reason="" if p95 else reason,
        remark="; ".join(filter(None, [throughput.data_fits, *again])),
    )


def closer_of(guard: ClaimRecord, records: Sequence[ClaimRecord]) -> ClaimRecord | None:
    """The comparison without a claim that has all rounds of a guard; None for a claim of a test run."""
    if not guard.asserted or not guard.test.startswith(START):
        return None
    about = guard.test, guard.metric
    same = [one for one in records if not one.asserted and (one.test, one.metric) == about]
    return same[-1] if same else None
