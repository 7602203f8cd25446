"""Earlier tries of a claim: measurements that looked at their rounds, and decided nothing.

A claim that was interrupted after a look, or that ended inconclusive, is often asked again. Each try draws new rounds
and has the full chance of a wrong verdict. So the chance that any of k tries is wrong is up to k times as large. Each
try is a file in the cache from its first look on, so a killed run counts too. A verdict removes the tries of its claim;
files older than ``DAYS`` are removed. Each file has a unique name, so runs at the same time need no lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import time
import uuid
from pathlib import Path

from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.reporting.resume import digests
from pytest_dbcluster.reporting.resume.recall import Recall
from pytest_dbcluster.system import cache

FOLDER = "tries"
DAYS = 7
MOST = 20  # files of one claim; if there are more, the oldest are removed
NAME_LENGTH = 24  # characters of the hash of a claim


@dataclasses.dataclass(frozen=True)
class EarlierTries:
    """The tries of the claims of one measurement.

    Two claims are the same if they have the same test, variants, metric, workload, clusters, release, machine, profile
    and provisioner. The margin and the limits may differ: a message advises to change them and to try again.
    """

    recall: Recall
    """The measurement."""

    root: Path
    """The root directory of the tests."""

    def begin(self, question: Question) -> int:
        """Note a try whose first look comes now; return its number, from 1.

        If the cache cannot be written, nothing is noted.
        """
        key = self._key(question)
        before = _of(key)
        with contextlib.suppress(OSError):
            _directory().mkdir(parents=True, exist_ok=True)
            _sweep()
            for path in before[: max(0, len(before) + 1 - MOST)]:
                path.unlink(missing_ok=True)
            cache.write_manifest(_directory() / f"{key}-{uuid.uuid4().hex}.json", {"test": self.recall.asked.test})
        return 1 + len(before)

    def decide(self, question: Question) -> None:
        """Remove the tries of a claim that has a verdict."""
        for path in _of(self._key(question)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _key(self, question: Question) -> str:
        recall = self.recall
        depends_on = recall.depends_on(question)
        parts = (
            str(self.root),
            recall.id_of(question),
            recall.asked.profile,
            recall.asked.provisioner,
            *(depends_on[part] for part in (digests.CLUSTERS, digests.RELEASE, digests.MACHINE)),
        )
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()[:NAME_LENGTH]


def _directory() -> Path:
    return cache.root() / FOLDER


def _of(key: str) -> list[Path]:
    """The files of a claim that still count, the oldest first."""
    dated = [(_age(path), path) for path in _directory().glob(f"{key}-*.json")]
    return [path for age, path in sorted(dated, reverse=True) if age < DAYS * 86400]


def _sweep() -> None:
    for path in _directory().glob("*.json"):
        if _age(path) >= DAYS * 86400:
            path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    """Seconds since a file was written; infinite if it no longer exists."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
