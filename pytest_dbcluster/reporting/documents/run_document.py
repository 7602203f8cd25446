"""``run.json``: the run, its machine, and how each of its tests ended.

The run writes it when it begins, and replaces it whenever a test ends, and at the end. So a killed run has it too, with
``ended`` null.

The outcome of a test is one word of OUTCOMES:

- ``holds``: each of its claims holds.
- ``refuted``: a claim fails: the database is slower, or wrong.
- ``inconclusive``: a claim is neither, also if ``--db-strict`` made the test red.
- ``broken``: an error in the test, in its fixtures or in its servers. It says nothing about speed.
- ``skipped``: by a mark, by ``xfail``, or because the machine or the release lacks what it needs.
- ``passed``: the test is green and makes no claim: a curve that was drawn, a comparison that is only printed, or a test
  that does not measure.
- ``cut short``: it has begun and has not ended: the run was interrupted or killed, or is still running. Claims that it
  had made are in ``claims.jsonl``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.json_text import FileLine

FILE = "run.json"
FORMAT = 1
KNOWN = json_text.Format(
    FORMAT, {}, "name the directory of a run's results", "read only claims.jsonl, which is complete without it"
)

Outcome = Literal["holds", "refuted", "inconclusive", "broken", "skipped", "passed", "cut short"]
CUT_SHORT: Literal["cut short"] = "cut short"
BROKEN: Literal["broken"] = "broken"
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclasses.dataclass(frozen=True)
class TestDocument:
    """A test that has begun."""

    __test__ = False  # so that pytest does not collect this class as a test because of its name

    test: str
    """Its node id."""

    outcome: Outcome
    """One of OUTCOMES."""

    reason: str
    """The first line of pytest's message, empty for a green test. If the test was cut short, why the run ended."""

    seconds: float
    """The seconds of setup, call and teardown together, as far as they ended."""

    file: str = ""
    """The file of the test, relative to the root of the tests; empty if pytest does not know it."""

    line: int = 0
    """The line of the test in its file, 1-based; 0 if pytest does not know it."""


@dataclasses.dataclass(frozen=True)
class MachineDocument:
    """The machine of a run, which all servers share."""

    cpu: str
    """The model of the CPU."""

    cpus: int
    """The number of its logical CPUs."""

    cores: float
    """The cores that the run may use, a fraction with a CPU quota."""

    memory: int
    """Its memory in bytes."""

    kernel: str
    """The release of its kernel."""

    file_system: str
    """The file system of the directory that holds the servers' data, such as ``ext4``."""

    device: str
    """The device of that file system, such as ``/dev/vda``; empty if it is not on a disk."""

    id: str
    """A hash, the same for all runs of this machine, which does not reveal it; empty without a machine id."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunIdentity:
    """What identifies a run. A run that another one continued (``--db-resume``) has only this."""

    run_id: str
    """Random text, different for each run."""

    commit: str | None
    """The commit of the git repository of the project under test; None without a repository."""

    dirty: bool | None
    """Whether tracked files differ from that commit; None without a commit."""

    began: float
    """When the run began, in seconds since 1970 (UTC)."""

    plugin_version: str = ""
    """The version of pytest-dbcluster that ran it, such as ``0.1.0``; empty in a file that does not name it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunDocument(RunIdentity, FileLine):
    """The whole of ``run.json``."""

    command: str
    """The command line of the run, without passwords."""

    ended: float | None
    """When the run ended, in seconds since 1970 (UTC); None while it is running, and if it was killed."""

    cut_short: str
    """Why the run ended before all its tests were decided; empty if nothing cut it short.

    Ctrl-C, the name of a signal, the run's budget, or why pytest stopped.
    """

    selected: int
    """The number of tests that were to run; fewer have ended if the run was cut short."""

    releases: Mapping[str, str]
    """Release -> exact version, such as ``mariadb:10.11`` -> ``10.11.19``.

    The version is empty until a claim or curve was measured on that release.
    """

    machine: MachineDocument
    """The machine of the run."""

    tests: tuple[TestDocument, ...]
    """The tests in the order in which they ended, then those that have not ended.

    The tests of a run that this one continues come first, until they run again.
    """

    continues: tuple[RunIdentity, ...] = ()
    """The runs that this one continues, oldest first."""

    taken_over: int = 0
    """The number of their answers that this run took over."""

    time_spent: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The seconds of the run by group of phases, such as ``rounds`` and ``starts``; with workers, their sum.

    It is empty until the run ends, and if the run started no server.
    """

    def run_of(self, run_id: str) -> RunDocument:
        """The run with this id and what is known of it, if this run continues it; otherwise this run."""
        found = [earlier for earlier in self.continues if earlier.run_id == run_id]
        return dataclasses.replace(self, **dataclasses.asdict(found[0])) if found else self

    @property
    def ended_tests(self) -> int:
        """The number of tests that have ended, whatever their outcome."""
        return sum(test.outcome != CUT_SHORT for test in self.tests)


def read_run(directory: Path) -> RunDocument | None:
    """The document of the run in this results directory; None without ``run.json``.

    A run of an older version, or on a full disk, has no such file. Raises ConfigError for a missing directory, a file
    that cannot be opened, a newer format, and another document. The message names the file.
    """
    if not directory.is_dir():
        raise ConfigError(f"{directory}: there is no such results directory")
    path = directory / FILE
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; name a results directory that you may read") from None
    return json_text.read(text, RunDocument, str(path), KNOWN)


def run_text(document: RunDocument) -> bytes:
    """The text of ``run.json``: JSON with line breaks, for people who open it."""
    import msgspec

    return msgspec.json.format(json_text.encode(document), indent=1) + b"\n"
