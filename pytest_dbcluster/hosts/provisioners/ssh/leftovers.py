"""Leftovers of killed runs on remote machines, for ``dbcluster ps``, ``down`` and ``reap``.

This needs no local record: each session of a run has a directory on its machine that names its owner and its process
(``remote_programs.session``). The session lives while that process does. A broken connection or a killed run ends it
after at most 45 s. Something stays only if the machine's disk was full, or if the session's shell was killed.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import secrets
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import printable, quantity, size
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.access import BASE, Access, parse_machines

SECONDS = 120.0  # timeout for one machine; removing a large directory takes a while
Answers = Sequence[Sequence[str]]
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class LeftRun:
    """A run on one machine."""

    machine: str
    """The machine as the user names it."""

    run_id: str
    """The id of the run."""

    owner: str
    """The owner of the run, ``USER@CONTROLLER``."""

    since: str
    """When the first session of the run began."""

    alive: bool
    """Whether a session of the run is alive."""

    size: int
    """Size of its files, in bytes."""

    processes: int
    """Number of processes with its marks."""


@dataclasses.dataclass(frozen=True)
class FoundLeftovers:
    """Our runs and programs on one machine."""

    machine: str
    """The machine as the user names it."""

    runs: Sequence[LeftRun]
    """The runs."""

    programs: int = 0
    """Size of the programs that stay for later runs, in bytes."""


@dataclasses.dataclass(frozen=True)
class EndedLeftovers:
    """What we ended on one machine, and what is left."""

    machine: str
    """The machine as the user names it."""

    done: Sequence[str] = ()
    """A clause for each thing that we ended."""

    left: Sequence[str] = ()
    """A clause with the reason for each thing that is left."""


class Leftovers:
    """Leftovers on machines. It has the arguments of the provisioner. Raises ConfigError.

    ``addresses``: machine -> its private address; empty for that of ssh. ``problems``: machine -> why it did not answer
    the last call.
    """

    def __init__(
        self,
        *,
        machines: Sequence[str] = (),
        load_machines: Sequence[str] = (),
        config: Path | None = None,
        keys: Path | None = None,
        base: str = BASE,
    ) -> None:
        if not machines and not load_machines:
            raise ConfigError("--db-provisioner ssh needs machines: --db-host USER@ADDRESS, once for each")
        hosts, loads = parse_machines("--db-host", machines), parse_machines("--db-load-host", load_machines)
        self.addresses = {**loads, **hosts}
        self.targets = tuple({**hosts, **loads})
        self.access = Access(config, keys, base)
        self.problems: Mapping[str, str] = {}

    def look(self) -> list[FoundLeftovers]:
        """Our runs and programs on each machine that answers."""
        return self._each(lambda token: remote_programs.list_command(base=self.access.base, token=token), parse_found)

    def end(self, run_id: str) -> list[EndedLeftovers]:
        """End a run of this user on all machines. A live run must belong to this controller.

        If it belongs to another controller, or does not exist, raises ConfigError and ends nothing.
        """
        if not runs.RUN_ID.fullmatch(run_id):
            raise ConfigError(f"{printable(run_id)!r} is not an id of a run; dbcluster ps --provisioner ssh lists them")
        known = [run for one in self.look() for run in one.runs]
        problems = self.problems
        its = [run for run in known if run.run_id == run_id]
        if foreign := next((run for run in its if run.alive and run.owner != remote_programs.user()), None):
            raise ConfigError(
                f"run {run_id} is alive on {foreign.machine} and belongs to {foreign.owner}: end it where it started"
            )
        if not its and not problems:
            there = ", ".join(dict.fromkeys(run.run_id for run in known)) or "none"
            raise ConfigError(f"no run on these machines has the id {run_id!r}; known: {there}")
        ended = self._end(run=run_id, who=remote_programs.user())
        self.problems = {**problems, **self.problems}
        return ended

    def reap(self, *, programs: bool = False) -> list[EndedLeftovers]:
        """End what dead runs have left on all machines. programs: also remove the programs that were sent."""
        return self._end(programs=programs)

    def _end(self, *, run: str = "", who: str = "", programs: bool = False) -> list[EndedLeftovers]:
        def command(token: str) -> str:
            return remote_programs.end_command(base=self.access.base, token=token, run=run, who=who, programs=programs)

        return self._each(command, parse_ended)

    def _each(self, command: Callable[[str], str], read: Callable[[str, Answers], Result]) -> list[Result]:
        """Query all machines concurrently. Failures go to ``problems``."""
        with concurrent.futures.ThreadPoolExecutor(len(self.targets)) as threads:
            asked = {target: threads.submit(self._ask, target, command) for target in self.targets}
        results, problems = [], {}
        for target, future in asked.items():
            try:
                results.append(read(target, future.result()))
            except ProvisionError as error:
                problems[target] = str(error)
        self.problems = problems
        return results

    def _ask(self, target: str, command: Callable[[str], str]) -> Answers:
        token = f"dbcluster-{secrets.token_hex(8)}"  # a login shell may print anything
        try:
            done = self.access.run(target, command(token), seconds=SECONDS)
        except subprocess.TimeoutExpired:
            raise ProvisionError(f"the machine {target} did not answer within {SECONDS:g} s") from None
        answers = parse_answers(done.stdout, token)
        if answers is None:
            words = done.stderr.strip()[-1000:] or f"it ended with {done.returncode} and printed nothing"
            raise ProvisionError(self.access.problem(target, words))
        return answers


def parse_answers(text: str, token: str) -> Answers | None:
    """The words of each answer in a machine's output, without the final one; None if that is missing."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{token} ")]
    return lines[:-1] if lines and lines[-1] == ["end"] else None


def parse_found(machine: str, answers: Answers) -> FoundLeftovers:
    """Parse the answers of ``remote_programs.list_command``. Raises ProvisionError."""
    sessions: dict[str, list[Sequence[str]]] = {}
    programs = 0
    for words in answers:
        match words:
            case ["session", name, "alive" | "dead", _, _, _, _]:
                sessions.setdefault(name.partition("-")[0], []).append(words)
            case ["programs", kib]:
                programs = _bytes(machine, kib)
            case _:
                raise _answer_error(machine, words)
    return FoundLeftovers(machine, [_run(machine, run_id, lines) for run_id, lines in sessions.items()], programs)


def _run(machine: str, run_id: str, sessions: Iterable[Sequence[str]]) -> LeftRun:
    """A run from the answers about its sessions."""
    _, _, states, sizes, processes, owners, times = zip(*sessions, strict=True)
    return LeftRun(
        machine,
        run_id,
        owner=printable(next((owner for owner in owners if owner != "-"), "-")),
        since=printable(min((time for time in times if time != "-"), default="-")),
        alive="alive" in states,
        size=sum(_bytes(machine, kib) for kib in sizes),
        processes=sum(_number(machine, number) for number in processes),
    )


def parse_ended(machine: str, answers: Answers) -> EndedLeftovers:
    """Parse the answers of ``remote_programs.end_command``. Raises ProvisionError."""
    done, left = [], []
    for words in answers:
        match words:
            case ["ended", name, kib, processes]:
                number = _number(machine, processes)
                done.append(f"ended {name} ({quantity(number, 'process')}, {size(_bytes(machine, kib))})")
            case ["part", name, kib]:
                done.append(f"removed an unfinished transfer of {name} ({size(_bytes(machine, kib))})")
            case ["removed", kib]:
                done.append(f"removed the programs that were sent ({size(_bytes(machine, kib))})")
            case ["used", _]:
                left.append("the programs that were sent stay: a run uses the machine; try again after its end")
            case ["left", name, owner]:
                left.append(f"{name} is alive and belongs to {printable(owner)}: end it where it started")
            case ["stays", name, *text]:
                left.append(f"{name} stays: {printable(' '.join(text))}")
            case _:
                raise _answer_error(machine, words)
    return EndedLeftovers(machine, done, left)


def _number(machine: str, word: str) -> int:
    if not word.isdecimal():
        raise _answer_error(machine, [word])
    return int(word)


def _bytes(machine: str, kib: str) -> int:
    return 1024 * _number(machine, kib)


def _answer_error(machine: str, words: Sequence[str]) -> ProvisionError:
    if words[:1] == ["refused"]:
        return ProvisionError(f"{machine}: {printable(' '.join(words[1:]))}")
    return ProvisionError(f"the machine {machine} sent an unknown answer: {printable(' '.join(words))}")
