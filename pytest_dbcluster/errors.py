"""The errors of pytest-dbcluster, and what each of them means for a test.

DBClusterError              we could not tell (Allure: broken)
+-- ConfigError             the user's input is wrong; known before anything starts
+-- Unsupported             this machine, release or provisioner lacks what the test needs (skip)
+-- ProvisionError          hosts, servers or clusters could not be made
|   +-- CommandFailed       a program ended with an error, or did not end in time
|   +-- NotReady            something was waited for and never came
|   +-- NodeDied            a server process ended on its own
+-- WorkloadError           a load could not be run to its end
|   +-- UnreadableOutput    a tool printed what its parser does not know
+-- SeriesVoid              the rounds were measured, but a check says that they do not count
+-- Inconclusive            a claim drew its rounds and neither holds nor fails
ClaimFailed                 an AssertionError: the database is slower, or wrong (Allure: failed)
"""

from __future__ import annotations

import signal
from collections.abc import Sequence


class DBClusterError(Exception):
    """The root of every error that says "we could not tell"."""


class ConfigError(DBClusterError):
    """The user's input is wrong: an unknown name, a refused value, options that contradict each other."""


class Unsupported(DBClusterError):
    """What was asked for is sound, but this machine, release or provisioner does not offer it."""


class ProvisionError(DBClusterError):
    """A host, a server or a cluster could not be made."""


class CommandFailed(ProvisionError):
    """A program ended with an error or did not end in time.

    ``returncode`` is None when the program was stopped because its time was up, negative for a signal; ``ended``
    says it in words.
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
        self.ended = f"ended with {returncode}"
        if returncode is None:
            self.ended = f"did not end within {seconds:g} s"
        elif returncode < 0:
            self.ended = f"was ended by {signal.Signals(-returncode).name}"
        words = (stderr.strip() or stdout.strip() or "(it printed nothing)")[-2000:]
        super().__init__(f"{' '.join(self.command)} on {host} {self.ended}: {words}")


class NotReady(ProvisionError):
    """Something was waited for and did not come; carries the last problems that were seen."""

    def __init__(self, what: str, seconds: float, problems: Sequence[str]) -> None:
        self.what = what
        self.seconds = seconds
        self.problems = list(problems)
        super().__init__(f"{what} not ready after {seconds:g} s: {'; '.join(self.problems)}")


class NodeDied(ProvisionError):
    """A server process ended on its own; carries the last lines of its error log."""

    def __init__(self, node: str, status: str, log: str, last_lines: Sequence[str]) -> None:
        self.node = node
        self.log = log
        self.last_lines = list(last_lines)
        tail = "\n    ".join(self.last_lines) or "(its error log is empty)"
        super().__init__(f"node {node} {status}; the last lines of its error log ({log}):\n    {tail}")


class WorkloadError(DBClusterError):
    """A load could not be run to its end."""


class UnreadableOutput(WorkloadError):
    """A tool printed what its parser does not know; carries the output."""

    def __init__(self, tool: str, missing: str, output: str) -> None:
        self.tool = tool
        self.output = output
        lines, words = len(output.splitlines()), output.strip()[-1000:]
        super().__init__(f"{tool} printed no {missing} in {lines} lines of output: {words!r}")


class SeriesVoid(DBClusterError):
    """Rounds were measured, but a check after them says that they do not count."""


class Inconclusive(DBClusterError):
    """A claim drew its rounds and neither holds nor fails; not a failure, and not a pass."""


class ClaimFailed(AssertionError):
    """A claim was refuted: the database is slower than claimed, or wrong."""
