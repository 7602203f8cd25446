"""Session: one ssh connection with an agent, and OpenSSH's other features over the same connection.

The session's process is the control master of its connection. When it ends for any reason, everything over the
connection ends too. The machine then ends the programs of the host (``remote_programs.session``).
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import itertools
import shlex
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts.agent import Agent
from pytest_dbcluster.hosts.host import through_socket
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.provisioners.ssh import remote_programs
from pytest_dbcluster.hosts.provisioners.ssh.access import CONNECT_SECONDS, Access

READY_SECONDS = 4.0 * CONNECT_SECONDS  # enough for a jump host and a busy machine
END_SECONDS = 10.0  # the machine then continues to end programs and remove files without us
ANSWER_SECONDS = 60.0
SMALL = 32 * 1024  # bytes; larger files use a separate channel instead of the agent's
LINE = 1000  # characters
BEGINS = "dbcluster-output-begins"  # the line before the output of a script
MISSING = 44  # exit status of a script if a file is missing
COPY_SECONDS = 1800.0  # for a release over a slow link


@dataclasses.dataclass
class Seen:
    """How far we have read a file of the machine. A mark file keeps its time of change.

    The shell compares the two times. A time counts only if it had passed when we read the file. Two changes in one tick
    of the kernel's clock have the same time.
    """

    number: int
    """The number of the mark file."""

    end: int = -1
    """The offset up to which we have read, in bytes; -1 before the first read."""

    def note_command(self, source: str) -> str:
        """Shell commands that record the time of change, to run before the file is read."""
        mark = f".seen-{self.number}"
        return f"touch -r {source} {mark} 2>/dev/null; : >{mark}.now; [ {mark} -ot {mark}.now ] || rm -f {mark}"

    def check_command(self, source: str) -> str:
        """A shell command that exits with 0 if the file still has the recorded time of change."""
        mark = f".seen-{self.number}"
        return f"[ -e {mark} ] && ! [ {source} -nt {mark} ] && ! [ {source} -ot {mark} ] && [ -e {source} ]"


class MachineBusy(ProvisionError):
    """Another run uses the machine."""


class Session:
    """A connection to a machine, and the agent at its other end.

    files: the host of this machine that starts ssh. Control sockets are in its directory, with relative paths, because
    an absolute path may be too long for a socket. number: unique among the sessions of a run. name: of the agent's
    directory. command: starts the agent.
    """

    def __init__(self, access: Access, target: str, files: LocalHost, number: int, name: str, command: str) -> None:
        self.target = target
        self.name = name
        self._access = access
        self._files = files
        self._control = f"c{number}"
        self._log = f"{files.directory}/ssh-{number}.log"
        self._forwards: dict[tuple[str, int], str] = {}
        self._forwarding = threading.Lock()
        self._numbers = itertools.count(1)
        self._seen: dict[str, Seen] = {}
        self._leads = False
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = files.spawn(
                    access.command("-o", "ControlMaster=yes", "-o", f"ControlPath={self._control}", target, command),
                    log=self._log,
                    directory=files.directory,
                    inherits=[theirs.fileno()],
                    talks=True,
                )
            except BaseException:
                ours.close()
                raise
        self.agent = Agent(ours, f"machine {target}", ended="cannot be reached any more", console=self.words)
        try:
            self.agent.wait_ready(READY_SECONDS)
        except ProvisionError as error:
            self.close()
            raise self._explain(error) from None
        except BaseException:
            self.close()
            raise

    def words(self) -> str:
        """The last 1000 characters of the output of ssh and the machine, for messages."""
        with contextlib.suppress(OSError):
            return Path(self._log).read_text(errors="replace").strip()[-1000:]
        return ""

    def _explain(self, error: ProvisionError) -> ProvisionError:
        """The error of a failed connection, with what to do next."""
        words = self.words()
        own = [line for line in words.splitlines() if line.startswith(remote_programs.REFUSED)]
        if remote_programs.BUSY in own:
            return MachineBusy(f"another run uses the machine {self.target}")
        if own:
            return ProvisionError(f"{self.target}: {own[-1].removeprefix(remote_programs.REFUSED)}")
        return ProvisionError(self._access.problem(self.target, words or str(error)))

    def ask(self, script: str, seconds: float = ANSWER_SECONDS) -> str:
        """The output of a short script that the agent itself runs in its directory, in one round trip.

        Raises CommandFailed, and ProvisionError if the machine is gone.
        """
        files = f".ask-{next(self._numbers)}"
        led = f"exec $leader sh -c {shlex.quote(script)} >{files}.out 2>{files}.err"  # so that its children end with it
        status, output, errors = self.run_script(led, files, seconds)
        if status != 0:
            timeout = seconds if status is None else None
            raise CommandFailed(["sh", "-c", script], status, output, errors, host=self.target, seconds=timeout)
        return output

    def run_script(self, script: str, files: str, seconds: float) -> tuple[int | None, str, str]:
        """Run a script of ``agent.script``. Returns its status, None after ``seconds``, its output and its errors.

        files: prefix of the files for these, relative to the agent's directory or absolute. When the wait ends for any
        reason, it kills the script. Raises ProvisionError.
        """
        number = self.agent.begin(script, files, text=True)
        status = self.agent.wait_for_command(number, seconds)
        return status, self._output(number, files, "out"), self._output(number, files, "err")

    def _output(self, number: int, files: str, part: str) -> str:
        said = self.agent.output(number, part)
        if said is None:
            path = f"{files}.{part}"
            said = self.pull(path)
            self.agent.begin(f"rm -f {shlex.quote(path)}")
        return said.decode("utf-8", "replace")

    def push(self, content: bytes, path: str, mode: int) -> None:
        """Write a file on the machine, with its permissions from the start. Raises ProvisionError."""
        target, parent = shlex.quote(path), shlex.quote(str(PurePosixPath(path).parent))
        script = f"umask 077; mkdir -p {parent} && rm -f {target} && : >{target} && chmod {mode:o} {target} && "
        if len(content) <= SMALL:
            encoded = base64.b64encode(content).decode()
            lines = "\n".join(encoded[start : start + LINE] for start in range(0, len(encoded), LINE))
            self.ask(f"{script}base64 -d >{target} <<'END'\n{lines}\nEND")
            return
        with tempfile.NamedTemporaryFile(dir=self._files.directory) as file:
            file.write(content)
            file.flush()
            self.send(f"cat {shlex.quote(file.name)}", f"{script}cat >{target}")

    def pull(self, path: str, offset: int = 0) -> bytes:
        """The content of a file of the machine from byte ``offset`` (0-based).

        path: absolute, or relative to the agent's directory. Raises FileNotFoundError if the file is missing, and
        CommandFailed if it cannot be read.
        """
        if not offset:
            return self._pull(path, offset)
        source, seen = shlex.quote(path), self._seen.setdefault(path, Seen(next(self._numbers)))
        if offset == seen.end and self.agent.holds(seen.check_command(source), ANSWER_SECONDS):
            return b""  # such as a log in most rounds; this starts no program
        content = self._pull(path, offset, seen.note_command(source))
        seen.end = offset + len(content)
        return content

    def _pull(self, path: str, offset: int, before: str = ":") -> bytes:
        """The content of a file from a byte. before: shell commands to run before it is read."""
        source = shlex.quote(path)
        files = f".ask-{next(self._numbers)}"
        read = f"{before}; exec tail -c +{offset + 1} {source} >{files}.out 2>{files}.err"
        number = self.agent.begin(f"[ -e {source} ] || exit {MISSING}; {read}", files)
        status = self.agent.wait_or_kill(number, ANSWER_SECONDS)
        if status == MISSING:
            raise FileNotFoundError(f"{path} on {self.target}")
        if status != 0:
            errors = self._output(number, files, "err")
            timeout = ANSWER_SECONDS if status is None else None
            raise CommandFailed(["read", path], status, "", errors, host=self.target, seconds=timeout)
        said = self.agent.output(number, "out")
        if said is not None:
            return said
        absolute = self.ask(f'cd . && echo "$PWD/{files}.out"').strip()
        with tempfile.NamedTemporaryFile(dir=self._files.directory) as file:
            self.receive(
                f"cat {shlex.quote(absolute)} && rm -f {shlex.quote(absolute)}", f"cat >{shlex.quote(file.name)}"
            )
            return Path(file.name).read_bytes()

    def over(self, script: str) -> list[str]:
        """The command line that runs a shell script on the machine over this connection, with input and output."""
        return self._access.command(
            "-o",
            "ControlMaster=no",
            "-o",
            f"ControlPath={self._control}",
            self.target,
            remote_programs.any_shell(script),
        )

    def shares(self) -> bool:
        """Whether sshd permits more sessions over this connection than the agent's. Raises CommandFailed."""
        return "refused by peer" not in self._files.run(self.over("true")).stderr

    def send(self, local: str, script: str) -> None:
        """Run a shell command of this machine, and a script on the machine with its output as input.

        Raises ProvisionError.
        """
        self._pipe(local, shlex.join(self.over(script)))

    def receive(self, script: str, local: str) -> None:
        """Run a script on the machine, and a shell command of this machine on its output. Raises ProvisionError.

        The output of a login shell before the script is not part of its output.
        """
        script = f"printf '\\n%s\\n' {BEGINS}; {script}"
        self._pipe(
            shlex.join(self.over(script)),
            f'while IFS= read -r line && [ "$line" != {BEGINS} ]; do :; done; {local}',
        )

    def _pipe(self, first: str, second: str) -> None:
        """Pipe a shell command of this machine into another one; both must succeed."""
        status = shlex.quote(f"{self._files.directory}/status-{next(self._numbers)}")
        command = f"{{ {first}; echo $? >{status}; }} | {{ {second}; }} && exit $(cat {status})"
        try:
            self._files.run(["/bin/sh", "-c", command], seconds=COPY_SECONDS)
        except CommandFailed as error:  # the command line is long and does not help users
            said = error.stderr.strip().splitlines()
            raise ProvisionError(said[-1] if said else self.agent.gone or "ssh printed nothing") from None
        finally:
            Path(shlex.split(status)[0]).unlink(missing_ok=True)

    def connect(self, address: str, port: int, seconds: float) -> socket.socket:
        """Connect to a port of an address, as seen from the machine. Raises OSError."""
        return through_socket(self.forward(address, port))(address, port, seconds)

    def forward(self, address: str, port: int) -> str:
        """The path of a socket of this machine that leads to a port of the machine. Raises OSError."""
        with self._forwarding:
            if (address, port) not in self._forwards:
                name = f"{self._control}-{next(self._numbers)}"
                self._ask("forward", "-L", f"./{name}:{address}:{port}")  # ssh treats a name without a slash as a host
                self._forwards[address, port] = f"{self._files.directory}/{name}"
            return self._forwards[address, port]

    def offer(self, port: int) -> None:
        """Forward a port of the machine's address 127.0.0.1 to the same port of this machine. Raises OSError."""
        self._ask("forward", "-R", f"127.0.0.1:{port}:127.0.0.1:{port}")

    def _ask(self, request: str, *what: str) -> None:
        command = self._access.command("-o", f"ControlPath={self._control}", "-O", request, *what, self.target)
        try:
            self._files.run(command, seconds=CONNECT_SECONDS)
        except CommandFailed as error:
            why = self.agent.gone or str(error)
            raise ConnectionError(f"no connection through {self.target}: {why}") from None

    def stay(self, *, leads: bool = False) -> None:
        """Let the programs of the host outlive the connection. Raises ProvisionError.

        leads: whether the connection outlives this process too, for programs of this machine that stay and use its
        forwards.
        """
        self.agent.stay()
        self._leads = leads

    def command_line(self, command: Sequence[str]) -> list[str]:
        """The command line for a user to run a command on the machine, over a new connection."""
        return ["ssh", "-t", *self._access.files, self.target, *command]

    def close(self) -> None:
        """End the connection; the machine then ends the programs of the host. A second call is not an error.

        After ``stay`` the programs go on.
        """
        self.agent.close()
        if self._leads:
            return
        with contextlib.suppress(ProvisionError):  # the supervisor has ended, and with it ssh
            limit = time.monotonic() + (0 if self.agent.stays else END_SECONDS)
            while self._process.status() is None and time.monotonic() < limit:
                time.sleep(0.005)
            self._process.signal(signal.SIGKILL)


def close_all(sessions: Sequence[Session]) -> None:
    """Close these sessions concurrently, because each waits until its machine has ended the host's programs."""
    threads = [threading.Thread(target=session.close) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
