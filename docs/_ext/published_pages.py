"""A Sphinx extension: the pages of published measurements, each with the published figures and ours side by side.

When a build begins, it writes the tables as MyST files into ``published/generated``; the pages of ``published`` include
them. They come from ``fixtures/published``, from the claims of the suites, and from stored results.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import published_results
from entries import code, page, table, write
from published_claims import ROOT, PublishedClaim, claims
from published_results import StoredResult
from sphinx.application import Sphinx

from pytest_dbcluster import formatting
from pytest_dbcluster.reporting.published import DIRECTORY

NOT_MEASURED = "not measured"
HEAD = ("claim and workload", "published", "measured", "verdict", "details")
# The tables of a file that are not figures: those of facts, and those of findings.
FACTS = ("server", "topology", "hardware", "options", "workload")
FINDINGS = ("finding", "findings", "text")
COLUMNS = "columns"
BASELINE = "default"
CONTINUED = " \\\n    "  # between the words of a long command


def works(root: Path = ROOT) -> list[str]:
    """The names of the published works."""
    return sorted(path.stem for path in (root / DIRECTORY).glob("*.toml"))


def texts(root: Path = ROOT, results: Path = published_results.DIRECTORY) -> dict[str, str]:
    """The generated files with their texts. Raises RuntimeError and ConfigError, as ``claims`` and ``read`` do."""
    known = claims(root)
    found = {}
    rows = []
    for work in works(root):
        document = tomllib.loads((root / DIRECTORY / f"{work}.toml").read_text())
        own = [claim for claim in known if claim.work == work]
        stored = published_results.read(work, results)
        found[f"{work}.md"] = text_of(document, own, stored)
        measured = {result.claim_id for result in stored} & {claim.claim_id for claim in own}
        rows.append((f"[]({work}.md)", document["title"], document["hardware"], f"{len(measured)} of {len(own)}"))
    found["index.md"] = table(("page", "source", "published hardware", "measured claims"), rows)
    return found


def text_of(document: Mapping[str, Any], known: Sequence[PublishedClaim], stored: Sequence[StoredResult]) -> str:
    """The text of one work: its facts, and for each table the published figures and ours."""
    machines = list(dict.fromkeys(map(_where, stored)))
    sections = list(dict.fromkeys((claim.table, claim.sentence) for claim in known))
    parts = ["## Source\n", _facts(document), _findings(document)]
    for section in sorted(sections, key=lambda numbers: [-1 if one is None else one for one in numbers]):
        own = [claim for claim in known if (claim.table, claim.sentence) == section]
        parts += [f"## {_title(section)}\n", *_published(document, section)]
        parts += ["**Measured.**\n", _measured(own, stored, machines), *_commands(own, known)]
    if machines:
        parts += ["## Machines\n", "\n".join(f"{number}. {where}" for number, where in enumerate(machines, 1)), ""]
    return page(parts)


def _title(section: tuple[int | None, int | None]) -> str:
    number, sentence = section
    if number is not None:
        return f"Table {number}"
    return "Results" if sentence is None else f"Finding {sentence + 1}"


def _where(result: StoredResult) -> str:
    return f"{result.machine}; provisioner {code(result.provisioner)}, profile {code(result.profile)}"


def _facts(document: Mapping[str, Any]) -> str:
    rows = [("title", document["title"])]
    rows += [(name, _flat(document[name])) for name in FACTS if name in document]
    return table(("fact", "published"), rows)


def _flat(value: Any) -> str:
    """A value of a file in one line."""
    if isinstance(value, Mapping):
        return ", ".join(code(f"{name}={_flat(one)}") for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_flat, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _findings(document: Mapping[str, Any]) -> str:
    """The findings of a work as a numbered list; those of a column begin with its name."""
    found = [*_texts_in(document)]
    for name, part in document.items():
        if name == COLUMNS:
            found += [f"{code(column)}: {text}" for column, rows in part.items() for text in _texts_in(rows)]
        elif isinstance(part, Mapping) and name not in FACTS:
            found += [text if name in FINDINGS else f"{code(name)}: {text}" for text in _texts_in(part)]
    lines = [f"{number}. {_sentence(text)}" for number, text in enumerate(found, 1)]
    return page(["Findings:\n", *lines, ""]) if lines else ""


def _texts_in(part: Mapping[str, Any]) -> list[str]:
    texts = [part[name] for name in FINDINGS if name in part and not isinstance(part[name], Mapping)]
    return [text for one in texts for text in ([one] if isinstance(one, str) else one)]


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _published(document: Mapping[str, Any], section: tuple[int | None, int | None]) -> list[str]:
    """The published figures of a section: its columns, and all other figures for a section without a number."""
    number, sentence = section
    if sentence is not None:
        return [f"Published is a chart without numbers: {_sentence(document['findings']['text'][sentence])}\n"]
    columns = {
        name: rows
        for name, rows in document.get(COLUMNS, {}).items()
        if number is None or rows.get("table") == number or name == BASELINE
    }
    made = [_columns(columns)] if columns else []
    if number is None:
        made += [one for name, part in document.items() if name not in (*FACTS, COLUMNS) for one in _figures(part)]
    return ["**Published.**\n", *made]


def _columns(columns: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each figure, and a column for each column of the file."""
    names = dict.fromkeys(name for rows in columns.values() for name, value in rows.items() if _is_figure(value))
    digits = _digits(value for rows in columns.values() for value in rows.values())
    rows = [(code(name), *(_cell(column.get(name), digits) for column in columns.values())) for name in names]
    return table(("figure", *map(code, columns)), rows)


def _is_figure(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, list) and all(isinstance(one, float) for one in value))


def _cell(value: Any, digits: int) -> str:
    """A figure, or an average with minimum and maximum: ``0.474 (0.416 .. 0.652)``. digits: decimals of each."""
    if value is None:
        return ""
    if isinstance(value, list):
        average, least, most = (f"{one:.{digits}f}" for one in value)
        return f"{average} ({least} .. {most})"
    return f"{value:.{digits}f}"


def _digits(values: Iterable[Any]) -> int:
    """The most decimals of these figures; other values do not count."""
    several = [one for value in values if _is_figure(value) for one in (value if isinstance(value, list) else [value])]
    return max((len(repr(one).partition(".")[2]) for one in several), default=0)


def _figures(part: Any) -> list[str]:
    """The figures of a table of the file that has no columns: numbers, and tables of numbers."""
    if not isinstance(part, Mapping):
        return []
    single = [(code(name), _cell(value, _digits([value]))) for name, value in part.items() if isinstance(value, float)]
    several = {name: value for name, value in part.items() if isinstance(value, Mapping)}
    made = [table(("figure", "value"), single)] if single else []
    if several:
        heads = dict.fromkeys(head for value in several.values() for head in value)
        digits = _digits(figure for value in several.values() for figure in value.values())
        rows = [(code(name), *(_cell(value.get(head), digits) for head in heads)) for name, value in several.items()]
        made.append(table(("figure", *heads), rows))
    return made


def _measured(known: Sequence[PublishedClaim], stored: Sequence[StoredResult], machines: Sequence[str]) -> str:
    """A row for each claim and release; a claim without a result is not measured."""
    rows = []
    for claim in known:
        results = [result for result in stored if result.claim_id == claim.claim_id]
        rows += [_row(claim, result, machines) for result in results] or [_empty_row(claim)]
    return table(HEAD, rows)


def _ratios(claim: PublishedClaim) -> str:
    """The published ratio, or those of the steps of an order."""
    known = [ratio for ratio in claim.ratios if ratio is not None]
    if not known:
        return "chart" if claim.sentence is not None else formatting.NOTHING
    return ", ".join(map(formatting.ratio, known))


def _claim(claim: PublishedClaim) -> str:
    return f"{code(claim.text)}, {claim.load}"


def _empty_row(claim: PublishedClaim) -> tuple[str, ...]:
    return (_claim(claim), _ratios(claim), NOT_MEASURED, *[""] * (len(HEAD) - 3))


def _row(claim: PublishedClaim, result: StoredResult, machines: Sequence[str]) -> tuple[str, ...]:
    reasons = ", ".join(f"{{reason}}`{name}`" for name in result.reasons)
    day = datetime.datetime.fromtimestamp(result.began, datetime.UTC).date()
    steps = zip(result.measured, result.interval, strict=True)
    pairs, machine = formatting.quantity(result.pairs, "pair"), machines.index(_where(result)) + 1
    return (
        _claim(claim),
        _ratios(claim),
        ", ".join(f"{ratio} ({interval})" for ratio, interval in steps),
        f"{result.verdict}{f': {reasons}' if reasons else ''}",
        f"{pairs}, {result.release}, machine {machine}, {day}",
    )


def _commands(own: Sequence[PublishedClaim], known: Iterable[PublishedClaim]) -> list[str]:
    """The command that repeats a section, one for each folder: the file, or some of its tests."""
    elsewhere = {claim.test for claim in known if claim not in own}
    lines: dict[str, list[str]] = {}
    for file in dict.fromkeys(_file(claim) for claim in own):
        tests = list(dict.fromkeys(claim.test for claim in own if _file(claim) == file))
        whole = not any(test.partition("::")[0] == file for test in elsewhere)
        lines.setdefault(str(PurePosixPath(file).parent), []).extend([file] if whole else tests)
    commands = [f"pytest {CONTINUED.join(words)}" for words in lines.values()]
    return ["To repeat it:\n", "```sh", *commands, "```\n"]


def _file(claim: PublishedClaim) -> str:
    return claim.test.partition("::")[0]


def setup(app: Sphinx) -> dict[str, object]:
    """Write the tables when the build begins."""
    app.connect("builder-inited", lambda built: write(Path(built.srcdir) / "published" / "generated", texts()))
    return {"version": "1", "parallel_read_safe": True}
