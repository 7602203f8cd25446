"""The agent: a small shell program that starts programs in a container or a guest, and our end of its line.

The agent starts each program in its own process group, reports its end, and forwards signals. It needs only a POSIX
shell, because images of servers have little more. It is the first process of its host, so the host ends at the end of
the agent's input. Therefore no program outlives our process, even if our process is killed. Starting a program through
the agent costs one message; the exec call of an engine starts several processes first.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import os
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError

# Requests: "hello", "begin NUMBER LINES [FILES [text]]" followed by the lines of a script, "signal SIGNAL PID",
# "look NUMBER", "fall", "beat NUMBER", "use NUMBER", "test NUMBER CONDITION", "stay".
# Answers: "ready", "began NUMBER PID", "said NUMBER out|err BASE64", "line NUMBER out|err TEXT", "tail NUMBER out|err
# TEXT" for a line without an end, "wrote NUMBER out|err", "ended NUMBER STATUS", "signalled", "looked NUMBER", "fell",
# "used NUMBER [WORDS]", "stays".
# Each answer is one write, so answers do not mix. An empty line is not a request.
# - look: one process writes the kernel's counters into the file $figures. The shell would read them byte by byte, which
#   takes a guest four times as long.
# - FILES: the agent sends the contents of FILES.out and FILES.err before the end of the script, and removes the files.
#   If an output is too long, it stays in its file, and the agent sends "wrote". The shell itself reads a short text
#   and drops zero bytes, because each program start takes about a millisecond.
# - test: the shell evaluates the condition.
# - beat: goes to the file $beat, if the host has a watchdog that checks it.
# - use: a function of some hosts. It prints figures line by line, then a line without words.
# - stay: a function of the same hosts. The host then outlives its connection.
PROGRAM = (Path(__file__).parent / "agent.sh").read_text()
# Appended to the program on a host that outlives our process. Podman closes the input of a container when we
# disconnect, for any settings of the container; Docker leaves the input open. The connection of a guest always ends.
STAYS = "while :; do sleep 3600; done"
BEGIN_SECONDS = 30.0  # timeout for the start of a program
KILLED_SECONDS = 1.0  # to wait for the end of a killed program
STAY_SECONDS = 30.0  # timeout for the answer that the host stays
CLOSE_SECONDS = 5.0  # timeout for the end of our threads
# The waits until we send an empty line after an unanswered request; the last one repeats.
NUDGE_SECONDS = (0.1, 0.2, 0.5, 1.0)

SIGNALS = 64  # the largest number of a signal (signal(7))
CPU_FIELDS = 7  # of /proc/stat: user, nice, system, idle, iowait, irq, softirq
LINK, LINK_FIELDS = "vec", (0, 8, 9)  # in /proc/net/dev: names of links; bytes received, bytes and packets sent
COUNTED = ("user", "system", "iowait", "idle", "read", "written", "received", "sent", "packets")

# The content of a connection until its end: parts of the agent's output (True), and other output of the host (False).
Parts = Callable[[socket.socket], Iterator[tuple[bool, bytes]]]


def plain(stream: socket.socket) -> Iterator[tuple[bool, bytes]]:
    """The parts of a connection that carries only the agent's output."""
    with contextlib.suppress(ConnectionResetError):  # the host ended before it had read everything
        while part := stream.recv(2**16):
            yield True, part


class Agent:
    """Our end of the connection. Any thread may send requests; one listener thread reads the answers.

    ``gone``: why the host has ended, empty while it lives. Programs are numbered from 1. ``parts`` reads the
    connection. ``ended``: a clause for its end. ``console``: returns the host's other output, for messages.
    ``nudges``: the host may overlook a request until more input arrives, so we send empty lines until it answers.
    ``figures``: the file into which the host writes the figures of a look.
    """

    def __init__(
        self,
        stream: socket.socket,
        name: str,
        *,
        parts: Parts = plain,
        ended: str = "has ended",
        console: Callable[[], str] = str,
        nudges: bool = False,
        figures: Path | None = None,
    ) -> None:
        self.name = name
        self._stream = stream
        self._parts, self._end, self._console = parts, ended, console
        self._words = bytearray()
        self._begun = 0
        self._pids: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._early: dict[int, str] = {}
        self._commands: set[int] = set()  # the numbers of those that ``end_commands`` may kill
        self._signals = 0  # without an answer yet
        self._figures = figures
        self._looks = self._looked = 0
        self._uses = self._used = self._beats = 0
        self._figures_said: dict[int, list[str]] = {}  # by the number of the request
        self._said_by: dict[tuple[int, str], list[bytes]] = {}  # by number and part
        self._wrote: set[tuple[int, str]] = set()
        self._sending = threading.RLock()
        self._news = threading.Condition()
        self._answers = False
        self._fallen = True
        self._last = 0
        self._stays = False
        self.gone = ""
        self._listener = threading.Thread(target=self._listen, name=f"agent of {name}", daemon=True)
        self._listener.start()
        self._nudger = threading.Thread(target=self._nudge, name=f"nudger of {name}", daemon=True) if nudges else None
        if self._nudger:
            self._nudger.start()

    def wait_ready(self, seconds: float) -> None:
        """Send "hello" and wait for the answer, at most ``seconds``. Raises ProvisionError."""
        with contextlib.suppress(ProvisionError):  # the listener receives the reason
            self._send("hello\n")
        self._until(lambda: self._answers, seconds, "the first request")

    def begin(self, script: str, files: str = "", *, text: bool = False) -> int:
        """Start a script. Returns its number for the other methods. Raises ProvisionError if the host is gone.

        files: a path on the host. When the script ends, the agent sends us the contents of ``FILES.out`` and
        ``FILES.err``. text: these are text, so zero bytes may be dropped.
        """
        lines = script.split("\n")
        how = f"{files} {'text' if text else ''}" if files else ""
        return self._request(lambda number: f"begin {number} {len(lines)} {how}\n" + "".join(f"{x}\n" for x in lines))

    def holds(self, condition: str, seconds: float) -> bool:
        """Whether a test of the shell is true, such as ``[ -e FILE ]``. The shell itself answers it at once.

        Raises ProvisionError.
        """
        number = self._request(lambda number: f"test {number} {condition}\n")
        self._until(lambda: number in self._ended, seconds, "a test")
        return self._ended[number] == 0

    def _request(self, request: Callable[[int], str]) -> int:
        """Send a request with a new number, and return the number."""
        with self._sending:
            self._begun += 1
            number = self._begun
            self._send(request(number))
        self._wake_nudger()
        return number

    def pid(self, number: int) -> int:
        """The process id of a program inside the host. Raises ProvisionError."""
        self._until(lambda: number in self._pids, BEGIN_SECONDS, f"the request to start program {number}")
        return self._pids[number]

    def status(self, number: int) -> int | None:
        """The exit status of a program: None while it runs, negative for a signal, -9 if the whole host has ended."""
        if number in self._ended:
            return self._ended[number]
        return -9 if self.gone else None

    def wait(self, number: int, seconds: float) -> int | None:
        """The exit status of a program; None if it still runs after ``seconds``. Raises ProvisionError."""
        limit = time.monotonic() + seconds
        with self._news:
            while number not in self._ended:
                if self.gone:
                    raise ProvisionError(self.gone)
                left = limit - time.monotonic()
                if left <= 0:
                    return None
                wait.raise_if_interrupted()
                self._news.wait(min(left, 1.0))
        return self._ended[number]

    def output(self, number: int, part: str) -> bytes | None:
        """The output ``out`` or ``err`` of a script that has ended.

        None if it is too long, and so stays in its file. A second call returns an empty output.
        """
        with self._news:
            if (number, part) in self._wrote:
                return None
            return b"".join(self._said_by.pop((number, part), []))

    def use(self, seconds: float) -> str:
        """The lines that the function ``use`` of the host's shell prints. Raises ProvisionError."""
        with self._sending:
            self._uses += 1
            number = self._uses
            self._send(f"use {number}\n")
        self._until(lambda: number <= self._used, seconds, "a request for its usage")
        with self._news:
            return "\n".join(self._figures_said.pop(number, []))

    def beat(self) -> None:
        """Send a heartbeat to the watchdog of the host. Raises ProvisionError."""
        self._beats += 1
        self._send(f"beat {self._beats}\n")

    def stay(self) -> None:
        """Let the host and its programs outlive the connection, if its shell can. Raises ProvisionError."""
        self._send("stay\n")
        self._until(lambda: self._stays, STAY_SECONDS, "a request to stay")

    @property
    def stays(self) -> bool:
        """Whether the host outlives the connection."""
        return self._stays

    def wait_or_kill(self, number: int, seconds: float) -> int | None:
        """As ``wait``. When the wait ends for any reason, it kills a program that still runs."""
        status = None
        try:
            status = self.wait(number, seconds)
        finally:
            if status is None:
                with contextlib.suppress(ProvisionError):
                    self.signal(number, "KILL")
                    self.wait(number, KILLED_SECONDS)
        return status

    def wait_for_command(self, number: int, seconds: float) -> int | None:
        """As ``wait_or_kill``, for a program that ``end_commands`` may kill meanwhile."""
        self._commands.add(number)
        try:
            return self.wait_or_kill(number, seconds)
        finally:
            self._commands.discard(number)

    def end_commands(self) -> None:
        """Kill the programs that ``wait_for_command`` waits for."""
        with contextlib.suppress(ProvisionError):
            for number in tuple(self._commands):
                self.signal(number, "KILL")

    def signal(self, number: int, name: str) -> None:
        """Send a signal, such as ``TERM``, to a program and its children. Does nothing after its end.

        A program that has not started yet (its host is paused) gets the signal right after its start.
        """
        with self._news:
            if number not in self._pids:
                self._early[number] = name
                return
        if self.status(number) is None:
            self._send_signal(name, self._pids[number])

    def fall(self, seconds: float = 10.0) -> None:
        """Kill every program of the host at once and wait for it, at most ``seconds``. Raises ProvisionError."""
        self._fallen = False
        with self._sending:
            self._last = self._begun
            self._send("fall\n")
        self._wake_nudger()
        self._until(lambda: self._fallen, seconds, "a request to kill its programs")

    def look(self, seconds: float) -> Mapping[str, int]:
        """The counters of the host's kernel, by the names of COUNTED. Raises ProvisionError or OSError.

        CPU time is in hundredths of a second, disks in sectors of 512 bytes. Links are summed, in bytes and packets
        sent.
        """
        with self._sending:
            self._looks += 1
            number = self._looks
            self._send(f"look {number}\n")
        self._wake_nudger()
        self._until(lambda: self._looked >= number, seconds, "a request for its usage")
        return _parse_counters(self._figures.read_text()) if self._figures else {}

    def close(self) -> None:
        """Close our end of the pipe. The host and its programs end then."""
        self.gone = self.gone or f"{self.name} was released"
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        self._wake_nudger()
        self._listener.join(CLOSE_SECONDS)
        if self._nudger:
            self._nudger.join(CLOSE_SECONDS)
        # socket.close() would leave it open while a reader object of docker-py exists.
        with contextlib.suppress(OSError):
            os.close(self._stream.detach())

    def _until(self, condition: object, seconds: float, what: str) -> None:
        with self._news:
            if not self._news.wait_for(lambda: self.gone or condition(), seconds):  # type: ignore[operator]
                raise ProvisionError(f"{self.name} did not answer {what} within {seconds:g} s{self._last_output()}")
            if self.gone and not condition():  # type: ignore[operator]
                raise ProvisionError(self.gone)

    def _last_output(self) -> str:
        words = (self._words.decode("utf-8", "replace") + self._console()).strip()[-1000:]
        return f"; its last output: {words}" if words else ""

    def _send(self, text: str) -> None:
        try:
            with self._sending:
                self._stream.sendall(text.encode())
        except OSError as error:
            raise ProvisionError(self.gone or f"{self.name} is gone: {error}") from None

    def _send_signal(self, name: str, pid: int) -> None:
        with self._news:
            self._signals += 1
            self._news.notify_all()
        self._send(f"signal {name} {pid}\n")

    def _wake_nudger(self) -> None:
        # Without the lock for sending: the listener sends while it holds this one.
        with self._news:
            self._news.notify_all()

    @property
    def _waits(self) -> bool:
        """Whether a request has no answer yet."""
        begun = len(self._pids.keys() | self._ended.keys())
        return begun < self._begun or self._signals > 0 or self._looked < self._looks or not self._fallen

    def _nudge(self) -> None:
        """Send empty lines while a request has no answer."""
        while not self.gone:
            with self._news:
                self._news.wait_for(lambda: self.gone or self._waits)
            for seconds in itertools.chain(NUDGE_SECONDS, itertools.repeat(NUDGE_SECONDS[-1])):
                with self._news:
                    if self._news.wait_for(lambda: self.gone or not self._waits, seconds):
                        break
                with contextlib.suppress(ProvisionError):
                    self._send("\n")

    def _listen(self) -> None:
        reason = f"{self.name} {self._end}"
        rest = b""
        try:
            for is_output, content in self._parts(self._stream):
                if not is_output:
                    self._words += content
                    continue
                *lines, rest = (rest + content).split(b"\n")
                with self._news:  # wakes the waiting threads once for all of them
                    for line in lines:
                        self._take_line(line)
        except (OSError, ValueError, ProvisionError) as error:
            reason = f"{self.name} is gone: {error}"
        with self._news:
            self.gone = self.gone or reason + self._last_output()
            self._news.notify_all()

    def _take_line(self, line: bytes) -> None:
        if line.startswith((b"line ", b"tail ")):
            self._keep_text(*line.split(b" ", 3))
        else:
            self._take_answer(line.decode().split())

    def _take_answer(self, words: Sequence[str]) -> None:
        with self._news:
            match words:
                case ["ready"]:
                    self._answers = True
                case ["stays"]:
                    self._stays = True
                case ["signalled"]:
                    self._signals = max(0, self._signals - 1)
                case ["looked", number]:
                    self._looked = int(number)
                case ["fell"]:
                    running = {number: -9 for number in range(1, self._last + 1) if number not in self._ended}
                    self._ended |= running
                    self._fallen = True
                    self._signals = 0
                case ["began", number, pid]:
                    self._pids[int(number)] = int(pid)
                    if name := self._early.pop(int(number), ""):
                        self._send_signal(name, int(pid))
                case ["said" | "wrote" | "used" as kind, number, *rest]:
                    self._keep_words(kind, int(number), rest)
                case ["ended", number, status]:
                    code = int(status)
                    # A shell reports 128 + N for a program that signal N ended; a program may return more itself.
                    self._ended[int(number)] = 128 - code if 128 < code <= 128 + SIGNALS else code
            self._news.notify_all()

    def _keep_text(self, kind: bytes, number: bytes, part: bytes, text: bytes) -> None:
        """Keep a line of a script's output; a tail has no end of line."""
        with self._news:
            said = self._said_by.setdefault((int(number), part.decode()), [])
            said.append(text if kind == b"tail" else text + b"\n")

    def _keep_words(self, kind: str, number: int, words: Sequence[str]) -> None:
        """Keep a script's output, or the host's figures."""
        match kind, words:
            case "said", [part, text]:
                self._said_by.setdefault((number, part), []).append(base64.b64decode(text))
            case "wrote", [part]:
                self._wrote.add((number, part))
                self._said_by.pop((number, part), None)
            case "used", []:
                self._used = number
            case "used", _:
                self._figures_said.setdefault(number, []).append(" ".join(words))


def _parse_counters(text: str) -> Mapping[str, int]:
    """The figures of a look, by the names of COUNTED; empty while the host rewrites them."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    of_cpu = next((list(map(int, words[1:])) for words in lines if words[0] == "cpu"), [])
    numbers = [list(map(int, words)) for words in lines if words[0].isdigit()]
    if len(of_cpu) < CPU_FIELDS or lines[-1][0] == "cpu":
        return {}
    user, nice, system, idle, iowait, irq, soft = of_cpu[:CPU_FIELDS]
    of_disk = next((words for words in numbers if len(words) > 1), [0] * 7)
    counted = [user + nice, system + irq + soft, iowait, idle, of_disk[2], of_disk[6]]
    links = [[int(number) for number in words[1:]] for words in lines if words[0].startswith(LINK)]
    counted += [sum(link[field] for link in links) for field in LINK_FIELDS] if links else []
    return dict(zip(COUNTED, counted, strict=False))


def script(
    command: Sequence[str],
    *,
    directory: str,
    environment: Mapping[str, str],
    output: str,
    errors: str = "",
    text: str = "",
) -> str:
    """A shell script that replaces the shell by a program, which leads a new process group.

    output, errors: files to append the program's output and errors to; empty ``errors`` joins the two.
    text: a file with the program's input.
    """
    variables = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    into = f">>{shlex.quote(output)} " + (f"2>>{shlex.quote(errors)}" if errors else "2>&1")
    source = f"<{shlex.quote(text)}" if text else ""
    return f"cd {shlex.quote(directory)} || exit 126\n{variables}exec $leader {shlex.join(command)} {into} {source}"
