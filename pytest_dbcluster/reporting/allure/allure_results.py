"""Allure results: what a run adds to the results that allure-pytest writes. No other module uses allure.

Each claim is a step with message, rounds and chart attached; a test is shown with its claims (``description``). The
results are in ``allure-results`` of the results directory, or in the directory that the user names with
``--alluredir``. Runs that measure nothing write none.

The ``testCaseId`` of a test is its node id without the release; its ``historyId`` has the release too. So Allure shows
one test on several releases side by side, and never mixes two tests.
"""

from __future__ import annotations

import dataclasses
import hashlib
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
from pytest_dbcluster.reporting.allure import description, earlier_results, performance
from pytest_dbcluster.reporting.allure.description import Shown
from pytest_dbcluster.reporting.allure.earlier_results import EarlierResults
from pytest_dbcluster.reporting.documents.claim_id import bare, key_of_test
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.results_directory import ResultFiles, about_run
from pytest_dbcluster.reporting.tables import closing, matrix
from pytest_dbcluster.reporting.unwritten import Unwritten, write

DIRECTORY = "allure-results"
LISTENER = "allure_listener"
ADDITIONS = "dbcluster_allure_additions"
RELEASE, ENVIRONMENT = "db_release", "env"  # the parameter and the label with a test's release
SEVERAL = "several releases"  # the environment of tests that name the releases which they compare
NAMELESS = "::<lambda>"
MACHINE = ("host", "thread")  # labels that only name the place where a test ran
UNKNOWN = "unknown"  # Allure's status of an inconclusive claim
INCONCLUSIVE = rf"^{description.INCONCLUSIVE}[\s\S]*"
UNSUPPORTED = r"^pytest_dbcluster\.errors\.Unsupported: [\s\S]*"
# No inline flags: Allure reads these as regular expressions of Java (Allure 2) and of JavaScript (Allure 3).
CATEGORIES: Sequence[Mapping[str, Any]] = (
    {"name": "Slower, or wrong", "matchedStatuses": ["failed"]},
    {
        "name": "Inconclusive: neither pass nor failure",
        "matchedStatuses": [UNKNOWN, "broken"],
        "messageRegex": INCONCLUSIVE,
    },
    {
        "name": "Broken: could not tell",
        "matchedStatuses": ["broken"],
        "messageRegex": rf"^(?!{description.INCONCLUSIVE})[\s\S]*",
    },
    {"name": "This machine lacks what it needs", "matchedStatuses": ["skipped"], "messageRegex": UNSUPPORTED},
)
STATUSES: Mapping[Outcome, str] = MappingProxyType(
    {Outcome.HOLDS: "passed", Outcome.FAILS: "failed", Outcome.INCONCLUSIVE: UNKNOWN}
)


def start(config: Any) -> bool:
    """Begin to collect results, for ``write_into``; return False without allure-pytest, or with ``--alluredir``."""
    if not config.pluginmanager.has_plugin("allure_pytest"):
        return False
    additions = _additions(config)
    config.pluginmanager.register(additions, ADDITIONS)
    _register(config, additions)
    if listener(config) is not None:
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
    with unwritten.of(config).note(directory):
        _register(config, _writer(directory, unwritten.of(config)))
        if config.option.db_resume:
            config.pluginmanager.get_plugin(ADDITIONS).earlier = EarlierResults(directory)
    config.option.allure_report_dir = str(directory)


def clear(results: Path, *, resume: bool = False) -> None:
    """Remove the results of an earlier run; with ``resume`` only incomplete ones. Raises OSError."""
    if resume:
        earlier_results.tidy(results / DIRECTORY)
        return
    for pattern in earlier_results.OURS:
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
            with lost.note(directory):
                super()._report_item(item)

        @hookimpl
        def report_attached_file(self, source: Any, file_name: str) -> None:
            with lost.note(directory):
                super().report_attached_file(source, file_name)

        @hookimpl
        def report_attached_data(self, body: Any, file_name: str) -> None:
            with lost.note(directory):
                super().report_attached_data(body, file_name)

    return Writer(str(directory))


@dataclasses.dataclass
class Addition:
    """What a result gets besides what allure-pytest has written."""

    identity: str
    """The identity of its test."""

    release: str
    """The release of its test; empty if the test has none."""

    shown: list[Shown] = dataclasses.field(default_factory=list)
    """The claims and curves of its test."""


def _additions(config: Any) -> Any:
    """The plugin of allure that completes each result of a measuring test just before it is written.

    It removes the result that the test had in a run which this one continues.
    """
    from allure_commons import hookimpl

    class Additions:
        """of: by the uuid of a result, its addition. earlier: of the run that is continued; None without one."""

        def __init__(self) -> None:
            self.of: dict[str, Addition] = {}
            self.earlier: EarlierResults | None = None

        @hookimpl(tryfirst=True)
        def report_result(self, result: Any) -> None:
            """Complete a result."""
            result.labels[:] = [label for label in result.labels if label.name not in MACHINE]
            if added := self.of.pop(result.uuid, None):
                self._complete(result, added)
            if self.earlier:
                with unwritten.of(config).note(Path(config.option.allure_report_dir)):
                    self.earlier.replace(result.historyId)

        def _complete(self, result: Any, added: Addition) -> None:
            result.name = bare(result.name, added.release) if added.release else result.name
            result.testCaseId, result.historyId = digest(added.identity), digest(added.identity, added.release)
            _reword(result, added.shown)
            why = result.statusDetails.message if result.status == UNKNOWN else ""
            if added.shown or why:
                result.name = description.name(result.name, added.shown, inconclusive=bool(why))
                told = description.html(result.description or "", added.shown, why)
                result.descriptionHtml = (result.descriptionHtml or "") + told

        @hookimpl(tryfirst=True)
        def report_container(self, container: Any) -> None:
            """Leave out the parts that end pytest's fixtures, because they have neither a name nor a status."""
            container.afters[:] = [step for step in container.afters if not step.name.endswith(NAMELESS)]

    return Additions()


def _reword(result: Any, shown: Sequence[Shown]) -> None:
    """Show an inconclusive claim as inconclusive, and the message of a claim as one line."""
    before = (result.statusDetails and result.statusDetails.message) or ""
    said, folded = description.message(before, shown)
    if said == before:
        return
    result.statusDetails.message, result.statusDetails.trace = said, folded or None
    if result.status == "skipped" and said.startswith(description.INCONCLUSIVE):
        result.status = UNKNOWN


def digest(*parts: str) -> str:
    """The id of a test in Allure, from its key and, for the ``historyId``, its release."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def listener(config: Any) -> Any:
    """The pytest plugin that writes Allure's results of this run; None if there is none."""
    return config.pluginmanager.get_plugin(LISTENER)


def test_begins(config: Any, test: str, release: str, seed: int) -> None:
    """Add identity, release and seed to the result of a test before its body.

    So a failing test has them too. test: its node id. release: empty for a test that names its own. The seed is shown,
    but does not identify the test.
    """
    writer, additions = listener(config), config.pluginmanager.get_plugin(ADDITIONS)
    result = writer.allure_logger.get_test(None) if writer and additions else None
    if result is None:
        return
    from allure_commons.model2 import Label, Parameter

    additions.of[result.uuid] = Addition(key_of_test(test, *([release] if release else [])), release)
    others = [parameter for parameter in result.parameters if parameter.name not in (RELEASE, "seed")]
    own = [Parameter(name=RELEASE, value=release)] if release else []
    result.parameters[:] = [*others, *own, Parameter(name="seed", value=str(seed), excluded=True)]
    result.labels.append(Label(name=ENVIRONMENT, value=release or SEVERAL))


def _show(config: Any, record: ClaimRecord | CurveRecord, chart: Path | None) -> str:
    """Add a record to the description of the test that runs; return the text of its chart, empty for none."""
    text = chart.read_text() if chart is not None and chart.exists() else ""
    result = listener(config).allure_logger.get_test(None)
    additions = config.pluginmanager.get_plugin(ADDITIONS)
    if result is not None and result.uuid in additions.of:
        additions.of[result.uuid].shown.append(Shown(record, text))
    return text


def claim(config: Any, record: ClaimRecord, kept: ResultFiles) -> None:
    """Add one answered claim as a step, with its message, rounds and chart attached, and to the description."""
    writer = listener(config)
    if writer is None:
        return
    import allure
    from allure_commons.model2 import Parameter, StatusDetails, TestStepResult

    chart = _show(config, record, kept.chart)

    began = min((drawn.started for rounds in record.rounds.values() for drawn in rounds), default=time.time())
    parameters = [Parameter(name=name, value=value) for name, value in _parameters(record).items()]
    parameters.append(Parameter(name="seed", value=str(record.seed), excluded=True))
    step = TestStepResult(name=closing.one_line(record), start=int(began * 1000), parameters=parameters)
    identity = str(uuid.uuid4())
    writer.allure_logger.start_step(None, identity, step)
    allure.attach(record.message, "verdict", allure.attachment_type.TEXT)
    if kept.rounds.exists():
        allure.attach(kept.rounds.read_text(), "rounds", allure.attachment_type.CSV)
    if kept.commits.exists():
        allure.attach(kept.commits.read_text(), "commits", allure.attachment_type.CSV)
    if chart:
        allure.attach(chart, "chart", allure.attachment_type.SVG)
    writer.allure_logger.stop_step(
        identity,
        stop=int(time.time() * 1000),
        status=STATUSES[record.verdict.outcome] if record.asserted else "passed",
        statusDetails=StatusDetails(message=record.verdict.reason),
    )


def curve(config: Any, record: CurveRecord, points: str, chart: Path | None) -> None:
    """Add a curve as a step of the test and to the description, with its CSV text ``points`` and chart."""
    writer = listener(config)
    if writer is None:
        return
    import allure
    from allure_commons.model2 import StatusDetails, TestStepResult

    now = int(time.time() * 1000)
    step = TestStepResult(name=f"curve: {record.title}", start=now)
    identity = str(uuid.uuid4())
    writer.allure_logger.start_step(None, identity, step)
    allure.attach(points, "points", allure.attachment_type.CSV)
    if drawn := _show(config, record, chart):
        allure.attach(drawn, "chart", allure.attachment_type.SVG)
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
        ("ratio" if record.verdict.claim.of_kind.is_ratio else "measured"): wording.estimate(record.verdict),
        **published,
        **({} if record.drained is None else {"ratio with drain": formatting.ratio(record.drained)}),
        **{f"durability of {name}": text for name, text in record.durability.items()},
    }


def finish(config: Any, records: Sequence[ClaimRecord | CurveRecord], releases: matrix.Matrix | None = None) -> None:
    """Write Allure's environment, categories and metrics, and attach the matrix of releases."""
    directory = Path(config.option.allure_report_dir or "") if listener(config) else None
    if directory is None or not records:
        return
    files = {
        "categories.json": categories(),
        "environment.properties": properties(about_run(records)),
        performance.FILE: performance.text({"": [one for one in records if isinstance(one, ClaimRecord)]}),
    }
    for name, text in files.items():
        with unwritten.of(config).note(directory / name):
            write(directory / name, text)
    if releases is not None:
        import allure

        allure.global_attach(matrix.text(releases), "matrix", allure.attachment_type.TEXT)


def categories() -> str:
    """The text of Allure's file ``categories.json``."""
    return json.dumps(CATEGORIES, indent=2) + "\n"


def properties(values: Mapping[str, str]) -> str:
    """The text of Allure's file ``environment.properties``."""
    return "".join(f"{_escape(name)}={_escape(value)}\n" for name, value in values.items())


def _escape(text: str) -> str:
    """The text with the escapes of a key or value in a Java properties file."""
    for character in ("\\", ":", "=", " "):
        text = text.replace(character, f"\\{character}")
    return text
