"""The disk server: a disk of a guest, served by a process of this machine (a virtio block device over vhost-user).

It runs as a script that imports only the standard library: ``python disk_server.py LISTENER DISK ALIVE COUNTERS``. The
first three are descriptors of open files. The guest's kernel connects to the socket LISTENER. DISK is the file with the
content of the disk. We write one byte into the pipe ALIVE when the guest has ended. COUNTERS is a file for ``COUNTED``,
``LATEST`` and ``WORDS``.

A flush in the guest is an fdatasync of the file. We do not use the disk driver of user-mode Linux (ubd, 7.2): it does
nothing on a flush. With its option for synchronous writes it writes each page separately, one after the other.
Protocols: virtio 1.2, section 5.2 (block device) and 2.7 (split virtqueues); QEMU's document vhost-user.rst.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

# Messages of vhost-user: a head (request, flags, length), then a body.
HEAD = struct.Struct("<III")
ANSWER = 0x1 | 0x4  # flags: the protocol version, and "this is an answer"
NUMBER = struct.Struct("<Q")
PAIR = struct.Struct("<II")
REGION = struct.Struct("<QQQQ")  # address in the guest, length, address of its process, offset in the file
RING = struct.Struct("<IIQQQQ")  # ring, flags, addresses of descriptors, used, available, log
CONFIGURATION = struct.Struct("<III")  # offset, length, flags
GET_FEATURES, SET_MEMORY, SET_RING_SIZE, SET_RING, SET_RING_BEGIN = 1, 5, 8, 9, 10
SET_KICK, SET_CALL, GET_MORE_FEATURES, ENABLE_RING, GET_CONFIGURATION = 12, 13, 15, 18, 24
NO_FILE = 1 << 8  # the message has no open file, as it otherwise would
FEATURES = sum(1 << bit for bit in (2, 9, 14, 28, 30, 32))  # SEG_MAX FLUSH WRITE_ZEROES INDIRECT PROTOCOL VERSION_1
MORE_FEATURES = 1 << 9  # CONFIG

# The ring: descriptors of memory, the available requests of the guest, and the requests that we have used.
DESCRIPTOR = struct.Struct("<QIHH")  # address, length, flags, next
NEXT, INDIRECT = 1, 4
USED = struct.Struct("<II")  # the first descriptor of a request, bytes written into its memory
INDEX = struct.Struct("<H")
HEADER = 4  # bytes before the entries of both lists: flags and index

REQUEST = struct.Struct("<IIQ")  # kind, priority, sector
ZEROES = struct.Struct("<QII")  # sector, number of sectors, flags
READ, WRITE, FLUSH, NAME, WRITE_ZEROES = 0, 1, 4, 8, 13
VERBS = {READ: "read", WRITE: "write", FLUSH: "flush", WRITE_ZEROES: "write of zeros"}
DONE, FAILED, UNKNOWN = 0, 1, 2
SECTOR = 512
PAGE = 4096
MOST_SEGMENTS = 126
MOST_ZEROES = 2**20  # bytes
ZERO = bytes(MOST_ZEROES)

COUNTED = struct.Struct("<QQQ")  # writes, bytes written, flushes
LATEST = struct.Struct("<256Q")  # after COUNTED: nanoseconds of the latest flushes, flush n at n % MOST_SHOWN
MOST_SHOWN = 256
WORDS = struct.Struct("<1024s")  # after LATEST: the failures, in UTF-8; a log could not grow on a full disk

# The kernel of a guest may miss our notification while a packet arrives. So we repeat it until the kernel has read it:
# after this many seconds, twice as many, and so on.
AGAIN, SELDOM = 0.0003, 0.1
UNREAD = 0x5411  # SIOCOUTQ, unix(7): bytes that the other end of a socket has not read; ``Ring.call`` is a socket

Segment = tuple[int, int]  # address in the guest, length


class GuestMemory:
    """The shared memory of the guest."""

    def __init__(self) -> None:
        self._regions: list[tuple[int, int, memoryview]] = []
        self._zero_page: int | None = None

    def share(self, body: bytes, files: Sequence[int]) -> None:
        """Map the regions of a message."""
        self._regions = []
        for number, file in enumerate(files):
            address, length, _, offset = REGION.unpack_from(body, 8 + REGION.size * number)
            self._regions.append((address, length, memoryview(mmap.mmap(file, length, offset=offset))))
            os.close(file)

    def view(self, address: int, length: int) -> memoryview:
        """The bytes at an address. Raises ValueError for an address that is not shared."""
        for begin, size, memory in self._regions:
            if begin <= address and address + length <= begin + size:
                return memory[address - begin : address - begin + length]
        raise ValueError(f"the guest does not share its memory at {address:#x}")

    def content(self, address: int, length: int) -> memoryview:
        """As ``view``, for reading. A kernel does not share the pages of its program; one of these is all zeros."""
        try:
            return self.view(address, length)
        except ValueError:
            page = address // PAGE
            if (address + length - 1) // PAGE != page or self._zero_page not in (None, page):
                raise
            self._zero_page = page
            return memoryview(ZERO)[:length]


class Ring:
    """The ring of requests. ``call``: the file to notify the guest of used requests."""

    def __init__(self, memory: GuestMemory) -> None:
        self._memory = memory
        self._size = self._next = 0
        self._addresses: tuple[int, int, int] = (0, 0, 0)
        self._told = 0
        self.call = self.kick = -1
        self._descriptors = self._used = self._available = self._used_number = memoryview(b"")

    def resize(self, body: bytes) -> None:
        """Set the number of entries."""
        self._size = PAIR.unpack(body)[1]

    def begin(self, body: bytes) -> None:
        """Set the number of the first request."""
        self._next = self._told = PAIR.unpack(body)[1]

    def place(self, body: bytes) -> None:
        """Set the addresses of the ring in the guest's memory."""
        _, _, descriptors, used, available, _ = RING.unpack(body)
        self._addresses = (descriptors, used, available)

    def enable(self) -> None:
        """Find the ring in memory."""
        descriptors, used, available = self._addresses
        self._descriptors = self._memory.view(descriptors, DESCRIPTOR.size * self._size)
        self._used = self._memory.view(used, HEADER + USED.size * self._size)
        # The guest looks at this number at any moment. ``Struct.pack_into`` writes zeros first, and then the kernel of
        # the guest finds an old entry and gives the disk up: "id 75 is not a head!".
        self._used_number = self._used[INDEX.size : 2 * INDEX.size].cast("H")
        self._available = self._memory.view(available, HEADER + INDEX.size * self._size)

    def requests(self) -> Iterator[int]:
        """The first descriptor of each available request. Pass each one to ``use``."""
        while self._next != INDEX.unpack_from(self._available, INDEX.size)[0]:
            yield INDEX.unpack_from(self._available, HEADER + INDEX.size * (self._next % self._size))[0]

    def segments(self, first: int) -> list[Segment]:
        """The memory segments of a request."""
        table = self._descriptors
        address, length, flags, following = DESCRIPTOR.unpack_from(table, DESCRIPTOR.size * first)
        if flags & INDIRECT:
            table = self._memory.view(address, length)
            address, length, flags, following = DESCRIPTOR.unpack_from(table)
        found = [(address, length)]
        while flags & NEXT:
            address, length, flags, following = DESCRIPTOR.unpack_from(table, DESCRIPTOR.size * following)
            found.append((address, length))
        return found

    def use(self, first: int, written: int) -> None:
        """Mark a request as used."""
        USED.pack_into(self._used, HEADER + USED.size * (self._next % self._size), first, written)
        self._next = (self._next + 1) % 2**16
        self._used_number[0] = self._next

    def notify(self) -> None:
        """Notify the guest of the requests that we have used since the last call.

        The guest may have disabled notifications. We notify it anyway: without a memory barrier between our write and
        our read we could miss that it enabled them again.
        """
        if self._told != self._next:
            self._told = self._next
            self.notify_again()

    def notify_again(self) -> None:
        """Notify the guest again."""
        os.write(self.call, NUMBER.pack(1))

    @property
    def is_read(self) -> bool:
        """Whether the guest has read all notifications."""
        return self.call < 0 or not any(fcntl.ioctl(self.call, UNREAD, bytes(4)))


class DiskFile:
    """The file with the content of the disk. ``counters``: shared memory for COUNTED."""

    def __init__(self, file: int, counters: memoryview) -> None:
        self._file = file
        self._counters = counters
        # Others read these at any moment: see ``Ring.enable``.
        self._counted = counters[: COUNTED.size].cast("Q")
        self._latest = counters[COUNTED.size : COUNTED.size + LATEST.size].cast("Q")
        self._writes = self._bytes = self._flushes = 0
        self._said: set[tuple[str, str | None]] = set()
        self._words = ""
        self._count()
        size = os.fstat(file).st_size
        self.configuration = bytearray(256)
        struct.pack_into("<QII", self.configuration, 0, size // SECTOR, 0, MOST_SEGMENTS)
        struct.pack_into("<II", self.configuration, 48, MOST_ZEROES // SECTOR, 1)

    def do(self, kind: int, sector: int, data: Sequence[Segment], memory: GuestMemory) -> tuple[int, int]:
        """Execute a request. Returns its status and the number of bytes that were read into memory."""
        try:
            if kind == READ:
                views = [memory.view(*segment) for segment in data]
                return DONE, os.preadv(self._file, views, sector * SECTOR)
            if kind == WRITE:
                self._write([memory.content(*segment) for segment in data], sector * SECTOR)
            elif kind == FLUSH:
                self._flush()
            elif kind == WRITE_ZEROES:
                begin, length, _ = ZEROES.unpack(memory.content(*data[0]))
                self._write([memoryview(ZERO)[: length * SECTOR]], begin * SECTOR)
            elif kind == NAME:
                view = memory.view(*data[0])
                view[:] = b"disk".ljust(len(view), b"\0")
            else:
                return UNKNOWN, 0
        except (OSError, ValueError) as error:
            self._say(VERBS.get(kind, "request"), sector * SECTOR, error)
            return FAILED, 0
        return DONE, 0

    def _write(self, views: list[memoryview], offset: int) -> None:
        wanted = sum(map(len, views))
        if (written := os.pwritev(self._file, views, offset)) < wanted:  # after a signal, or on a full disk
            rest = memoryview(b"".join(views))
            while written < wanted:
                written += os.pwrite(self._file, rest[written:], offset + written)
        self._writes += 1
        self._bytes += wanted
        self._count()

    def _flush(self) -> None:
        began = time.perf_counter_ns()
        os.fdatasync(self._file)
        self._latest[self._flushes % MOST_SHOWN] = time.perf_counter_ns() - began
        self._flushes += 1
        self._count()

    def _count(self) -> None:
        self._counted[0], self._counted[1], self._counted[2] = self._writes, self._bytes, self._flushes

    def _say(self, verb: str, offset: int, error: OSError | ValueError) -> None:
        """Record why a request failed, each reason once, because on a full disk every request fails."""
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if (verb, reason) not in self._said:
            self._said.add((verb, reason))
            self._words = f"{self._words}a {verb} at byte {offset} failed: {reason}\n"
            WORDS.pack_into(self._counters, COUNTED.size + LATEST.size, self._words.encode()[-WORDS.size :])


class Server:
    """Our end of the connection. ``connection``: the socket of the guest's kernel."""

    def __init__(self, connection: socket.socket, disk: DiskFile) -> None:
        self._connection = connection
        self._disk = disk
        self._memory = GuestMemory()
        self._ring = Ring(self._memory)
        self._files = [connection.fileno()]
        self._does: Mapping[int, Callable[[bytes, Sequence[int]], None]] = {
            GET_FEATURES: lambda _body, _files: self._answer(GET_FEATURES, NUMBER.pack(FEATURES)),
            GET_MORE_FEATURES: lambda _body, _files: self._answer(GET_MORE_FEATURES, NUMBER.pack(MORE_FEATURES)),
            GET_CONFIGURATION: lambda body, _files: self._configuration(body),
            SET_MEMORY: self._memory.share,
            SET_RING_SIZE: lambda body, _files: self._ring.resize(body),
            SET_RING: lambda body, _files: self._ring.place(body),
            SET_RING_BEGIN: lambda body, _files: self._ring.begin(body),
            SET_KICK: self._kick,
            SET_CALL: self._call,
            ENABLE_RING: lambda body, _files: self._enable(PAIR.unpack(body)[1]),
        }

    def serve(self) -> None:
        """Serve until the guest ends."""
        patience = AGAIN
        while True:
            heard = self._ring.is_read
            files, _, _ = select.select(self._files, [], [], None if heard else patience)
            if files or heard:
                patience = AGAIN
            elif not self._ring.is_read:
                self._ring.notify_again()
                patience = min(2 * patience, SELDOM)
            for file in files:
                if file != self._connection.fileno():
                    os.read(file, NUMBER.size)
                    self._work()
                elif not self._obey():
                    return

    def _obey(self) -> bool:
        """Handle one message. Returns False after the last one."""
        head, files, _, _ = socket.recv_fds(self._connection, HEAD.size, 8)
        if len(head) < HEAD.size:
            return False
        request, _, length = HEAD.unpack(head)
        body = b""
        while len(body) < length:
            part = self._connection.recv(length - len(body))
            if not part:
                return False
            body += part
        if do := self._does.get(request):
            do(body, files)
        return True

    def _answer(self, request: int, body: bytes) -> None:
        self._connection.sendall(HEAD.pack(request, ANSWER, len(body)) + body)

    def _configuration(self, body: bytes) -> None:
        offset, length, flags = CONFIGURATION.unpack_from(body)
        content = bytes(self._disk.configuration[offset : offset + length])
        self._answer(GET_CONFIGURATION, CONFIGURATION.pack(offset, length, flags) + content)

    def _kick(self, body: bytes, files: Sequence[int]) -> None:
        if not NUMBER.unpack(body)[0] & NO_FILE:
            self._ring.kick = files[0]

    def _call(self, body: bytes, files: Sequence[int]) -> None:
        if not NUMBER.unpack(body)[0] & NO_FILE:
            self._ring.call = files[0]

    def _enable(self, on: int) -> None:
        if on:
            self._ring.enable()
            self._files.append(self._ring.kick)
        else:
            self._files.remove(self._ring.kick)

    def _work(self) -> None:
        """Execute all available requests."""
        ring, memory = self._ring, self._memory
        for first in ring.requests():
            head, *data, (status, _) = ring.segments(first)
            kind, _, sector = REQUEST.unpack_from(memory.content(*head))
            if kind == FLUSH:
                ring.notify()  # before the slow flush
            memory.view(status, 1)[0], read = self._disk.do(kind, sector, data, memory)
            ring.use(first, read + 1)
        ring.notify()


def main() -> None:
    """Serve one guest until it ends."""
    listener, file, alive = map(int, sys.argv[1:4])
    counters = os.open(sys.argv[4], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(counters, bytes(PAGE))  # allocate it now: on a full disk, writing to the mapped file would kill us
    shown = memoryview(mmap.mmap(counters, PAGE))
    with socket.socket(fileno=listener) as listening:
        connection, _ = listening.accept()
    Server(connection, DiskFile(file, shown)).serve()
    with contextlib.suppress(BrokenPipeError):  # the run is kept, and its owner has ended
        os.write(alive, b".")


if __name__ == "__main__":
    main()
