"""Disks of guests: sparse files of this machine, each with one owner, and the programs that serve them."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.guests import disk_server
from pytest_dbcluster.hosts.local_host import LocalHost, LocalProcess

END_SECONDS = 10.0
VIRTIO_BLOCK = 2  # virtio's number for block devices


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk.

    A guest writes into the file through the page cache of this machine. A flush in the guest is an fdatasync of the
    file. A power cut loses what the guest has not written yet.
    """

    path: Path
    """The file with its content."""

    size: int
    """Size in bytes. A new file takes no space until the guest writes."""

    def open(self) -> int:
        """Open and lock the file; create it if it is missing. Returns an open file, which holds the lock.

        The lock lasts while any process has the file open. So the program that serves it locks the disk until its end.
        Raises ProvisionError if another guest has the disk, or if the file cannot be made.
        """
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ProvisionError(f"cannot open the disk {self.path} of a guest: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_size < self.size:
                os.truncate(descriptor, self.size)
        except BlockingIOError:
            os.close(descriptor)
            raise ProvisionError(
                f"the disk {self.path} belongs to another guest, which still runs: two kernels on one disk would "
                "destroy it. End the other run, or use another file"
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise ProvisionError(f"cannot make the disk {self.path} of {self.size} bytes: {error.strerror}") from None
        return descriptor


@dataclasses.dataclass(frozen=True)
class Counted:
    """Counters of a disk since its guest was powered on."""

    writes: int
    """Number of write requests."""

    written: int
    """Written bytes."""

    flushes: int
    """Number of flushes."""

    latest: Sequence[float] = ()
    """Durations of the latest flushes in seconds, the newest last."""


class ServedDisk:
    """A disk and the program that serves it to the running guest.

    ``directory``: of the guest, for socket, log and counters. ``number``: of the guest's disks, 0-based.
    """

    def __init__(self, disk: Disk, files: LocalHost, directory: Path, number: int) -> None:
        self.disk = disk
        self._files = files
        self._directory = directory
        self._name = f"disk{number}"
        self._log_file = directory / f"{self._name}.log"
        self._counters = directory / f"{self._name}.counters"
        self._process: LocalProcess | None = None

    def parameter(self, directory: str) -> str:
        """The kernel's parameter for this disk. ``directory``: a short path of the guest's directory."""
        return f"virtio_uml.device={directory}/{self._name}:{VIRTIO_BLOCK}"

    def serve(self, lost: Callable[[ServedDisk], None]) -> None:
        """Start the program; it ends with the guest. If it ends earlier, a thread calls ``lost`` with this disk.

        Raises ProvisionError if another guest has the disk.
        """
        alive, theirs = os.pipe()
        with contextlib.ExitStack() as ends:
            ends.callback(os.close, theirs)
            try:
                disk = self.disk.open()
                ends.callback(os.close, disk)
                listener, address = ends.enter_context(self._socket())
                Path(address).unlink(missing_ok=True)
                listener.bind(address)
                listener.listen(1)
                self._process = self._files.spawn(
                    [sys.executable, "-IS", disk_server.__file__, "{0}", "{1}", "{2}", str(self._counters)],
                    log=str(self._log_file),
                    directory="/",
                    inherits=[listener.fileno(), disk, theirs],
                )
            except BaseException:
                os.close(alive)
                raise
        threading.Thread(target=self._watch, args=(alive, lost), name=f"disk {self.disk.path}", daemon=True).start()

    def _watch(self, alive: int, lost: Callable[[ServedDisk], None]) -> None:
        """Wait until the program has ended. It writes a byte if the guest ended before it."""
        with os.fdopen(alive, "rb") as pipe:
            if not pipe.read(1):
                lost(self)

    @contextlib.contextmanager
    def _socket(self) -> Iterator[tuple[socket.socket, str]]:
        """A new socket and its address. An open directory shortens the path, which may have 107 bytes (unix(7))."""
        directory = os.open(self._directory, os.O_PATH)
        try:
            with socket.socket(socket.AF_UNIX) as made:
                yield made, f"/proc/self/fd/{directory}/{self._name}"
        finally:
            os.close(directory)

    def end(self) -> None:
        """Wait for the end of the program, after the end of the guest. Raises ProvisionError."""
        if self._process is None:
            return
        # This ends a program that still waits for its guest.
        with contextlib.suppress(OSError), self._socket() as (caller, address):
            caller.connect(address)
        limit = time.monotonic() + END_SECONDS
        while self._process.status() is None:
            if time.monotonic() > limit:
                self._process.signal(signal.SIGKILL)
                raise ProvisionError(f"the server of the disk {self.disk.path} has not ended within {END_SECONDS:g} s")
            time.sleep(0.005)

    @property
    def pid(self) -> int:
        """The process id of the program on this machine; 0 before its start."""
        return self._process.pid if self._process else 0

    @property
    def log(self) -> list[str]:
        """The program's output. It prints only if it fails itself."""
        with contextlib.suppress(OSError):
            return self._log_file.read_text(errors="replace").splitlines()
        return []

    def words(self) -> str:
        """The failed requests, a line each, with the reasons on this machine; empty if all succeeded."""
        place = disk_server.COUNTED.size + disk_server.LATEST.size
        with contextlib.suppress(OSError, struct.error):
            (words,) = disk_server.WORDS.unpack_from(self._counters.read_bytes(), place)
            return str(words.rstrip(b"\0").decode("utf-8", "replace")).strip()
        return ""

    def counters(self) -> Counted:
        """Counters of the disk since the guest was powered on."""
        try:
            content = self._counters.read_bytes()
            writes, written, flushes = disk_server.COUNTED.unpack_from(content)
            times = disk_server.LATEST.unpack_from(content, disk_server.COUNTED.size)
        except (OSError, struct.error):
            return Counted(0, 0, 0)
        most = disk_server.MOST_SHOWN
        latest = [times[number % most] / 1e9 for number in range(max(0, flushes - most), flushes)]
        return Counted(writes, written, flushes, latest)
