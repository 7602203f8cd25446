"""The disk server's own parts; with a kernel it is tested as the disk of a guest."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys

import pytest

from pytest_dbcluster.hosts.guests import disk_server
from pytest_dbcluster.hosts.guests.disk_server import PAGE, REGION, RING, DiskFile, GuestMemory, Ring

BEGIN = 16 * PAGE  # where the guest's shared memory begins
REQUESTS = 60_000
# Another kernel that looks at the number of used requests, until it is the last one: how often is it lower than before?
WATCHER = """
import mmap, sys
numbers = memoryview(mmap.mmap(int(sys.argv[1]), 4096 * 4)).cast("H")
last, lower = 0, 0
print("ready", flush=True)
while last < int(sys.argv[2]):
    number = numbers[int(sys.argv[3])]
    lower += number < last
    last = max(last, number)
print(lower)
"""


@pytest.fixture
def memory():
    """Four pages of shared memory, filled with x."""
    file = os.memfd_create("guest")
    os.write(file, b"x" * 4 * PAGE)
    made = GuestMemory()
    made.share(bytes(8) + REGION.pack(BEGIN, 4 * PAGE, BEGIN, 0), [file])
    return made


@pytest.fixture
def shown():
    """What the disk shows of itself."""
    return bytearray(PAGE)


@pytest.fixture
def disk(tmp_path, shown):
    """A disk of 1 MiB."""
    file = os.open(tmp_path / "disk", os.O_RDWR | os.O_CREAT)
    os.truncate(file, 2**20)
    yield DiskFile(file, memoryview(shown))
    os.close(file)


def test_the_number_of_used_requests_never_falls():
    """The kernel of a guest runs beside us. With a wrong number it uses an old entry, and gives the disk up."""
    file = os.memfd_create("guest")
    os.write(file, bytes(4 * PAGE))
    shared = mmap.mmap(file, 4 * PAGE)
    memory = GuestMemory()
    memory.share(bytes(8) + REGION.pack(BEGIN, 4 * PAGE, BEGIN, 0), [os.dup(file)])
    ring = Ring(memory)
    ring.resize(disk_server.PAIR.pack(0, 128))
    ring.place(RING.pack(0, 0, BEGIN, BEGIN + PAGE, BEGIN + 3 * PAGE, 0))
    ring.enable()
    command = [sys.executable, "-c", WATCHER, str(file), str(REQUESTS), str((PAGE + 2) // 2)]
    with subprocess.Popen(command, pass_fds=[file], stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout.readline() == "ready\n"
        for _ in range(REQUESTS):
            ring.use(7, 1)
        lower, _ = watcher.communicate(timeout=60)

    assert int(lower) == 0
    shared.close()
    os.close(file)


def test_one_page_that_is_not_shared_holds_zeros(memory):
    """A kernel writes zeros from a page of its own program; any other page there would be read wrongly."""
    assert bytes(memory.content(BEGIN, 4)) == b"xxxx"
    assert bytes(memory.content(PAGE, PAGE)) == bytes(PAGE)
    assert bytes(memory.content(PAGE + 512, 512)) == bytes(512)
    with pytest.raises(ValueError, match="the guest does not share its memory at 0x2000"):
        memory.content(2 * PAGE, PAGE)
    with pytest.raises(ValueError, match="does not share its memory at 0x1000"):
        memory.view(PAGE, PAGE)


def test_a_request_with_memory_that_is_not_shared_fails(memory, disk, shown):
    """It is said once, and the guest sees an error of its disk."""
    for _ in range(2):
        assert disk.do(disk_server.READ, 8, [(PAGE, 512)], memory) == (disk_server.FAILED, 0)

    (words,) = disk_server.WORDS.unpack_from(shown, disk_server.COUNTED.size + disk_server.LATEST.size)
    assert words.rstrip(b"\0") == b"a read at byte 4096 failed: the guest does not share its memory at 0x1000\n"


def test_what_was_written_is_read_again(memory, disk):
    """In pieces, at its own place; zeros need no memory of the guest."""
    pieces = [(BEGIN, 512), (BEGIN + PAGE, 1024)]
    assert disk.do(disk_server.WRITE, 1, pieces, memory) == (disk_server.DONE, 0)
    memory.view(BEGIN, 2 * PAGE)[:] = bytes(2 * PAGE)
    assert disk.do(disk_server.READ, 0, [(BEGIN, 2560)], memory) == (disk_server.DONE, 2560)
    assert bytes(memory.view(BEGIN, 2560)) == bytes(512) + b"x" * 1536 + bytes(512)

    memory.view(BEGIN + PAGE, 16)[:] = disk_server.ZEROES.pack(2, 1, 0)
    assert disk.do(disk_server.WRITE_ZEROES, 0, [(BEGIN + PAGE, 16)], memory) == (disk_server.DONE, 0)
    assert disk.do(disk_server.READ, 0, [(BEGIN, 2560)], memory) == (disk_server.DONE, 2560)
    assert bytes(memory.view(BEGIN, 2560)) == bytes(512) + b"x" * 512 + bytes(512) + b"x" * 512 + bytes(512)


def test_a_request_of_an_unknown_kind_is_refused(memory, disk):
    """As the standard asks for, so that a later kernel can try."""
    assert disk.do(99, 0, [], memory) == (disk_server.UNKNOWN, 0)
