"""Allure's page of one or several results directories: one file that needs no server and no network.

Allure 3 makes it from copies of the results (``stage``). ``repair`` corrects what Allure's configuration cannot.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.errors import ConfigError, DBClusterError, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.reporting.allure import allure_results, performance, program, unfinished
from pytest_dbcluster.reporting.allure.allure_results import CATEGORIES, DIRECTORY, ENVIRONMENT
from pytest_dbcluster.reporting.allure.earlier_results import ATTACHMENT, CONTAINER, RESULT
from pytest_dbcluster.reporting.page import report_page, summary, words
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.results_directory import ALLURE_PAGE, PAGE

FOLDERS = ("parentSuite", "suite", "subSuite")  # labels by which Allure groups tests in folders
FORBIDDEN, LONGEST = re.compile(r"[/\\\x00-\x1f\x7f-\x9f]"), 56  # in a name of an environment; Allure takes 64
STAGED = (RESULT, CONTAINER, "*-globals.json", ATTACHMENT)
SETTINGS, CONFIGURATION = "settings.json", "allurerc.mjs"
CHARSET = '<meta charset="utf-8">'  # the first lines of the page
CALL = re.compile(r'<script async src="https://.*?</script>\s*<script>.*?</script>', re.DOTALL)
# Allure's program waits for its data if it finds this object. Otherwise it asks a server, and the page stays blank.
WAIT = "<script>window.allureReportData = {};</script>"


def path(page: Path) -> Path:
    """The path of Allure's page, beside the page of the run: ``allure.html`` beside ``index.html``."""
    return page.with_name(ALLURE_PAGE if page.name == PAGE else f"{page.stem}-{ALLURE_PAGE}")


def has_results(read: Sequence[Source]) -> bool:
    """Whether any of these directories has results of Allure."""
    return any(next((source.directory / DIRECTORY).glob(RESULT), None) for source in read)


def check(read: Sequence[Source], page: Path) -> None:
    """Raise ConfigError for directories without results of Allure, and for a page that is only a table."""
    if page.suffix == ".md":
        raise ConfigError(f"{page}: a table has no Allure page; give --output FILE.html, or leave out --allure")
    if not has_results(read):
        named = ", ".join(str(source.directory / DIRECTORY) for source in read)
        raise ConfigError(f"there are no results of Allure in {named}: allure-pytest was not installed in that run")


def try_to_make(read: Sequence[Source], page: Path, progress: Report) -> str:
    """Make Allure's page if Allure and Node.js are there; return the line with its path, or why there is none.

    Empty for runs without results of Allure. Never raises a DBClusterError, and fetches nothing.
    """
    if not has_results(read):
        return ""
    try:
        entry = program.lookup()
        if entry is None:
            program.node()
            return f"no Allure page: Allure {program.VERSION} was not fetched; --allure fetches it with npm"
        return make(read, page, entry, progress)
    except DBClusterError as error:
        return f"no Allure page: {error}"


def make(read: Sequence[Source], page: Path, entry: Path, progress: Report) -> str:
    """Make Allure's page of these directories; return the line with its path.

    page: the page of the run, which Allure's page names. entry: Allure in the cache. Raises ConfigError if results
    cannot be copied, or the page cannot be written; Unsupported without Node.js; ProvisionError if Allure fails.
    """
    with tempfile.TemporaryDirectory(prefix="dbcluster-allure-") as name:
        working = Path(name)
        (working / "results").mkdir()
        environments = stage(read, working / "results", page.name, progress)
        settings = {
            "name": "Performance claims",
            "categories": CATEGORIES,
            "label": ENVIRONMENT,
            "environments": environments,
        }
        (working / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
        shutil.copyfile(Path(__file__).parent / CONFIGURATION, working / CONFIGURATION)
        made = program.generate(entry, working / CONFIGURATION, working / "results")
    report_page.write(repair(made), path(page))
    return f"Allure report: {path(page)}"


def stage(read: Sequence[Source], into: Path, page: str, progress: Report) -> dict[str, str]:
    """Copy the results of these directories ``into`` one; return how Allure shows each label of an environment.

    Labels of older versions come first. page: the name of the run's own page. progress: gets a sentence about each
    file that is left out because it is not a result. Raises ConfigError for a file that cannot be copied.
    """
    named = _by_name(read)
    labels: set[str] = set()
    try:
        for name, source in named.items():
            documents = _copy(source.directory / DIRECTORY, into, progress)
            known = {str(document.get("historyId")) for document in documents.values()}
            more = {f"{one['uuid']}-result.json": one for one in unfinished.results(source, known)}
            for file, document in {**documents, **more}.items():
                _place(document, name if len(read) > 1 else "")
                labels.update(str(label.get("value")) for label in _labels(document))
                (into / file).write_text(json.dumps(document), encoding="utf-8")
        (into / "environment.properties").write_text(_about(named, page), encoding="utf-8")
        claims = {name if len(read) > 1 else "": source.claims for name, source in named.items()}
        (into / performance.FILE).write_text(performance.text(claims), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot copy {error.filename}: {error.strerror}") from None
    return _names(sorted(labels, key=_by_version))


def _copy(directory: Path, into: Path, progress: Report) -> dict[str, dict[str, Any]]:
    """Copy the results of a directory and their files; return the results by file name. Raises OSError."""
    documents = {}
    for file in _files(directory):
        if not file.match(RESULT):
            shutil.copyfile(file, into / file.name)
        elif (document := _result(file)) is not None:
            documents[file.name] = document
        else:
            progress(f"{file} is not a result of Allure, and is left out")
    return documents


def _by_name(read: Sequence[Source]) -> dict[str, Source]:
    """The directories by their last name, with a number if names are equal."""
    found: dict[str, Source] = {}
    for source in read:
        found[_unused_name(source.directory.resolve().name, found)] = source
    return found


def _names(labels: Iterable[str]) -> dict[str, str]:
    """By label, a name that Allure accepts for an environment: no path, no control character, and not too long."""
    taken = {"default": ""}  # Allure's own
    for label in labels:
        name = FORBIDDEN.sub("_", label).strip(" .")[:LONGEST] or "unnamed"
        taken[_unused_name(name, taken)] = label
    return {label: name for name, label in taken.items() if label}


def _unused_name(name: str, taken: Mapping[str, object]) -> str:
    """The name, with a number if it is taken."""
    numbered = (f"{name} ({number})" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in taken)


def _by_version(release: str) -> list[str | int]:
    """Sorts 10.5 before 10.11. Texts and numbers alternate, so a text is never compared with a number."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d{1,9})", release)]


def _files(directory: Path) -> Iterator[Path]:
    """The files of Allure in a directory; only plain files, because a link may be from another user."""
    for pattern in STAGED:
        yield from (path for path in sorted(directory.glob(pattern)) if path.is_file() and not path.is_symlink())


def _result(file: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return document if isinstance(document, dict) and "uuid" in document else None


def _place(document: dict[str, Any], directory: str) -> None:
    """Put a result directly into its environment, without folders: Allure folds those in which all tests passed.

    directory: its name, if there are several. Each has separate environments, because Allure treats equal tests of one
    environment as retries. The environment of a test without a release is the directory.
    """
    document.pop("titlePath", None)
    labels = document.get("labels")
    labels = labels if isinstance(labels, list) else []
    labels[:] = [label for label in labels if not isinstance(label, dict) or label.get("name") not in FOLDERS]
    if not directory:
        return
    document["labels"] = labels
    for label in (named := _labels(document)):
        label["value"] = f"{label.get('value')}, {directory}"
    if not named:
        labels.append({"name": ENVIRONMENT, "value": directory})


def _labels(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The labels that name the release of a result."""
    labels = document.get("labels")
    named = [label for label in labels if isinstance(label, dict)] if isinstance(labels, list) else []
    return [label for label in named if label.get("name") == ENVIRONMENT]


def _about(named: Mapping[str, Source], page: str) -> str:
    """Allure's environment.properties: facts and results of the runs, with the directory if there are several."""
    found = [
        (f"{directory}: {title}" if len(named) > 1 else title, text)
        for directory, source in named.items()
        for title, text in _results_of(source).items()
        if text
    ]
    return allure_results.properties({"page of the run": page, **dict(found)})


def _results_of(source: Source) -> dict[str, str]:
    """The results of a run, what is missing in them, and facts about it."""
    notes = " ".join(map(words.as_sentence, source.notes))
    return {"claims": summary.sentence([source]), "notes": notes, **summary.about(source)}


def repair(page: str) -> str:
    """Allure's page without the call of an analytics service, and never blank.

    Raises ProvisionError for a page with another structure, because it might call other services.
    """
    page, calls = CALL.subn("", page)
    if calls != 1 or page.count(CHARSET) != 1:
        raise ProvisionError(f"Allure made a page with another structure than that of version {program.VERSION}")
    return page.replace(CHARSET, CHARSET + WAIT)
