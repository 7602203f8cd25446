"""A small shell program on a host that is not this machine's own, and our end of its pipe.

It starts programs in process groups of their own, says when they have ended, and passes signals on. It needs nothing
but a POSIX shell, because the images of servers have little more. It is the first process of its container, so that the
end of its input ends everything there: when the process that holds our end dies, in whatever way, nothing outlives it.
Starting a program through it costs one message; the engine's own way (exec) starts several processes of its own first.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from pytest_dbcluster.errors import ProvisionError

# A request: "hello", "begin NUMBER LINES" followed by the lines of a script, "signal SIGNAL PID", or "fall". An answer:
# "ready", "began NUMBER PID", "ended NUMBER STATUS", "fell"; one write each, so that those of two programs do not mix.
PROGRAM = r"""
leader=$(command -v setsid)
while IFS= read -r line; do
    set -- $line
    case $1 in
    hello)
        echo ready
        ;;
    begin)
        script= left=$3
        while [ "$left" -gt 0 ] && IFS= read -r line; do
            script="$script$line
"
            left=$((left - 1))
        done
        (
            ( eval "$script" ) </dev/null &
            pid=$!
            echo "began $2 $pid"
            wait "$pid"
            echo "ended $2 $?"
        ) &
        ;;
    signal)
        kill -s "$2" -- "-$3" 2>/dev/null || kill -s "$2" "$3" 2>/dev/null
        ;;
    fall)
        kill -s KILL -- -1  # all but the first process of the container, which this is
        wait
        echo fell
        ;;
    esac
done
"""
# What follows it on a host that is to outlive us: the input of a container ends with the connection to it under Podman,
# whatever it was told; Docker leaves it open.
STAYS = "while :; do sleep 3600; done"
# The streams of a container without a terminal come in frames: one byte says which, four are the length
# (https://docs.docker.com/reference/api/engine/version/v1.41/#operation/ContainerAttach).
FRAME = struct.Struct(">BxxxI")
OUTPUT = 1
BEGIN_SECONDS = 30.0
CLOSE_SECONDS = 5.0


class Agent:
    """Our end of the pipe: requests go out, answers come in on a thread of its own."""

    def __init__(self, stream: socket.socket, name: str) -> None:
        self.name = name
        self._stream = stream
        self._words = bytearray()
        self._begun = 0
        self._pids: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._early: dict[int, str] = {}
        self._sending = threading.RLock()
        self._news = threading.Condition()
        self._answers = False
        self._fallen = False
        self._last = 0
        self.gone = ""
        self._listener = threading.Thread(target=self._listen, name=f"agent of {name}", daemon=True)
        self._listener.start()

    def wait_ready(self, seconds: float) -> None:
        """Ask for its first word and wait for it. Raises ProvisionError."""
        with contextlib.suppress(ProvisionError):  # the reason why it is gone comes on the other way
            self._send("hello\n")
        self._until(lambda: self._answers, seconds, "its first word")

    def begin(self, script: str) -> int:
        """Start a script; the number by which it is known here. Raises ProvisionError when the host is gone."""
        lines = script.split("\n")
        with self._sending:
            self._begun += 1
            number = self._begun
            self._send(f"begin {number} {len(lines)}\n" + "".join(f"{line}\n" for line in lines))
        return number

    def pid(self, number: int) -> int:
        """The process number of a program among those of its host. Raises ProvisionError."""
        self._until(lambda: number in self._pids, BEGIN_SECONDS, f"the start of program {number}")
        return self._pids[number]

    def status(self, number: int) -> int | None:
        """None while a program runs, then its exit status; negative for a signal. All have ended on a host that has."""
        if number in self._ended:
            return self._ended[number]
        return -9 if self.gone else None

    def wait(self, number: int, seconds: float) -> int | None:
        """The exit status of a program, None when it has not ended after so many seconds. Raises ProvisionError."""
        limit = time.monotonic() + seconds
        with self._news:
            while number not in self._ended:
                if self.gone:
                    raise ProvisionError(self.gone)
                left = limit - time.monotonic()
                if left <= 0:
                    return None
                self._news.wait(left)
        return self._ended[number]

    def signal(self, number: int, name: str) -> None:
        """Send a signal, such as ``TERM``, to a program and its children; nothing happens when it has ended.

        One that has not begun yet, on a host that is paused, gets it as soon as it has.
        """
        with self._news:
            if number not in self._pids:
                self._early[number] = name
                return
        if self.status(number) is None:
            self._send(f"signal {name} {self._pids[number]}\n")

    def fall(self, seconds: float = 10.0) -> None:
        """Kill every program at once. Raises ProvisionError."""
        self._fallen = False
        with self._sending:
            self._last = self._begun
            self._send("fall\n")
        self._until(lambda: self._fallen, seconds, "that its programs were killed")

    def close(self) -> None:
        """Close our end, which ends the host and everything on it."""
        self.gone = self.gone or f"{self.name} was given back"
        with contextlib.suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)
        self._listener.join(CLOSE_SECONDS)
        # close() would leave it open for as long as some reader of the library that made it lives.
        with contextlib.suppress(OSError):
            os.close(self._stream.detach())

    def _until(self, true: object, seconds: float, what: str) -> None:
        with self._news:
            if not self._news.wait_for(lambda: self.gone or true(), seconds):  # type: ignore[operator]
                raise ProvisionError(f"{self.name} did not say {what} within {seconds:g} s{self._said()}")
            if self.gone and not true():  # type: ignore[operator]
                raise ProvisionError(self.gone)

    def _said(self) -> str:
        words = self._words.decode("utf-8", "replace").strip()[-1000:]
        return f"; it said: {words}" if words else ""

    def _send(self, text: str) -> None:
        try:
            with self._sending:
                self._stream.sendall(text.encode())
        except OSError as error:
            raise ProvisionError(self.gone or f"{self.name} is gone: {error}") from None

    def _listen(self) -> None:
        reason = f"{self.name} has ended, or its engine has"
        rest = b""
        try:
            while header := self._exactly(FRAME.size):
                kind, length = FRAME.unpack(header)
                content = self._exactly(length)
                if kind != OUTPUT:
                    self._words += content
                    continue
                *lines, rest = (rest + content).split(b"\n")
                for line in lines:
                    self._heard(line.decode().split())
        except (OSError, ValueError, ProvisionError) as error:
            reason = f"{self.name} is gone: {error}"
        with self._news:
            self.gone = self.gone or reason + self._said()
            self._news.notify_all()

    def _heard(self, words: Sequence[str]) -> None:
        with self._news:
            match words:
                case ["ready"]:
                    self._answers = True
                case ["fell"]:
                    running = {number: -9 for number in range(1, self._last + 1) if number not in self._ended}
                    self._ended |= running
                    self._fallen = True
                case ["began", number, pid]:
                    self._pids[int(number)] = int(pid)
                    if name := self._early.pop(int(number), ""):
                        self._send(f"signal {name} {pid}\n")
                case ["ended", number, status]:
                    code = int(status)
                    # What a signal has ended has 128 + its number for a shell.
                    self._ended[int(number)] = 128 - code if code > 128 else code
            self._news.notify_all()

    def _exactly(self, length: int) -> bytes:
        """So many bytes; fewer only at the end of the stream."""
        found = bytearray()
        while len(found) < length and (part := self._stream.recv(length - len(found))):
            found += part
        return bytes(found)


def number_here(agent: int, inside: int) -> int:
    """The number among our processes of one that has another below an agent, whose own this is; 0 without any.

    Raises OSError or psutil.Error when one of them ends meanwhile.
    """
    for process in psutil.Process(agent).children(recursive=True):
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        numbers = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
        if numbers[-1:] == [str(inside)]:
            return process.pid
    return 0


def script(
    command: Sequence[str],
    *,
    directory: str,
    environment: Mapping[str, str],
    output: str,
    errors: str = "",
    text: str = "",
) -> str:
    """Shell text with which the agent's shell becomes a program, the leader of a group of its own.

    The program's output is added to a file, and so are its errors, or to their own. ``text`` is a file with its input.
    """
    variables = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    into = f">>{shlex.quote(output)} " + (f"2>>{shlex.quote(errors)}" if errors else "2>&1")
    source = f"<{shlex.quote(text)}" if text else ""
    return f"cd {shlex.quote(directory)} || exit 126\n{variables}exec $leader {shlex.join(command)} {into} {source}"
