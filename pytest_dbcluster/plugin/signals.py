"""SIGTERM and SIGHUP end a run as Ctrl-C does: the servers stop, the results are written, the summary is printed."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ENDING = (signal.SIGTERM, signal.SIGHUP)
AGAIN_SECONDS = 0.05  # delay before we send a signal again that arrived where an exception does harm
# pluggy's function around the end of a hook wrapper of the old style, such as those of allure-pytest.
OLD_WRAPPER = "run_old_style_hookwrapper"
# pytest's function that collects and runs the tests, by module and name.
TESTS = ("_pytest.main", "_main")
AFTERWARDS_SECONDS = 1.0
TERMINALS = ("/dev/pts/", "/dev/tty")


class RunEnded(KeyboardInterrupt):
    """The run got SIGTERM or SIGHUP. It interrupts and ends the same things as Ctrl-C."""


class EndingSignals:
    """The handlers of one process of a run.

    A signal that the parent process ignores (nohup), or that another plugin handles, stays. The first signal raises
    ``RunEnded`` in the main thread. Later ones do nothing, because the run is already ending. Ctrl-C interrupts tests,
    and once the end of the session. Otherwise it does nothing in a run that is ending: pytest would show a traceback
    and exit with another status. SIGKILL still ends the process.

    Python runs a handler at any place of the main thread. In a finalizer (``__del__``, a callback of a weak reference)
    an exception is lost, and the run would continue. So ``RunEnded`` is raised again after the finalizer. At the end of
    an old-style hook wrapper, pluggy turns an exception into a warning, which ``-W error`` raises instead. So there,
    ``RunEnded`` and Ctrl-C wait for the end of the wrapper.
    """

    def __init__(self) -> None:
        self.name = ""  # name of the signal that ended the run
        self._ends = False  # whether a signal or Ctrl-C has ended the run
        self.finishes = False  # whether Ctrl-C may interrupt the end of the session
        self._held = 0  # the depth of ``held``
        self._interrupted = False  # whether Ctrl-C came in it
        self._waker: _Waker | None = None
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], Any] | int | None] = {}
        self._lost = threading.Timer(0, int)  # raises a lost exception again
        self._unraisable: Callable[[Any], Any] | None = None  # the previous hook

    def install(self) -> None:
        """Handle the signals until ``remove``; does nothing outside the main thread."""
        for number in ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                with contextlib.suppress(ValueError):  # raised outside the main thread
                    self._before[number] = signal.signal(number, self._end)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            with contextlib.suppress(ValueError):
                self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._interrupt)
        if self._before and self._waker is None:
            self._waker = _Waker()
            self._unraisable, sys.unraisablehook = sys.unraisablehook, self._raise_again

    def remove(self, *, ends: bool = False) -> None:
        """Restore the previous handlers. ends: the process ends now, so Ctrl-C interrupts nothing."""
        if self._unraisable:
            if sys.unraisablehook == self._raise_again:  # otherwise another plugin has taken over, and may call ours
                sys.unraisablehook = self._unraisable
            self._lost.cancel()
            if self._lost.is_alive():  # it may be about to send the signal, for which there must be a handler
                self._lost.join()
        if self._waker:  # before the handlers, because a signal that it sends would end the process without them
            self._waker.close()
            self._waker = None
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if ends and signal.SIGINT in self._before:  # Python would show a traceback from the middle of its end
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        elif self._ends and signal.SIGINT in self._before:
            signal.signal(signal.SIGINT, _Afterwards(self._before[signal.SIGINT]))
        self._before = {}

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self.name:
            return
        self._ends = True
        self.name = signal.Signals(number).name
        if number == signal.SIGHUP:
            _leave_terminal()
        if _in_old_wrapper(frame):
            self._later(signal.Signals(number))
        elif not self._held:
            self._raise()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._ends and not self.finishes and not _in_tests(frame):
            return
        self._ends = True
        if self._held:
            self._interrupted = True
        elif _in_old_wrapper(frame):
            self._later(signal.Signals(number))
        else:
            self.finishes = False
            raise KeyboardInterrupt

    def _raise_again(self, lost: Any) -> None:
        """Raise the end of the run again, soon after the finalizer that lost it; report other exceptions."""
        if self._ends and issubclass(lost.exc_type, ResourceWarning):
            return  # a file that was open when the signal came: Python closes it
        if issubclass(lost.exc_type, KeyboardInterrupt):
            self._later(signal.Signals[self.name] if issubclass(lost.exc_type, RunEnded) else signal.SIGINT)
        elif self._unraisable:
            self._unraisable(lost)

    def _later(self, number: signal.Signals) -> None:
        self._lost = threading.Timer(AGAIN_SECONDS, self._again, (number,))
        self._lost.daemon = True
        self._lost.start()

    def _again(self, number: signal.Signals) -> None:
        self._ends = False
        if number in ENDING:
            self.name = ""  # not earlier: the signal may arrive twice (``_Waker``), and be lost twice
        signal.pthread_kill(threading.main_thread().ident or 0, number)

    def _raise(self) -> None:
        raise RunEnded(f"the run was ended by {self.name}")

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """A context for work that must be complete: a signal or Ctrl-C in it interrupts at its end."""
        ended_before = bool(self.name)
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if self.name and not ended_before and not self._held:
            self._raise()
        if self._interrupted and not self._held:
            self._interrupted = False
            raise KeyboardInterrupt


def _in_old_wrapper(frame: FrameType | None) -> bool:
    """Whether the code of an old-style hook wrapper runs."""
    while frame:
        if frame.f_code.co_name == OLD_WRAPPER:
            return True
        frame = frame.f_back
    return False


def _in_tests(frame: FrameType | None) -> bool:
    """Whether pytest collects or runs tests."""
    while frame:
        if frame.f_code.co_name == TESTS[1] and frame.f_globals.get("__name__") == TESTS[0]:
            return True
        frame = frame.f_back
    return False


class _Afterwards:
    """Ignores Ctrl-C for a moment after the end of an interrupted run, then restores the previous handler.

    A user who presses it twice has not seen the end of the run yet. Python would show a traceback.
    """

    def __init__(self, before: Callable[[int, FrameType | None], Any] | int | None) -> None:
        self._before = before
        self._until = time.monotonic() + AFTERWARDS_SECONDS

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if time.monotonic() < self._until:
            return
        signal.signal(number, self._before)
        signal.raise_signal(number)


class _Waker:
    """Interrupts the main thread if another thread has received the signal.

    The kernel gives a signal of a process to any thread. If a second one arrives before the main thread wakes up, both
    may go to another thread. Then Python runs the handlers in the main thread, but nothing ends its system call. See
    "interrupted" in signal(7), and set_wakeup_fd of https://docs.python.org/3/library/signal.html.
    """

    def __init__(self) -> None:
        self._main = threading.main_thread().ident or 0
        self._received, self._written = socket.socketpair()
        self._written.setblocking(False)
        self._before = signal.set_wakeup_fd(self._written.fileno(), warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=self._after_fork)
        self._thread = threading.Thread(target=self._run, name="dbcluster-signals", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        woken: set[int] = set()  # each signal once, because our signal arrives here too
        while received := self._received.recv(64):
            for number in {*received} & {*ENDING} - woken:
                woken.add(number)
                signal.pthread_kill(self._main, number)
        self._received.close()

    def _after_fork(self) -> None:
        """Leave the descriptor to the process that forked: signals of the new process do not end the run."""
        if self._written.fileno() >= 0:
            self._exchange(-1)

    def close(self) -> None:
        """Restore the previous descriptor, and wait until the thread sends no more signals."""
        self._exchange(self._before)
        self._written.shutdown(socket.SHUT_RDWR)  # a forked process may have a copy of it
        self._written.close()
        self._thread.join()

    def _exchange(self, descriptor: int) -> None:
        current = signal.set_wakeup_fd(descriptor)
        if current != self._written.fileno():  # another library, such as asyncio, has taken over
            signal.set_wakeup_fd(current)


def _leave_terminal() -> None:
    """Discard output if the terminal is gone: an error in printing must not prevent the writing of results.

    pytest has several descriptors of its terminal: it captures output and keeps the original descriptor for later.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for path in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):  # the descriptor of this listing is closed by now
            descriptor = int(path.name)
            if str(path.readlink()).startswith(TERMINALS) and _is_gone(descriptor):
                os.dup2(nowhere, descriptor, inheritable=descriptor <= 2)
    os.close(nowhere)


def _is_gone(descriptor: int) -> bool:
    """Whether the other end of a terminal is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


class InterruptedEnd:
    """The end of a session that a signal or Ctrl-C interrupts: pytest would show a traceback."""

    def __init__(self, handlers: EndingSignals) -> None:
        self._handlers = handlers

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Exit as after Ctrl-C in a test. ``pytest_unconfigure`` stops the remaining servers."""
        try:
            self._handlers.finishes = True
            result = yield
            self._handlers.finishes = False
        except KeyboardInterrupt as error:
            raise pytest.exit.Exception(str(error) or "KeyboardInterrupt", pytest.ExitCode.INTERRUPTED) from None
        return result


def end_as_ctrl_c(config: Any) -> EndingSignals:
    """Handle the signals from now on until pytest ends."""
    handlers = EndingSignals()
    handlers.install()
    # A worker of pytest-xdist without tests left ends before the others, and the terminal's Ctrl-C reaches it too.
    config.add_cleanup(functools.partial(handlers.remove, ends=hasattr(config, "workerinput")))
    config.pluginmanager.register(InterruptedEnd(handlers))
    return handlers
