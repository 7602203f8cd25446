"""Allure results: a step for each claim, with its figures attached, in the run's results directory.

Only runs that measure write results; where the user named a directory with ``--alluredir``, they go there.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.results_directory import ResultFiles, about_run
from pytest_dbcluster.reporting.tables import closing, matrix

DIRECTORY = "allure-results"
LISTENER = "allure_listener"
OURS = (
    "*-result.json",
    "*-container.json",
    "*-globals.json",
    "*-attachment*",
    "environment.properties",
    "categories.json",
)
INCONCLUSIVE = r"^pytest_dbcluster\.errors\.Inconclusive: [\s\S]*"
UNSUPPORTED = r"^pytest_dbcluster\.errors\.Unsupported: [\s\S]*"
# Read as Java's and as JavaScript's regular expressions, so without inline flags.
CATEGORIES: Sequence[Mapping[str, Any]] = (
    {"name": "Slower, or wrong", "matchedStatuses": ["failed"]},
    {
        "name": "Inconclusive: neither pass nor failure",
        "matchedStatuses": ["skipped", "broken"],
        "messageRegex": INCONCLUSIVE,
    },
    {
        "name": "Could not tell",
        "matchedStatuses": ["broken"],
        "messageRegex": r"^(?!pytest_dbcluster\.errors\.Inconclusive: )[\s\S]*",
    },
    {"name": "This machine lacks what it needs", "matchedStatuses": ["skipped"], "messageRegex": UNSUPPORTED},
)
STATUSES: Mapping[Outcome, str] = MappingProxyType(
    {Outcome.HOLDS: "passed", Outcome.FAILS: "failed", Outcome.INCONCLUSIVE: "skipped"}
)


def start(config: Any, results: Path, *, clean: bool = True) -> None:
    """Begin to write results, if allure-pytest is there and the user has not asked for it otherwise.

    ``clean``: remove those of the run before; one process of a run does that.
    """
    if not config.pluginmanager.has_plugin("allure_pytest") or listener(config) is not None:
        return
    import allure_commons
    from allure_commons.logger import AllureFileLogger
    from allure_pytest.listener import AllureListener
    from allure_pytest.plugin import cleanup_factory

    directory = results / DIRECTORY
    for pattern in OURS:
        for path in directory.glob(pattern) if clean else ():
            path.unlink()
    logger: Any = AllureFileLogger
    made = AllureListener(config)
    config.pluginmanager.register(made, LISTENER)
    for plugin in (made, logger(str(directory))):
        allure_commons.plugin_manager.register(plugin)
        config.add_cleanup(cleanup_factory(plugin))
    config.option.allure_report_dir = str(directory)


def listener(config: Any) -> Any:
    """What writes the results of this run; None when nothing does."""
    return config.pluginmanager.get_plugin(LISTENER)


def test_begins(config: Any, release: object, seed: int) -> None:
    """Keep the versions of a server apart, whatever becomes of the test; the seed is shown and identifies nothing."""
    found = listener(config)
    result = found.allure_logger.get_test(None) if found else None
    if result is None:
        return
    from allure_commons.model2 import Label, Parameter

    named = {one.name for one in result.parameters}
    if "db_release" not in named:
        result.parameters.append(Parameter(name="db_release", value=str(release)))
    if "seed" not in named:
        result.parameters.append(Parameter(name="seed", value=str(seed), excluded=True))
    if not any(label.name == "env" for label in result.labels):
        result.labels.append(Label(name="env", value=str(release)))


def claim(config: Any, record: ClaimRecord, kept: ResultFiles) -> None:
    """One answered claim as a step with its message, rounds and chart."""
    found = listener(config)
    if found is None:
        return
    import allure
    from allure_commons.model2 import Parameter, StatusDetails, TestStepResult

    began = min((one.started for many in record.rounds.values() for one in many), default=time.time())
    parameters = [Parameter(name=name, value=value) for name, value in _parameters(record).items()]
    parameters.append(Parameter(name="seed", value=str(record.seed), excluded=True))
    step = TestStepResult(name=closing.one_line(record), start=int(began * 1000), parameters=parameters)
    identity = str(uuid.uuid4())
    found.allure_logger.start_step(None, identity, step)
    allure.attach(record.message, "verdict", allure.attachment_type.TEXT)
    allure.attach(kept.rounds.read_text(), "rounds", allure.attachment_type.CSV)
    if kept.chart is not None:
        allure.attach(kept.chart.read_text(), "chart", allure.attachment_type.SVG)
    found.allure_logger.stop_step(
        identity,
        stop=int(time.time() * 1000),
        status=STATUSES[record.verdict.outcome] if record.asserted else "passed",
        statusDetails=StatusDetails(message=record.verdict.reason),
    )


def curve(config: Any, record: CurveRecord, points: str, chart: Path | None) -> None:
    """What was measured of a curve as a step of the test, with its table and chart."""
    found = listener(config)
    if found is None:
        return
    import allure
    from allure_commons.model2 import StatusDetails, TestStepResult

    now = int(time.time() * 1000)
    step = TestStepResult(name=f"curve: {record.load} over {record.field}", start=now)
    identity = str(uuid.uuid4())
    found.allure_logger.start_step(None, identity, step)
    allure.attach(points, "points", allure.attachment_type.CSV)
    if chart is not None:
        allure.attach(chart.read_text(), "chart", allure.attachment_type.SVG)
    details = StatusDetails(message="; ".join(record.notes))
    found.allure_logger.stop_step(identity, stop=now, status="passed", statusDetails=details)


def _parameters(record: ClaimRecord) -> dict[str, str]:
    published = {} if record.published is None else {"published": closing.number(record.published)}
    return {
        "candidate": record.candidate,
        "baseline": record.baseline,
        "metric": record.metric,
        "release": record.release,
        "profile": record.profile,
        "ratio": closing.estimate(record),
        **published,
        **({} if record.drained is None else {"ratio with drain": closing.number(record.drained)}),
        **{f"durability of {name}": said for name, said in record.durability.items()},
    }


def finish(config: Any, records: Sequence[ClaimRecord | CurveRecord], releases: matrix.Matrix | None = None) -> None:
    """Say what the run ran on, how its results are to be sorted, and what its releases gave."""
    directory = Path(config.option.allure_report_dir or "") if listener(config) else None
    if directory is None or not records:
        return
    (directory / "categories.json").write_text(categories())
    lines = [f"{_escaped(name)}={_escaped(value)}\n" for name, value in about_run(records).items()]
    (directory / "environment.properties").write_text("".join(lines))
    if releases is not None:
        import allure

        allure.global_attach(matrix.text(releases), "matrix", allure.attachment_type.TEXT)


def categories() -> str:
    """The categories as a file of Allure's."""
    return json.dumps(CATEGORIES, indent=2) + "\n"


def _escaped(text: str) -> str:
    """A key or a value of a Java properties file."""
    for character in ("\\", ":", "=", " "):
        text = text.replace(character, f"\\{character}")
    return text
