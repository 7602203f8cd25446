"""Earlier results of Allure in the directory of a run that is continued: each stays until its test ends again.

Allure treats results of one ``historyId`` as retries of one test. So if a test runs again, the writing of its new
result removes its earlier result with all files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_dbcluster.reporting.allure import performance

RESULT, CONTAINER, ATTACHMENT = "*-result.json", "*-container.json", "*-attachment*"
MADE_AGAIN = ("*-globals.json", "environment.properties", "categories.json", performance.FILE)  # at the end of a run
OURS = (RESULT, CONTAINER, ATTACHMENT, *MADE_AGAIN)  # the files of a run


class EarlierResults:
    """The results in a directory when a run begins to continue it. Raises OSError for one that cannot be read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._results: dict[str, list[Path]] = {}
        self._containers: dict[str, list[Path]] = {}
        for path, document in _documents(directory, RESULT):
            self._results.setdefault(str(document.get("historyId")), []).append(path)
        for path, document in _documents(directory, CONTAINER):
            for uuid in _children(document):
                self._containers.setdefault(uuid, []).append(path)

    def replace(self, history_id: str) -> None:
        """Remove the earlier results of a test with their attachments and fixtures. Raises OSError."""
        for path in self._results.pop(history_id, []):
            document = _document(path) or {}
            for container in self._containers.pop(str(document.get("uuid")), []):
                # A fixture of a module or a session belongs to other tests as well.
                if set(_children(held := _document(container) or {})).isdisjoint(self._containers):
                    self._remove(container, held)
            self._remove(path, document)

    def _remove(self, path: Path, document: Mapping[str, Any]) -> None:
        for name in _attachments(document):
            (self._directory / name).unlink(missing_ok=True)
        path.unlink(missing_ok=True)


def tidy(directory: Path) -> None:
    """Remove what a killed run has left, and what the end of a run makes again. Raises OSError.

    A killed run leaves results that cannot be read, attachments of tests that had not ended, and their fixtures.
    """
    results = _documents(directory, RESULT)
    containers = _documents(directory, CONTAINER)
    uuids = {str(document.get("uuid")) for _, document in results}
    kept = [*results, *(one for one in containers if not uuids.isdisjoint(_children(one[1])))]
    named = {path.name for path, _ in kept} | {name for _, document in kept for name in _attachments(document)}
    for pattern in (RESULT, CONTAINER, ATTACHMENT):
        for path in directory.glob(pattern):
            if path.name not in named:
                path.unlink()
    for pattern in MADE_AGAIN:
        for path in directory.glob(pattern):
            path.unlink()


def _documents(directory: Path, pattern: str) -> list[tuple[Path, Mapping[str, Any]]]:
    """The documents that can be read, with their paths."""
    found = [(path, _document(path)) for path in sorted(directory.glob(pattern))]
    return [(path, document) for path, document in found if document is not None]


def _document(path: Path) -> Mapping[str, Any] | None:
    """The content of a file; None if it is not a document, such as a torn file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _children(container: Mapping[str, Any]) -> list[str]:
    """The uuids of the results that a container's fixtures belong to."""
    return [str(uuid) for uuid in container.get("children") or ()]


def _attachments(part: Mapping[str, Any]) -> Iterator[str]:
    """The names of the attachments of a result, of a container, or of a step of them."""
    for attachment in part.get("attachments") or ():
        yield Path(str(attachment.get("source"))).name
    for steps in ("steps", "befores", "afters"):
        for step in part.get(steps) or ():
            yield from _attachments(step)
