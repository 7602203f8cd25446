"""Stored results of published measurements: ``docs/published/results/WORK.jsonl``, a line for each claim.

A line has only what a row of the page needs, so the files stay small. ``store`` takes the claims of a run: a claim that
is stored already is replaced.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from published_claims import PublishedClaim

from pytest_dbcluster import formatting, reasons
from pytest_dbcluster.claims import wording
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.json_text import FileLine
from pytest_dbcluster.reporting.documents.record_documents import ClaimDocument
from pytest_dbcluster.reporting.tables import closing

FORMAT = 1
KNOWN = json_text.Format(FORMAT, {}, again="store the results of a run again")
DIRECTORY = Path(__file__).parents[1] / "published" / "results"
# Facts of a fingerprint that say nothing about the speed of servers.
LEFT_OUT = ("python", "control driver")
UNNAMED = ("cpu", "memory")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredResult(FileLine):
    """One measured claim."""

    claim_id: str
    """As in ClaimRecord."""

    release: str
    """The release with its exact version, as in ClaimRecord."""

    measured: tuple[str, ...]
    """The ratio, candidate / baseline, as text; of an order those of its steps, slowest first."""

    interval: tuple[str, ...]
    """The interval of each ratio as text; for a single ratio the one that decided, with its level."""

    verdict: str
    """The verdict in one or two words."""

    reasons: tuple[str, ...]
    """The names of the reasons of an inconclusive verdict (``pytest_dbcluster.reasons``)."""

    pairs: int
    """The number of pairs of rounds."""

    began: float
    """When the first round began, in seconds since 1970 (UTC)."""

    profile: str
    """As in ClaimRecord."""

    provisioner: str
    """As in ClaimRecord."""

    machine: str
    """The machine of the servers, as text."""

    @property
    def key(self) -> tuple[str, str]:
        """What identifies a line: the claim, and its releases without exact versions."""
        names = [release.partition(" ")[0] for release in self.release.split(", ")]
        return self.claim_id, ", ".join(names)


def result_of(document: ClaimDocument) -> StoredResult:
    """The stored form of a claim."""
    verdict, word = document.verdict, closing.word(document)
    steps = verdict.neighbours
    return StoredResult(
        format=FORMAT,
        claim_id=document.claim_id,
        release=document.release,
        measured=tuple(map(wording.ratio, steps or [verdict])),
        interval=tuple(map(wording.interval, steps)) or (_interval(document),),
        verdict=word,
        reasons=tuple(reason.name for reason in reasons.find(verdict.reason)) if word == "inconclusive" else (),
        pairs=verdict.pairs,
        began=document.began or 0.0,
        profile=document.profile,
        provisioner=document.provisioner,
        machine=_machine(document.fingerprint),
    )


def _interval(document: ClaimDocument) -> str:
    """The interval that decided, with its level: ``99.9 %: 1.18 .. 3.08``."""
    low, high, level = closing.deciding_interval(document)
    interval = formatting.interval(low, high, document.verdict.claim.limits)
    return interval if interval == formatting.NO_INTERVAL else f"{level}: {interval}"


def _machine(fingerprint: Mapping[str, str]) -> str:
    """The machine in one line: ``2 x CPU, 8.0 GiB, kernel 6.1``."""
    facts = {name: text for name, text in fingerprint.items() if name not in LEFT_OUT}
    return ", ".join(text if name in UNNAMED else f"{name} {text}" for name, text in facts.items())


def read(work: str, directory: Path = DIRECTORY) -> list[StoredResult]:
    """The stored results of a work; empty without a file. Raises ConfigError for a line that cannot be read."""
    path = directory / f"{work}.jsonl"
    if not path.exists():
        return []
    lines = enumerate(path.read_bytes().splitlines(keepends=True), 1)
    return [json_text.read(text, StoredResult, f"{path}, line {number}", KNOWN) for number, text in lines]


def store(
    results: Path, known: Sequence[PublishedClaim], directory: Path = DIRECTORY
) -> dict[str, tuple[int, int, int]]:
    """Store the claims of a results directory. Return for each work how many were added, replaced and removed.

    Claims that are not about a published measurement are left out. Stored claims that no suite makes any more are
    removed. known: the published claims of the suites. Raises ConfigError for a directory or line that cannot be read.
    """
    measured = [result_of(document) for document in schema.claim_documents(results, whole=False)]
    changed = {}
    for work in dict.fromkeys(claim.work for claim in known):
        order = [claim.claim_id for claim in known if claim.work == work]
        before = {result.key: result for result in read(work, directory)}
        new = {result.key: result for result in measured if result.claim_id in order}
        kept = {key: result for key, result in {**before, **new}.items() if key[0] in order}
        if kept == before:
            continue
        _write(directory / f"{work}.jsonl", sorted(kept.values(), key=lambda one: (order.index(one.key[0]), one.key)))
        replaced = sum(key in before and before[key] != result for key, result in new.items())
        changed[work] = (len(new.keys() - before.keys()), replaced, len(before.keys() - kept.keys()))
    return changed


def _write(path: Path, results: Iterable[StoredResult]) -> None:
    """Replace the file, so that an interrupted command leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(b"".join(map(json_text.encode, results)))
    new.replace(path)


def stored_lines(results: Path, known: Sequence[PublishedClaim], directory: Path = DIRECTORY) -> list[str]:
    """Store the claims of a results directory, as ``store`` does, and return a sentence for each changed file."""
    changed = store(results, known, directory)
    lines = [f"{directory / f'{work}.jsonl'}: {_counted(counts)}" for work, counts in changed.items()]
    return lines or [f"{results}: it has no published claim that is not stored"]


def _counted(counts: Sequence[int]) -> str:
    """How many claims were added, replaced and removed: ``1 claim added, 2 claims replaced``."""
    done = zip(counts, ("added", "replaced", "removed"), strict=True)
    return ", ".join(f"{formatting.quantity(number, 'claim')} {what}" for number, what in done if number)
