"""The errors of pytest-dbcluster, and their meaning for a test.

DBClusterError              the test could not measure or decide (Allure: broken)
+-- ConfigError             the user's input is wrong; known before anything starts
+-- Unsupported             this machine, release or provisioner lacks what the test needs (skip)
+-- ProvisionError          hosts, servers or clusters could not be made
|   +-- CommandFailed       a program ended with an error, or did not end in time
|   +-- NotReady            a condition was not met before its timeout
|   +-- NodeDied            a server process ended unexpectedly
|   +-- NodeStopped         a signal has stopped a server process
+-- WorkloadError           a workload did not run to its end
|   +-- UnreadableOutput    the output of a tool could not be parsed
+-- SeriesVoid              the rounds ran, but a check found that they do not count
+-- LockHeld                another process kept a lock for longer than the run waits; this ends the run
+-- Inconclusive            a claim drew its rounds and neither holds nor fails
ClaimFailed                 an AssertionError: the database is slower, or wrong (Allure: failed)
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence


class DBClusterError(Exception):
    """The base class of all errors that keep a test from measuring or deciding. ClaimFailed is not one of them."""


class ConfigError(DBClusterError):
    """The user's input is wrong: an unknown name, a value out of range, options that contradict each other."""


class Unsupported(DBClusterError):
    """The request is valid, but this machine, release or provisioner does not support it. The test is skipped."""


class ProvisionError(DBClusterError):
    """A host, a server or a cluster could not be made."""


MOST = 2000


class CommandFailed(ProvisionError):
    """A program ended with an error or did not end in time.

    - returncode: exit status; negative for a signal, None after a timeout. ``ended`` is the same as text.
    - host: the host of the program.
    - seconds: the timeout.

    The message has the last lines of stderr or of stdout, ``MOST`` characters at most.
    """

    def __init__(
        self,
        command: Sequence[str],
        returncode: int | None,
        stdout: str = "",
        stderr: str = "",
        *,
        host: str = "localhost",
        seconds: float | None = None,
    ) -> None:
        self.command = list(command)
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
        self.host = host
        self.ended = f"did not end within {seconds:g} s" if returncode is None else how_ended(returncode)
        output = stderr.strip() or stdout.strip() or "(it printed nothing)"
        if len(output) > MOST:  # whole lines; a single long one is cut
            output = output[-MOST:].partition("\n")[2] or output[-MOST:]
        super().__init__(f"{' '.join(self.command)} on {host} {self.ended}: {output}")


class NotReady(ProvisionError):
    """A condition was not met before its timeout.

    what: the condition. seconds: the timeout. problems: the problems that the last check found.
    """

    def __init__(self, what: str, seconds: float, problems: Sequence[str]) -> None:
        self.what = what
        self.seconds = seconds
        self.problems = list(problems)
        super().__init__(f"{what} not ready after {seconds:g} s: {'; '.join(merge_names(self.problems))}")


def how_ended(status: int) -> str:
    """How a program ended: ``ended with 3``, or ``was ended by SIGKILL`` for the negative number of a signal."""
    if status >= 0:
        return f"ended with {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:  # a signal that has no name here
        return f"was ended by signal {-status}"


def merge_names(lines: Iterable[str]) -> list[str]:
    """The lines, with those that differ only in the name before their first ``: `` as one: ``node1, node2: no answer``.

    A name has no spaces. A merged line has the place of the first of its lines.
    """
    names: dict[str, list[str]] = {}
    for line in lines:
        name, colon, text = line.partition(": ")
        alone = not colon or " " in name
        names.setdefault(line if alone else f"{colon}{text}", []).append("" if alone else name)
    return [f"{', '.join(dict.fromkeys(named))}{text}" for text, named in names.items()]


class NodeDied(ProvisionError):
    """A server process ended unexpectedly. log: path of its error log. last_lines: the last lines of this log."""

    def __init__(self, node: str, status: str, log: str, last_lines: Sequence[str]) -> None:
        self.node = node
        self.log = log
        self.last_lines = list(last_lines)
        tail = "\n    ".join(self.last_lines) or "(its error log is empty)"
        super().__init__(f"node {node} {status}; the last lines of its error log ({log}):\n    {tail}")


class NodeStopped(ProvisionError):
    """A signal such as SIGSTOP has stopped a server process, so it answers nothing."""

    def __init__(self, node: str) -> None:
        self.node = node
        super().__init__(f"node {node} does not answer: a signal has stopped its server; kill -CONT continues it")


class WorkloadError(DBClusterError):
    """A workload did not run to its end."""


class UnreadableOutput(WorkloadError):
    """The output of a tool could not be parsed. tool: its name. output: all that it printed."""

    def __init__(self, tool: str, missing: str, output: str) -> None:
        self.tool = tool
        self.output = output
        lines, end = len(output.splitlines()), output.strip()[-1000:]
        super().__init__(f"{tool} printed no {missing}; lines of its output: {lines}, with the end {end!r}")


class SeriesVoid(DBClusterError):
    """The rounds ran but do not count: too many were void, or a check after them found an error."""


class LockHeld(DBClusterError):
    """Another process kept a lock for longer than we wait for it (``--db-wait``). This ends the run."""


class Inconclusive(DBClusterError):
    """A claim drew its rounds and neither holds nor fails. The test shows as ``I``; with ``--db-strict`` it fails."""


class ClaimFailed(AssertionError):
    """A claim fails: the database is slower than claimed, or wrong."""
