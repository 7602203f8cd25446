"""The page of one or several results directories: makes views of everything in them, and fills the template."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import math
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report, printable
from pytest_dbcluster.reporting.charts import colours, drawing, forest
from pytest_dbcluster.reporting.page import (
    claim_view,
    comparison_view,
    history_view,
    no_worse_view,
    sources,
    summary,
    sweep_view,
    words,
)
from pytest_dbcluster.reporting.page.claim_view import ClaimView
from pytest_dbcluster.reporting.page.making import ALONE, Making, lines_of, say_nothing
from pytest_dbcluster.reporting.page.no_worse_view import NoWorseView
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.page.sweep_view import SweepView
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.results_directory import PAGE
from pytest_dbcluster.reporting.schema import CLAIMS
from pytest_dbcluster.reporting.tables import effects, joint_error, states
from pytest_dbcluster.system import probes

MISSING = "no page: {missing} {is_} not installed; pip install 'pytest-dbcluster[plots]'"
OBJECTS = 50_000  # between two runs of the garbage collector: about ten figures
TEMPLATE, STYLES = "template.html", "style.css"
# What readers look for first comes first.
RANKS = {Outcome.FAILS: 0, Outcome.INCONCLUSIVE: 1, Outcome.HOLDS: 2}
MANY = 4  # claims: a page with so many has contents, and folds the claims that need no attention
MOST = 500  # claims with a section of their own, each of 40 KB; browsers need seconds for a page of 20 MB
APART = 2 * ALONE  # claims: a separate process makes the page of so many
END_SECONDS = 10.0  # until a killed process is gone
PROGRAM = f"from {__name__} import main; main()"
DONE = ("report: ", "no page: ")  # the line of ``make``; other lines are progress
FOLDED = ("holds", states.COMPARED)
LISTED = 8  # folded claims that the contents list at once
Keyed = list[tuple[Source, ClaimRecord, str]]


def missing() -> str:
    """The sentence about the packages that the page lacks; empty if all are installed."""
    installed = {"jinja2": importlib.util.find_spec("jinja2") is not None, "matplotlib": drawing.available()}
    lacks = [name for name, there in installed.items() if not there]
    is_ = "is" if len(lacks) == 1 else "are"
    return MISSING.format(missing=" and ".join(lacks), is_=is_) if lacks else ""


def make(directory: Path, tell: Report = say_nothing) -> str:
    """Make the page of one results directory; return the line with its path, or with the reason for none.

    ``tell`` gets lines of progress if it takes long. A separate process makes a page of many claims. It has no threads,
    so several processes can draw, and its memory is free afterwards. Raises neither an Exception nor KeyboardInterrupt,
    because the results are complete without the page.
    """
    if lacks := missing():
        return lacks
    if _count(directory) < APART:
        return _line(directory, lambda: _make_here(directory, tell))
    return _line(directory, lambda: _make_apart(directory, tell))


def main() -> None:
    """The separate process: make the page of the directory on the command line, and print what ``make`` returns."""
    directory, tell = Path(sys.argv[1]), functools.partial(print, flush=True)
    tell(_line(directory, lambda: _make_here(directory, tell, processes=math.ceil(probes.usable_cores()))))


def _count(directory: Path) -> int:
    """The number of claims in a results directory; 0 if it cannot be read."""
    try:
        with (directory / CLAIMS).open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def _make_here(directory: Path, tell: Report, *, processes: int = 1) -> str:
    making = Making(tell, _again(directory), processes=processes)
    write(html(sources.read_all([directory]), making), directory / PAGE)
    return f"{DONE[0]}{directory / PAGE}"


def _make_apart(directory: Path, tell: Report) -> str:
    """As ``_make_here``, by ``main`` in another process. Raises ConfigError if it ends without a result, or hangs."""
    done = ""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, directory],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=True,  # Ctrl-C reaches it only through us
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        try:
            for line in lines_of(process):
                if line.startswith(DONE):
                    done = line
                else:
                    tell(line)
        finally:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # Popen waits .25 s only after Ctrl-C
                process.wait(END_SECONDS)
    if not done:
        raise ConfigError(f"the process that makes it ended with {process.returncode}")
    return done


def _line(directory: Path, made: Callable[[], str]) -> str:
    """What ``made`` returns; a sentence if it is interrupted or fails."""
    again = _again(directory)
    try:
        return made()
    except KeyboardInterrupt:
        return printable(f"no page: its making was interrupted; the results are complete, and `{again}` makes it")
    except Exception as error:
        said = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
        return printable(f"no page: {said}; the results are complete, and `{again}` tries again")


def _again(directory: Path) -> str:
    return f"dbcluster report {directory}"


def write(text: str, path: Path) -> None:
    """Write the page; it replaces an older one atomically. Raises ConfigError.

    A directory of another user is refused, because that user may have put anything there.
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


def html(read: Sequence[Source], making: Making | None = None) -> str:
    """The page of these results as text. It needs the packages that ``missing`` names."""
    import jinja2

    folder = Path(__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.filters["as_sentence"] = words.as_sentence
    # Without a claim there is no chart, and matplotlib takes a quarter of a second to import.
    style = drawing.chart_style() if any(one.claims for one in read) else contextlib.nullcontext()
    with style, _fewer_collections():
        return environment.get_template(TEMPLATE).render(**_content(read, making or Making()))


@contextlib.contextmanager
def _fewer_collections() -> Iterator[None]:
    """Let the garbage collector run less often: figures are thousands of objects that refer to each other."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _content(read: Sequence[Source], making: Making) -> dict[str, Any]:
    """The values of the template, by name. Charts are SVG text, which the template inserts as it is."""
    keyed = _with_keys(read)
    several = len(read) > 1
    claims = _claims(read, keyed, making)
    linked = {claim.key for claim in claims}
    keyed = [(source, record, key if key in linked else "") for source, record, key in keyed]
    sweeps = list(_sweeps(read, making))
    answers = list(_answers(read, keyed, making))
    answer = answers[0][1] if answers and not several else None  # its table has all claims
    forests = [] if answer else making.view("the plot of all claims", lambda: _forests(keyed)) or []
    comparisons = making.view("the comparison of claims", lambda: comparison_view.views(keyed)) or []
    joint = [(source, joint_error.line(source.claims)) for source in read]
    notes = [(source.name if several else "", note) for source in read for note in source.notes]
    return {
        "style": (Path(__file__).parent / STYLES).read_text(),
        "day": colours.variables(dark=False),
        "night": colours.variables(dark=True),
        "sentence": answer.sentence if answer else summary.sentence(read),
        "answer": answer,
        "answers": answers if several else [],
        "joint": [(source.name if several else "", line) for source, line in joint if line],
        "symbols": words.SYMBOLS,
        "counts": summary.counts(read),
        "notes": [*notes, *(("", sentence) for sentence in (*_left_out(keyed), *making.failed.values()))],
        "runs": [(source.name, summary.about(source), summary.time_bar(source)) for source in read],
        "forests": forests,
        "comparisons": comparisons,
        "effects": [block for source in read for block in effects.blocks(source.claims)],
        "histories": making.view("the history", lambda: history_view.view(read)) or [],
        "claims": claims,
        **_contents(claims),
        "sweeps": sweeps,
        "tests": summary.tests(read),
        "several": several,
    }


def _left_out(keyed: Keyed) -> list[str]:
    """A sentence about the claims that have no section; none if all have one."""
    if len(keyed) <= MOST:
        return []
    shown = f"{MOST} of {len(keyed)} claims are shown here, refuted and inconclusive ones first"
    return [f"{shown}; claims.jsonl, rounds/ and charts/ have all claims"]


def _contents(claims: Sequence[ClaimView]) -> dict[str, Any]:
    """The values for contents and folding: the claims by state, in the order of the page; none for few claims."""
    by_state: dict[str, list[ClaimView]] = {}
    for claim in claims if len(claims) >= MANY else ():
        by_state.setdefault(claim.state, []).append(claim)
    return {
        "contents": [(summary.Count(state, words.SYMBOLS[state], len(some)), some) for state, some in by_state.items()],
        "folded": FOLDED,
        "listed": LISTED,
        "several_releases": len({claim.record.release for claim in claims}) > 1,
    }


def _answers(read: Sequence[Source], keyed: Keyed, making: Making) -> Iterator[tuple[str, NoWorseView]]:
    """The name of each results directory of ``dbcluster compare``, with its answer."""
    for source in read:
        keys = {(record.test, record.metric): key for place, record, key in keyed if place is source}
        make = functools.partial(no_worse_view.view, source, keys)
        if made := making.view(f"the answer of {source.name}", make):
            yield source.name, made


def _claims(read: Sequence[Source], keyed: Keyed, making: Making) -> list[ClaimView]:
    """The views of the claims, without those that fail."""
    samples = {id(record): source.timeline(number) for source in read for number, record in enumerate(source.claims)}
    makes = []
    for number, (source, record, key) in enumerate(keyed[:MOST], 1):
        place = source.name if len(read) > 1 else ""
        closer = no_worse_view.closer_of(record, source.claims)
        make = functools.partial(claim_view.view, record, key, place, samples[id(closer or record)], closer)
        makes.append((f"claim {number} ({record.text}, {record.load})", make))
    return making.views(makes)


def _sweeps(read: Sequence[Source], making: Making) -> Iterator[SweepView]:
    """The views of the sweeps, without those that fail."""
    every = [(source, record) for source in read for record in source.curves]
    for number, (source, record) in enumerate(every, 1):
        make = functools.partial(sweep_view.view, record, f"sweep{number}", source.name if len(read) > 1 else "")
        if made := making.view(f"sweep {number} ({record.load} over {record.field})", make):
            yield made


def _with_keys(read: Sequence[Source]) -> Keyed:
    """All claims with their directory and address: refuted ones first, then open ones, those that hold, comparisons.

    The comparison after all rounds of a guard is shown with its guard, and has no address.
    """
    beside = {
        id(closer)
        for source in read
        for record in source.claims
        if (closer := no_worse_view.closer_of(record, source.claims))
    }
    every = [(source, record) for source in read for record in source.claims if id(record) not in beside]
    every.sort(key=lambda one: RANKS[one[1].verdict.outcome] if one[1].asserted else len(RANKS))
    return [(source, record, f"claim{number}") for number, (source, record) in enumerate(every, 1)]


def _forests(keyed: Keyed) -> list[tuple[str, str, str]]:
    """The forest plots of speeds and of counters: title, and SVG text for a page and for a phone."""
    releases = len({record.release for _, record, _ in keyed}) > 1
    runs = len({source.name for source, _, _ in keyed}) > 1
    lines = [
        forest.Line(record, _name(record, source if runs else None, release=releases), key and f"#{key}")
        for source, record, key in keyed
    ]
    lines = [line for line in lines if line.record.verdict.claim.of_kind.is_ratio][:MOST]
    kinds = (
        ("Ratio of speed", [line for line in lines if not forest.counter(line.record)]),
        ("Ratio of a counter", [line for line in lines if forest.counter(line.record)]),
    )
    found = []
    for number, (title, some) in enumerate(kinds):
        wide, narrow = (
            forest.svg(some, f"{name}{number}", shape)
            for name, shape in (("forest", forest.WIDE), ("phone", forest.NARROW))
        )
        if wide and narrow:
            found.append((title, colours.apply_theme(wide), colours.apply_theme(narrow)))
    return found


def _name(record: ClaimRecord, source: Source | None, *, release: bool) -> str:
    """A claim in the forest plot: its symbol, text and workload, and release and run if there are several."""
    more = [record.release.partition(" ")[0]] if release else []
    more += [source.directory.name] if source else []
    return f"{words.SYMBOLS[words.state(record)]} {', '.join((record.text, record.load, *more))}"
