"""The page of one or several results directories: views of everything in them, filled into the template."""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import printable
from pytest_dbcluster.reporting.charts import colours, drawing, forest
from pytest_dbcluster.reporting.page import claim_view, comparison_view, sources, summary, sweep_view, words
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.results_directory import PAGE

MISSING = "no page: {missing} {is_} not installed; pip install 'pytest-dbcluster[plots]'"
TEMPLATE, STYLES = "template.html", "style.css"
# What readers look for first comes first.
RANKS = {Outcome.FAILS: 0, Outcome.INCONCLUSIVE: 1, Outcome.HOLDS: 2}
Keyed = list[tuple[Source, ClaimRecord, str]]


def missing() -> str:
    """The sentence that says which packages the page needs; empty when they are installed."""
    installed = {"jinja2": importlib.util.find_spec("jinja2") is not None, "matplotlib": drawing.available()}
    lacks = [name for name, there in installed.items() if not there]
    is_ = "is" if len(lacks) == 1 else "are"
    return MISSING.format(missing=" and ".join(lacks), is_=is_) if lacks else ""


def make(directory: Path) -> str:
    """Make the page of one results directory; return the line that says where it is, or why there is none.

    Never raises an Exception: the results are complete without the page.
    """
    if lacks := missing():
        return lacks
    try:
        path = directory / PAGE
        write(html(sources.read_all([directory])), path)
    except Exception as error:
        said = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        return printable(f"no page: {said}; the results are complete, and `dbcluster report {directory}` tries again")
    return f"report: {path}"


def write(text: str, path: Path) -> None:
    """Write the page; it replaces an older one at once. Raises ConfigError.

    It is never written into a directory of another user, who may have put anything there.
    """
    folder = path.parent
    try:
        owner = folder.stat().st_uid
        if owner != os.geteuid():
            raise ConfigError(f"cannot write {path}: {folder} belongs to {_name_of(owner)}; give --output FILE")
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=folder)
        fresh = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            fresh.chmod(0o644)
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}; give --output FILE") from None


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def html(read: Sequence[Source]) -> str:
    """The page of these results as text. It needs the packages that ``missing`` names."""
    import jinja2

    folder = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["said"] = words.said
    return environment.get_template(TEMPLATE).render(**_content(read))


def _content(read: Sequence[Source]) -> dict[str, Any]:
    """The values of the template, by name. Charts are SVG text, which the template inserts as it is."""
    keyed = _keyed(read)
    several = len(read) > 1
    samples = {id(record): source.timeline(number) for source in read for number, record in enumerate(source.claims)}
    claims = [
        claim_view.view(record, key, source.name if several else "", samples[id(record)])
        for source, record, key in keyed
    ]
    numbers = itertools.count(1)
    sweeps = [
        sweep_view.view(record, f"sweep{next(numbers)}", source.name if several else "")
        for source in read
        for record in source.curves
    ]
    return {
        "style": (Path(__file__).parent / STYLES).read_text(),
        "day": colours.variables(dark=False),
        "night": colours.variables(dark=True),
        "sentence": summary.sentence(read),
        "counts": summary.counts(read),
        "notes": [(source.name if several else "", note) for source in read for note in source.notes],
        "runs": [(source.name, summary.about(source)) for source in read],
        "forests": _forests(keyed),
        "comparisons": comparison_view.views(keyed),
        "claims": claims,
        "sweeps": sweeps,
        "tests": summary.tests(read),
        "several": several,
    }


def _keyed(read: Sequence[Source]) -> Keyed:
    """All claims with their directory and address: refuted ones first, then open ones, those that hold, comparisons."""
    every = [(source, record) for source in read for record in source.claims]
    every.sort(key=lambda one: RANKS[one[1].verdict.outcome] if one[1].asserted else len(RANKS))
    return [(source, record, f"claim{number}") for number, (source, record) in enumerate(every, 1)]


def _forests(keyed: Keyed) -> list[tuple[str, str]]:
    """The forest plots, speeds and counters apart: title and SVG text."""
    several = len({record.release for _, record, _ in keyed}) > 1
    lines = [forest.Line(record, _name(record, several=several), f"#{key}") for _, record, key in keyed]
    kinds = (
        ("Ratio of speed", [line for line in lines if not forest.counter(line.record)]),
        ("Ratio of a counter", [line for line in lines if forest.counter(line.record)]),
    )
    drawn = [(title, forest.svg(some, f"forest{number}")) for number, (title, some) in enumerate(kinds)]
    return [(title, colours.themed(svg)) for title, svg in drawn if svg]


def _name(record: ClaimRecord, *, several: bool) -> str:
    """A claim in the forest plot: its symbol, its text, its load, and its release where there are several."""
    release = f", {record.release.partition(' ')[0]}" if several else ""
    return f"{words.SYMBOLS[words.state(record)]} {record.text}, {record.load}{release}"
