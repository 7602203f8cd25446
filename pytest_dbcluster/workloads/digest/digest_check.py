"""Run a digested workload on a server, with its slow log on, and compare both logs transaction by transaction."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dbcluster.errors import WorkloadError
from pytest_dbcluster.workloads.digest.class_outcomes import ClassOutcome
from pytest_dbcluster.workloads.digest.digest_directory import ReadLog, read_log
from pytest_dbcluster.workloads.digest.digest_report import LogDigest
from pytest_dbcluster.workloads.digest.log.statement_shapes import Shapes
from pytest_dbcluster.workloads.digest.log.transaction_classes import TransactionClass

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.rounds.round import RunResult
    from pytest_dbcluster.workloads.sql.workload import SQLFiles
    from pytest_dbcluster.workloads.workload import Setting

WITHIN = 0.1
PROBE_SECONDS, LONGEST_SECONDS, SHORTEST_SECONDS = 1.0, 30.0, 1.0
MOST_THREADS = 16
LEAST = 0.01  # of a figure a transaction; smaller ones are not compared
# Variables of servers that log everything, and those of MariaDB alone.
LOGGING = {"long_query_time": "0", "min_examined_row_limit": "0", "log_output": "FILE"}
OF_MARIADB = {"log_slow_filter": "", "log_slow_rate_limit": "1"}
VARIABLE = re.compile(r"(?<!:):[A-Za-z_]\w*")
Key = tuple[str, tuple[str, ...]]  # ending, and the texts of the statements


@dataclasses.dataclass(frozen=True)
class CheckedFigure:
    """One figure of a transaction, in both logs."""

    name: str
    """Its name, such as ``Com_select``."""

    in_log: float
    """Its mean for a transaction of the log."""

    in_run: float
    """Its mean for a transaction of the run."""

    @property
    def difference(self) -> float:
        """The relative difference of the run."""
        return self.in_run / self.in_log - 1 if self.in_log else math.inf

    @property
    def fits(self) -> bool:
        """Whether the difference is at most WITHIN."""
        return abs(self.difference) <= WITHIN


@dataclasses.dataclass(frozen=True)
class CheckedTransaction:
    """One transaction, or several with the same statements, in both logs."""

    outcomes: tuple[ClassOutcome, ...]
    """Its classes."""

    count: int
    """The number of transactions in the log."""

    figures: Mapping[str, CheckedFigure]
    """Its figures, by name."""

    @property
    def files(self) -> str:
        """Its files."""
        return ", ".join(one.file for one in self.outcomes)


def check(digest: LogDigest, given: ReadLog, workload: SQLFiles, setting: Setting) -> ReadLog:
    """Run the workload for about as many transactions as the log has, and return the log of the run.

    Raises WorkloadError if the run leaves no log.
    """
    workload.prepare(setting)
    count = sum(one.of.count for one in digest.runnable)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)  # noqa: PTH101  # the server may have another user
        probe = _run_logged(workload.with_seconds(PROBE_SECONDS), setting, Path(directory) / "probe.log")
        workload.populate(setting)  # a reset would leave the rows that the probe has updated
        rate = max(1.0, probe.operations / PROBE_SECONDS)
        seconds = min(LONGEST_SECONDS, max(SHORTEST_SECONDS, count / rate))
        path = Path(directory) / "slow.log"
        _run_logged(workload.with_seconds(seconds), setting, path)
        if not path.stat().st_size:
            raise WorkloadError("the server wrote no slow log of the check")
        return read_log(path, given.schema)


def _run_logged(workload: SQLFiles, setting: Setting, path: Path) -> RunResult:
    """Run a round with the slow log at ``path``."""
    path.touch()
    path.chmod(0o666)
    with logging_everything(setting.cluster.nodes[0], path):
        return workload.run(setting)


@contextlib.contextmanager
def logging_everything(node: Node, path: Path) -> Iterator[None]:
    """While the context lasts, new sessions write all statements to the slow log at ``path``."""
    own = OF_MARIADB if node.release.upstream == "mariadb" else {}
    wanted = {"slow_query_log_file": str(path), **LOGGING, **own, "slow_query_log": "1"}
    before = {name: value for name, value in node.variables().items() if name in wanted}
    node.batch([_assignment(name, value) for name, value in wanted.items()])
    try:
        yield
    finally:
        node.batch(["SET GLOBAL slow_query_log = 0", *(_assignment(name, value) for name, value in before.items())])


def _assignment(name: str, value: str) -> str:
    plain = value.replace(".", "", 1).isdigit()
    return f"SET GLOBAL {name} = {value if plain else repr(value)}"


def compare(digest: LogDigest, given: ReadLog, run: ReadLog) -> list[CheckedFigure]:
    """The figures of a transaction in the log and in the run, over the classes that the workload has."""
    pairs = _pairs(digest, run)
    logged, ran = [one.of for outcomes, _ in pairs for one in outcomes], [one for _, found in pairs for one in found]
    return list(_pair_figures(logged, given, ran, run).values())


def compare_each(digest: LogDigest, given: ReadLog, run: ReadLog) -> list[CheckedTransaction]:
    """The figures of each transaction that ran."""
    return [
        CheckedTransaction(
            tuple(outcomes), sum(one.of.count for one in outcomes),
            _pair_figures([one.of for one in outcomes], given, found, run),
        )
        for outcomes, found in _pairs(digest, run)
        if found
    ]  # fmt: skip


def responsible(checked: Sequence[CheckedTransaction]) -> list[tuple[CheckedTransaction, str]]:
    """The transactions without which the figures of the others agree, each with how it differs.

    Those that differ most are the first. All are weighed by their numbers in the log.
    """
    kept, found = list(checked), list[tuple[CheckedTransaction, str]]()
    while len(kept) > 1 and (apart := [figure for figure in _total(kept) if not figure.fits]):
        name = max(apart, key=lambda figure: abs(figure.difference)).name
        more = next(figure for figure in apart if figure.name == name).difference > 0
        worst = max(kept, key=lambda one: one.count * _excess(one, name) * (1 if more else -1))
        figure = worst.figures[name]
        kept.remove(worst)
        found.append((worst, f"{name} is {figure.in_log:.3g} in the log, {figure.in_run:.3g} in the check"))
    return found


def _excess(one: CheckedTransaction, name: str) -> float:
    """How much more of a figure a transaction has in the run."""
    figure = one.figures.get(name)
    return figure.in_run - figure.in_log if figure else 0.0


def _total(checked: Sequence[CheckedTransaction]) -> list[CheckedFigure]:
    """The figures of a mean transaction of several."""
    count = sum(one.count for one in checked)
    found = []
    for name in dict.fromkeys(name for one in checked for name in one.figures):
        parts = [(one.count, one.figures[name]) for one in checked if name in one.figures]
        first = sum(weight * figure.in_log for weight, figure in parts) / count
        second = sum(weight * figure.in_run for weight, figure in parts) / count
        if max(first, second) >= LEAST:
            found.append(CheckedFigure(name, first, second))
    return found


def _pairs(digest: LogDigest, run: ReadLog) -> list[tuple[list[ClassOutcome], list[TransactionClass]]]:
    """The classes of the workload that have the same statements, each with those of the run."""
    shapes = Shapes()
    wanted: dict[Key, tuple[list[ClassOutcome], list[TransactionClass]]] = {}
    for each in digest.runnable:
        texts = [shapes.of(VARIABLE.sub("0", text))[0].text for text in each.statements]
        wanted.setdefault(_key(each.of.ending, texts), ([], []))[0].append(each)
    for one in run.sessions.classes.found.values():
        if pair := wanted.get(_key(one.ending, [run.texts[shape] for shape in one.shapes])):
            pair[1].append(one)
    return list(wanted.values())


def _pair_figures(
    logged: Sequence[TransactionClass], given: ReadLog, ran: Sequence[TransactionClass], run: ReadLog
) -> dict[str, CheckedFigure]:
    """The figures of a mean transaction in both logs; those that are small in both are left out."""
    first, second = _figures(logged, given), _figures(ran, run)
    found = {}
    for name, value in first.items():
        other = second.get(name, 0.0)
        if max(value, other) >= LEAST and value >= 0 and other >= 0:
            found[name] = CheckedFigure(name, value, other)
    return found


def _key(ending: str, texts: Iterable[str]) -> Key:
    """The statements of a class, each once: loops inside of loops have other runs for other numbers of turns."""
    return ending, tuple(dict.fromkeys(texts))


def _figures(classes: Sequence[TransactionClass], read: ReadLog) -> dict[str, float]:
    """Figures of a mean transaction; -1 for rows that the log does not tell."""
    count = sum(one.count for one in classes) or 1
    found: collections.Counter[str] = collections.Counter()
    for one in classes:
        weight = one.count / len(one.samples)
        for sample in one.samples:
            for run, copies in enumerate(sample.copies):
                for shape in one.runs[run]:
                    found[f"Com_{read.roles[shape].verb.lower()}"] += copies * weight  # type: ignore[assignment]
    figures = {name: value / count for name, value in sorted(found.items())}
    for name in ("sent", "examined", "affected"):
        values = [getattr(one, name) for one in classes]
        known = read.log.kind == "slow log" and all(value >= 0 for value in values)
        figures[f"Rows_{name}"] = sum(values) / count if known else -1.0
    return figures


def lines(figures: list[CheckedFigure]) -> list[str]:
    """The comparison as text."""
    width = max(len(figure.name) for figure in figures) if figures else 0
    found = [f"{'a transaction':{width}}  {'log':>9}  {'run':>9}"]
    for figure in figures:
        mark = "" if figure.fits else "  more than 10 % apart"
        shown = f"{figure.in_log:9.3f}  {figure.in_run:9.3f}  {100 * figure.difference:+6.1f} %"
        found.append(f"{figure.name:{width}}  {shown}{mark}")
    return found
