"""JUnit: the claims of each test in the XML of ``--junit-xml``.

A test's ``system-out`` has the message of each of its claims. With ``junit_family = xunit1`` each claim is also a
property. pytest's default, xunit2, allows no property in a test case, so we write none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import STATES, Outcome, Verdict
from pytest_dbcluster.formatting import printable
from pytest_dbcluster.redaction import redact
from pytest_dbcluster.reporting.tables import matrix

CLAIMS = "dbcluster_claims"  # attribute of the report of a teardown: the claims of the test
OURS = "dbcluster_"  # the names of our properties begin with it, except that of the release
WRITES_OUTPUT = ("system-out", "out-err", "all")  # values of junit_logging with which pytest writes system-out itself
SECTION = "Captured stdout call"


def claims_of(answers: Iterable[Any]) -> list[dict[str, str]]:
    """The claims of a test as JSON that a worker of pytest-xdist can send: text, result and message of each."""
    return [
        {
            "text": f"{answer.text} {answer.load}",
            "result": _result(answer.verdict),
            "message": redact(answer.message),
        }
        for answer in answers
    ]


def _result(verdict: Verdict) -> str:
    """State and ratio of a claim, and why it is inconclusive."""
    reason = f": {verdict.reason}" if verdict.outcome is Outcome.INCONCLUSIVE else ""
    return f"{STATES[verdict.outcome]} {wording.estimate(verdict)}{reason}"


class JUnit:
    """The plugin that adds claims to the XML, in the process that writes it. Its methods are hooks of pytest.

    ``xml`` is pytest's own plugin that writes the file.
    """

    def __init__(self, xml: Any) -> None:
        self._xml = xml

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the claims of a test when its teardown has ended: pytest completes its element right after this."""
        if report.when != "teardown":
            return
        claims: list[Mapping[str, str]] = getattr(report, CLAIMS, [])
        if self._xml.family == "xunit1":
            report.user_properties += [(printable(claim["text"]), printable(claim["result"])) for claim in claims]
        elif report.passed:
            others = [pair for pair in report.user_properties if not pair[0].startswith(OURS)]
            report.user_properties[:] = [pair for pair in others if pair[0] != matrix.RELEASE]
        if text := "\n\n".join(printable(claim["message"], lines=True) for claim in claims):
            self._write(report, text)

    def _write(self, report: Any, text: str) -> None:
        """Add the text to ``system-out``; a test case may have only one."""
        if self._xml.logging in WRITES_OUTPUT:
            report.sections.append((SECTION, text))
            return
        element = ElementTree.Element("system-out")
        element.text = text
        self._xml.node_reporter(report).append(element)


def begin(config: Any) -> None:
    """Add claims to the XML of this run, if it writes one."""
    plugins = config.pluginmanager.get_plugins()
    xml = next((plugin for plugin in plugins if type(plugin).__name__ == "LogXML"), None)
    if xml is not None:
        config.pluginmanager.register(JUnit(xml))
