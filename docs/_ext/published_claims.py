"""The claims of the suites about published measurements, without a measurement.

``claims`` starts a process in which pytest collects the suites. It calls the body of each test that has a mark
``published``, with a ``measure`` that has no clusters: each claim is noted, and no round is drawn.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.curve import Curve
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.evidence import ResolvedSpec, SpecDocument
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.plugin.calls.measure_call import MeasureCall
from pytest_dbcluster.plugin.fixture import Done, Measure
from pytest_dbcluster.reporting.documents.claim_id import bare, claim_id
from pytest_dbcluster.reporting.published import Published
from pytest_dbcluster.rounds import open_loop
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.spec import DEFAULT_RELEASE, PROFILES, ClusterSpec, ReleaseName
from pytest_dbcluster.testbed import comparability, names
from pytest_dbcluster.testbed.options.levels import specs as level_specs
from pytest_dbcluster.testbed.variants import Variant

if TYPE_CHECKING:
    from pytest_dbcluster.plugin.settings import Settings
    from pytest_dbcluster.reporting.resume.earlier import Earlier
    from pytest_dbcluster.workloads.workload import Setting, Workload

ROOT = Path(__file__).parents[2]
MARK = "published"


@dataclasses.dataclass(frozen=True)
class PublishedClaim:
    """A claim, or a comparison without a claim, of a test with a mark ``published``."""

    claim_id: str
    """As in ClaimRecord."""

    work: str
    """The name of the file of the published measurement."""

    table: int | None
    """The number of its table; None without one."""

    sentence: int | None
    """The number of its finding, from 0; None without one."""

    test: str
    """The node id of the test without its parameters."""

    text: str
    """The claim as the test writes it."""

    load: str
    """The name of the workload."""

    ratios: tuple[float | None, ...]
    """The published ratios, candidate / baseline, of each step of an order or of the only pair; None without one."""


def claims(root: Path = ROOT) -> list[PublishedClaim]:
    """The published claims of the suites of a checkout, in the order of the tests, each once.

    Raises RuntimeError with pytest's output if the suites cannot be collected, or a test cannot be called.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "claims.json"
        words = [sys.executable, str(Path(__file__).resolve()), str(output)]
        done = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or not output.exists():
            raise RuntimeError(f"cannot list the published claims of {root}:\n{done.stdout}{done.stderr}")
        found = json.loads(output.read_text())
        return [PublishedClaim(**{**claim, "ratios": tuple(claim["ratios"])}) for claim in found]


class _NoRounds(RoundSource):
    """What a measurement knows of its variants before it starts a cluster."""

    def __init__(self, call: MeasureCall) -> None:
        workload, release = call.workload, call.release
        several = [*call.on] * (len(workload) if isinstance(workload, Mapping) else 1)
        several = level_specs(call.on[0], call.options, {}) if call.options else several
        variants = [SimpleNamespace(spec=spec, release_name=str(release)) for spec in several]
        workloads, self.names = names.pairs(workload, cast("list[Variant]", variants))
        self.mode = "" if isinstance(workload, Mapping) else workload.mode_name
        self.load = call.called or " and ".join(dict.fromkeys(map(str, workloads)))
        self.metric = comparability.metric(workloads)
        self.arrival_rate = open_loop.ArrivalRate.of(comparability.rate(workloads))
        self.resolved = [_resolved(spec, release) for spec in several]

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Raise AssertionError: nothing is measured here."""
        raise AssertionError(f"{self.load}: a test of a published measurement draws a round without a claim")

    def check(self) -> None:
        """Do nothing, because there are no clusters."""


def _resolved(spec: ClusterSpec, release: ReleaseName) -> ResolvedSpec:
    """The variant with its own options; a my.cnf counts as one."""
    options = {**dict(spec.options), **dict.fromkeys(spec.cnf, "")}
    document = SpecDocument(
        spec.topology, spec.nodes, str(release), "", spec.proxy or "", options, tuple(spec.cnf), "", "", ""
    )
    return ResolvedSpec(spec.short_name, document, options)


class _Noted(Answer):
    """The answer of a claim that was only noted; it is true."""

    def __init__(self) -> None:
        self.variants, self.asserted = (), False


class _NoSession:
    """The session of a run that measures nothing. ``note`` gets each question with its source."""

    settings = cast("Settings", SimpleNamespace(rules=lambda: Rules(seed=0)))
    # The test has an answer, so nothing asks whether its rounds fit its budget.
    earlier = cast("Earlier", SimpleNamespace(has=lambda test, release: True))

    def __init__(self, note: Callable[[_NoRounds, Question], None]) -> None:
        self._note = note

    def measurement(self, call: MeasureCall) -> Measurement:
        """A measurement whose claims are noted."""
        source = _NoRounds(call)

        def recall(question: Question) -> Answer:
            self._note(source, question)
            return _Noted()

        return Measurement(source, Rules(seed=0), test=call.item.nodeid, number=call.number, recall=recall)

    def use(self, load: Workload, spec: ClusterSpec, release: ReleaseName, does: Callable[[Setting], Done]) -> Done:
        """Raise AssertionError: nothing runs here."""
        raise AssertionError(f"{load}: a test of a published measurement uses {spec} without a claim")

    def curve_begins(self, curve: Curve) -> None:
        """Do nothing: its points are noted when they are claimed."""

    def available(
        self, releases: Sequence[ReleaseName], on: Sequence[ClusterSpec]
    ) -> tuple[list[ReleaseName], list[str]]:
        """Raise AssertionError: no published measurement compares releases."""
        raise AssertionError(f"{', '.join(map(str, on))}: a test of a published measurement has a curve over releases")


class _Listing:
    """The plugin that writes the claims of all collected tests to a file."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Call each published test, and write the claims."""
        found: dict[str, PublishedClaim] = {}
        for item in session.items:
            if mark := item.get_closest_marker(MARK):
                for claim in _claims(cast("pytest.Function", item), mark):
                    found.setdefault(claim.claim_id, claim)
        self._output.write_text(json.dumps([dataclasses.asdict(claim) for claim in found.values()]))


def _claims(item: pytest.Function, mark: pytest.Mark) -> list[PublishedClaim]:
    """The claims of a test, which is called once. Raises what its body raises."""
    found: list[PublishedClaim] = []
    published = Published.of(item, item.config.rootpath)
    parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    given = {"db_release": ReleaseName.parse(DEFAULT_RELEASE), "db_profile": PROFILES[0], **parameters}

    def note(source: _NoRounds, question: Question) -> None:
        of_kind = question.claim.of_kind
        written = [source.names[number] for number in question.variants]
        written = written[::-1] if of_kind.candidate_last else written
        releases = [source.resolved[number].document.release for number in question.variants]
        found.append(
            PublishedClaim(
                claim_id=claim_id(item.nodeid, releases, question.identity(source.names), source.load),
                work=mark.args[0],
                table=mark.kwargs.get("table"),
                sentence=mark.kwargs.get("sentence"),
                test=bare(item.nodeid, releases[0]).partition("[")[0],
                text=question.claim.call(tuple(written), question.metric, source.metric),
                load=source.load,
                ratios=() if of_kind.composed or published is None else _ratios(published, source, question),
            )
        )

    measure = Measure(_NoSession(note), cast("ReleaseName", given["db_release"]), item, [])
    own = {name: measure if name == "measure" else given[name] for name in item._fixtureinfo.argnames}
    item.obj(**own)
    return found


def _ratios(published: Published, source: _NoRounds, question: Question) -> tuple[float | None, ...]:
    """The published ratio of each comparison of a claim, as a test writes them: of an order the slowest step first."""
    steps = [(source.resolved[fast], source.resolved[slow]) for fast, slow in question.comparisons[::-1]]
    return tuple(published.ratio(fast, slow, question.metric, source.mode) for fast, slow in steps)


def main(output: Path) -> int:
    """Write the claims of the suites in the current directory to a file; return pytest's exit code."""
    # Without rewritten assertions, because the package is imported before pytest begins.
    words = ["suites", "--collect-only", "-q", "--assert=plain", "-p", "no:cacheprovider"]
    return int(pytest.main(words, plugins=[_Listing(output)]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
