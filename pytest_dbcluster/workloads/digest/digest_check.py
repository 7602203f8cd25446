"""Run a digested workload on a server, with its slow log on, and compare both logs transaction by transaction."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_dbcluster.errors import WorkloadError
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
VARIABLES = ("slow_query_log", "slow_query_log_file", "long_query_time", "min_examined_row_limit", "log_output")
OF_MARIADB = ("log_slow_filter", "log_slow_rate_limit")
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


def check(digest: LogDigest, given: ReadLog, workload: SQLFiles, setting: Setting) -> list[CheckedFigure]:
    """Run the workload for about as many transactions as the log has, and compare the figures of a transaction.

    Raises WorkloadError if the run leaves no log.
    """
    workload.prepare(setting)
    count = sum(one.of.count for one in digest.runnable)
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)  # noqa: PTH101  # the server may have another user
        probe = _run_logged(workload.with_seconds(PROBE_SECONDS), setting, Path(directory) / "probe.log")
        workload.reset(setting)
        rate = max(1.0, probe.operations / PROBE_SECONDS)
        seconds = min(LONGEST_SECONDS, max(SHORTEST_SECONDS, count / rate))
        path = Path(directory) / "slow.log"
        _run_logged(workload.with_seconds(seconds), setting, path)
        if not path.stat().st_size:
            raise WorkloadError("the server wrote no slow log of the check")
        run = read_log(path, given.schema)
    return compare(digest, given, run)


def _run_logged(workload: SQLFiles, setting: Setting, path: Path) -> RunResult:
    """Run a round with the slow log at ``path``."""
    path.touch()
    path.chmod(0o666)
    with logging_everything(setting.cluster.nodes[0], path):
        return workload.run(setting)


@contextlib.contextmanager
def logging_everything(node: Node, path: Path) -> Iterator[None]:
    """While the context lasts, new sessions write all statements to the slow log at ``path``."""
    names = (*VARIABLES, *(OF_MARIADB if node.release.upstream == "mariadb" else ()))
    before = {name: value for name, value in node.variables().items() if name in names}
    wanted = {
        "slow_query_log_file": str(path),
        "long_query_time": "0",
        "min_examined_row_limit": "0",
        "log_output": "FILE",
        "log_slow_filter": "",
        "log_slow_rate_limit": "1",
        "slow_query_log": "1",
    }
    node.batch([_assignment(name, value) for name, value in wanted.items() if name in names])
    try:
        yield
    finally:
        node.batch(["SET GLOBAL slow_query_log = 0"])
        node.batch([_assignment(name, before[name]) for name in names if name in before])


def _assignment(name: str, value: str) -> str:
    plain = value.replace(".", "", 1).isdigit()
    return f"SET GLOBAL {name} = {value if plain else repr(value)}"


def compare(digest: LogDigest, given: ReadLog, run: ReadLog) -> list[CheckedFigure]:
    """The figures of a transaction in the log and in the run, over the classes that the workload has."""
    shapes = Shapes()
    wanted: dict[Key, list[TransactionClass]] = {}
    for each in digest.runnable:
        texts = [shapes.of(VARIABLE.sub("0", text))[0].text for text in each.statements]
        wanted.setdefault(_key(each.of.ending, texts), []).append(each.of)
    found = [one for one in run.sessions.classes.found.values() if _key(one.ending, _texts(one, run)) in wanted]
    first, second = _figures([one for classes in wanted.values() for one in classes], given), _figures(found, run)
    names = [name for name in first if max(first[name], second.get(name, 0.0)) >= LEAST]
    known = [name for name in names if first[name] >= 0 and second.get(name, 0.0) >= 0]
    return [CheckedFigure(name, first[name], second.get(name, 0.0)) for name in known]


def _key(ending: str, texts: Iterable[str]) -> Key:
    """The statements of a class, each once: loops inside of loops have other runs for other numbers of turns."""
    return ending, tuple(dict.fromkeys(texts))


def _texts(one: TransactionClass, read: ReadLog) -> list[str]:
    return [read.texts[shape] for unit in one.runs for shape in unit]


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
