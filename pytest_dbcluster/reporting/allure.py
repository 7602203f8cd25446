"""Allure results: a step for each claim, with message, rounds and chart attached.

The results are in ``allure-results`` of the results directory, or in the directory that the user names with
``--alluredir``. Runs that measure nothing write none.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.reporting import unwritten
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.results_directory import ResultFiles, about_run
from pytest_dbcluster.reporting.tables import closing, matrix
from pytest_dbcluster.reporting.unwritten import Unwritten, write

DIRECTORY = "allure-results"
LISTENER = "allure_listener"
OURS = (  # files of the run before that are removed
    "*-result.json",
    "*-container.json",
    "*-globals.json",
    "*-attachment*",
    "environment.properties",
    "categories.json",
)
INCONCLUSIVE = r"^pytest_dbcluster\.errors\.Inconclusive: [\s\S]*"
UNSUPPORTED = r"^pytest_dbcluster\.errors\.Unsupported: [\s\S]*"
# No inline flags: Allure reads these as regular expressions of Java (Allure 2) and of JavaScript (Allure 3).
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


def start(config: Any) -> bool:
    """Begin to collect results, for ``write_into``; return False without allure-pytest, or with ``--alluredir``."""
    if not config.pluginmanager.has_plugin("allure_pytest") or listener(config) is not None:
        return False
    from allure_pytest.listener import AllureListener

    writer = AllureListener(config)
    config.pluginmanager.register(writer, LISTENER)
    _register(config, writer)
    return True


def write_into(config: Any, results: Path) -> None:
    """Write the results of this process into ``results``; call it after ``start``, before the first test.

    A file that cannot be written is noted (``unwritten``); allure's own writer would end the run.
    """
    directory = results / DIRECTORY
    with unwritten.of(config).noted(directory):
        _register(config, _writer(directory, unwritten.of(config)))
    config.option.allure_report_dir = str(directory)


def clear(results: Path) -> None:
    """Remove the results of an earlier run. Raises OSError."""
    for pattern in OURS:
        for path in (results / DIRECTORY).glob(pattern):
            path.unlink()


def _register(config: Any, plugin: object) -> None:
    import allure_commons
    from allure_pytest.plugin import cleanup_factory

    allure_commons.plugin_manager.register(plugin)
    config.add_cleanup(cleanup_factory(plugin))


def _writer(directory: Path, lost: Unwritten) -> Any:
    """Allure's writer of files, which notes an error instead of raising it. Raises OSError for the directory."""
    from allure_commons import hookimpl
    from allure_commons.logger import AllureFileLogger

    logger: Any = AllureFileLogger

    class Writer(logger):  # type: ignore[misc]
        def _report_item(self, item: Any) -> None:
            with lost.noted(directory):
                super()._report_item(item)

        @hookimpl
        def report_attached_file(self, source: Any, file_name: str) -> None:
            with lost.noted(directory):
                super().report_attached_file(source, file_name)

        @hookimpl
        def report_attached_data(self, body: Any, file_name: str) -> None:
            with lost.noted(directory):
                super().report_attached_data(body, file_name)

    return Writer(str(directory))


def listener(config: Any) -> Any:
    """The pytest plugin that writes Allure's results of this run; None when nothing does."""
    return config.pluginmanager.get_plugin(LISTENER)


def test_begins(config: Any, release: object, seed: int) -> None:
    """Add release and seed to the result of a test, also when the test fails later.

    Allure identifies a test by its parameters: the release is one of them; the seed is shown, but excluded from them.
    """
    writer = listener(config)
    result = writer.allure_logger.get_test(None) if writer else None
    if result is None:
        return
    from allure_commons.model2 import Label, Parameter

    named = {parameter.name for parameter in result.parameters}
    if "db_release" not in named:
        result.parameters.append(Parameter(name="db_release", value=str(release)))
    if "seed" not in named:
        result.parameters.append(Parameter(name="seed", value=str(seed), excluded=True))
    if not any(label.name == "env" for label in result.labels):
        result.labels.append(Label(name="env", value=str(release)))


def claim(config: Any, record: ClaimRecord, kept: ResultFiles) -> None:
    """Add one answered claim as a step, with its message, rounds and chart attached."""
    writer = listener(config)
    if writer is None:
        return
    import allure
    from allure_commons.model2 import Parameter, StatusDetails, TestStepResult

    began = min((drawn.started for rounds in record.rounds.values() for drawn in rounds), default=time.time())
    parameters = [Parameter(name=name, value=value) for name, value in _parameters(record).items()]
    parameters.append(Parameter(name="seed", value=str(record.seed), excluded=True))
    step = TestStepResult(name=closing.one_line(record), start=int(began * 1000), parameters=parameters)
    identity = str(uuid.uuid4())
    writer.allure_logger.start_step(None, identity, step)
    allure.attach(record.message, "verdict", allure.attachment_type.TEXT)
    if kept.rounds.exists():
        allure.attach(kept.rounds.read_text(), "rounds", allure.attachment_type.CSV)
    if kept.chart is not None:
        allure.attach(kept.chart.read_text(), "chart", allure.attachment_type.SVG)
    writer.allure_logger.stop_step(
        identity,
        stop=int(time.time() * 1000),
        status=STATUSES[record.verdict.outcome] if record.asserted else "passed",
        statusDetails=StatusDetails(message=record.verdict.reason),
    )


def curve(config: Any, record: CurveRecord, points: str, chart: Path | None) -> None:
    """Add a curve as a step of the test, with its CSV text ``points`` and its chart attached."""
    writer = listener(config)
    if writer is None:
        return
    import allure
    from allure_commons.model2 import StatusDetails, TestStepResult

    now = int(time.time() * 1000)
    step = TestStepResult(name=f"curve: {record.load} over {record.field}", start=now)
    identity = str(uuid.uuid4())
    writer.allure_logger.start_step(None, identity, step)
    allure.attach(points, "points", allure.attachment_type.CSV)
    if chart is not None:
        allure.attach(chart.read_text(), "chart", allure.attachment_type.SVG)
    details = StatusDetails(message="; ".join(record.notes))
    writer.allure_logger.stop_step(identity, stop=now, status="passed", statusDetails=details)


def _parameters(record: ClaimRecord) -> dict[str, str]:
    """The parameters of a claim's step, by name."""
    published = {} if record.published is None else {"published": formatting.ratio(record.published)}
    return {
        "candidate": record.candidate,
        "baseline": record.baseline,
        "metric": record.metric,
        "release": record.release,
        "profile": record.profile,
        "ratio": wording.estimate(record.verdict),
        **published,
        **({} if record.drained is None else {"ratio with drain": formatting.ratio(record.drained)}),
        **{f"durability of {name}": text for name, text in record.durability.items()},
    }


def finish(config: Any, records: Sequence[ClaimRecord | CurveRecord], releases: matrix.Matrix | None = None) -> None:
    """Write Allure's environment and categories, and attach the matrix of releases."""
    directory = Path(config.option.allure_report_dir or "") if listener(config) else None
    if directory is None or not records:
        return
    lines = [f"{_escaped(name)}={_escaped(value)}\n" for name, value in about_run(records).items()]
    files = {"categories.json": categories(), "environment.properties": "".join(lines)}
    for name, text in files.items():
        with unwritten.of(config).noted(directory / name):
            write(directory / name, text)
    if releases is not None:
        import allure

        allure.global_attach(matrix.text(releases), "matrix", allure.attachment_type.TEXT)


def categories() -> str:
    """The text of Allure's file ``categories.json``."""
    return json.dumps(CATEGORIES, indent=2) + "\n"


def _escaped(text: str) -> str:
    """The text with the escapes of a key or value in a Java properties file."""
    for character in ("\\", ":", "=", " "):
        text = text.replace(character, f"\\{character}")
    return text
