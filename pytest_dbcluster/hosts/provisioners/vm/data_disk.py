"""The disk of a guest: an ext4 file system on a file of this machine, mounted at the data directory of the server.

my.cnf, logs, sockets and temporary files stay in the directory that the guest shares with this machine.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shlex
import statistics
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.formatting import quantity, size
from pytest_dbcluster.hosts.guests.disk import ServedDisk
from pytest_dbcluster.hosts.guests.guest import DIRECTORY, PATH
from pytest_dbcluster.hosts.host import DATA, Host
from pytest_dbcluster.hosts.provisioners.vm.disk_images import DiskImages
from pytest_dbcluster.system import cache

DEVICE = "/dev/vda"
BLOCK = 4096
INODES = 16384
COPY_SECONDS = 1800.0
FLUSHES = 100  # per measurement
OPTIONS = "noatime"
# -E: no initialization remains for later, when it would disturb rounds; a new file contains zeros.
MAKE = (
    f"/sbin/mke2fs -q -F -t ext4 -b {BLOCK} -N {INODES} -E lazy_itable_init=0,lazy_journal_init=1,nodiscard "
    f"-e remount-ro {DEVICE} {{blocks}}"
)
# Without barriers, so that the copy stays in the page cache of this machine.
COPY = """mkdir -p {there} {source_there}
(
    set -e
    mount -t ext4 -o {options},nobarrier {device} {there}
    rmdir {there}/lost+found
    mount -t hostfs -o ro,{source} none {source_there}
    cp -a {source_there}/. {there}
)
status=$?
umount {source_there} 2>/dev/null
umount {there} 2>/dev/null || status=1
exit $status
"""
# We rewrite existing files, so that a flush writes only their content.
MEASURE = """set -e
mkdir {there}/.flush
cd {there}/.flush
for n in $(seq {flushes}); do printf %04096d 0 >f$n; done
sync -d *
"""
FLUSH = """cd {there}/.flush
for n in $(seq {flushes}); do echo x 1<>f$n; done
sync -d *
"""


class DataDisk:
    """The disk of a host. ``host``: runs programs in the guest. ``disk``: serves it. ``images``: of the run."""

    def __init__(self, host: Host, disk: ServedDisk, images: DiskImages) -> None:
        self._host = host
        self._served = disk
        self._images = images
        self._mounted = ""  # the device
        self._numbers = itertools.count(1)
        self._flush_seconds = 0.0
        self.directory = f"{host.directory}/{DATA}"

    def holds(self, path: str) -> bool:
        """Whether a path of the host is on the disk."""
        return bool(self._mounted) and Path(path).is_relative_to(self.directory)

    def place(self, source: str, *, durable: bool) -> None:
        """Make the file system with a copy of a directory of this machine. Raises ProvisionError."""
        if self._mounted:
            self.unmount()
        if not PATH.fullmatch(source):
            raise ProvisionError(f"a guest cannot copy the directory {source!r}: choose another with XDG_CACHE_HOME")
        self._images.place(Path(source), self._served.disk.path, lambda: self._make(source))
        if durable:
            self._flush()

    def _make(self, source: str) -> None:
        whole = self._served.disk.size
        blocks = (whole - whole // 16384 - 2**20) // BLOCK
        script = COPY.format(
            there=shlex.quote(self.directory),
            source=shlex.quote(source),
            source_there="/run/source",
            device=DEVICE,
            options=OPTIONS,
        )
        try:
            self._run(MAKE.format(blocks=max(blocks, 1)))
            self._run(script, COPY_SECONDS)
        except CommandFailed as error:
            raise self._copy_error(source, error) from error

    def copy(self, here: Host, other: Path, *, durable: bool) -> None:
        """Make the disk equal to another file. ``here``: runs programs on this machine. Raises ProvisionError."""
        here.run(
            ["cp", "--sparse=auto", "--reflink=auto", str(other), str(self._served.disk.path)], seconds=COPY_SECONDS
        )
        self._run(f"/bin/busybox blockdev --flushbufs {DEVICE}")  # drop cached blocks
        if durable:
            self._flush()

    def _copy_error(self, source: str, error: CommandFailed) -> ProvisionError:
        """The error of a failed copy and what to do: the disk is too small, or this machine's disk is full."""
        what, whole = size(cache.size(Path(source))), size(self._served.disk.size)
        if words := self._served.words():
            return ProvisionError(
                f"cannot copy {what} of data to the disk of {self._host.name}, the file {self._served.disk.path}: "
                f"{words}; free some, or set DBCLUSTER_DATA_DIR to a directory on another disk"
            )
        return ProvisionError(
            f"cannot copy {what} of data to the disk of {self._host.name}, which has {whole}: {error.stderr.strip()}; "
            "ask for a larger disk with disk="
        )

    def _flush(self) -> None:
        """Flush the guest's writes on this machine, because the guest did not flush them."""
        file = os.open(self._served.disk.path, os.O_RDONLY)
        try:
            os.fdatasync(file)
        finally:
            os.close(file)

    def mount(self, device: str) -> None:
        """Mount a device with the file system. Raises ProvisionError."""
        there = shlex.quote(self.directory)
        self._run(f"mkdir -p {there} && mount -t ext4 -o {OPTIONS} {shlex.quote(device)} {there}")
        self._mounted = device

    def unmount(self) -> None:
        """Unmount it. Raises ProvisionError."""
        self._run(f"umount {shlex.quote(self.directory)}")
        self._mounted = ""

    def begin_again(self) -> None:
        """Mount the disk after a power cut, if it was mounted; its journal is recovered. Raises ProvisionError."""
        mounted, self._mounted = self._mounted, ""
        if mounted == DEVICE:
            self.mount(DEVICE)

    def push(self, shared: str, path: str, mode: int) -> None:
        """Move a file from the directory that the guest shares with this machine to the disk. Raises ProvisionError."""
        target = shlex.quote(path)
        self._run(f"mkdir -p $(dirname {target}) && install -m {mode:o} {shared} {target} && rm {shared}")

    def pull(self, path: str) -> str:
        """Copy a file from the disk to the shared directory, and return its path there. Raises FileNotFoundError."""
        copy = f"{self._host.directory}/{DIRECTORY}/file-{next(self._numbers)}"
        try:
            self._run(f"cp {shlex.quote(path)} {copy}")
        except CommandFailed as error:
            if "No such file" in error.stderr:
                raise FileNotFoundError(path) from None
            raise
        return copy

    def remove(self, path: str) -> None:
        """Remove a directory on the disk, or everything on it. Raises ProvisionError."""
        if Path(path) == Path(self.directory):
            self._run(f"find {shlex.quote(path)} -mindepth 1 -delete")
        else:
            self._run(f"rm -rf {shlex.quote(path)}")

    def copy_out(self, path: str) -> str:
        """Copy a directory from the disk to the shared directory, and return its path there. Raises ProvisionError."""
        copy = f"{self._host.directory}/{DIRECTORY}/tree-{next(self._numbers)}"
        self._run(f"cp -a {shlex.quote(path)} {copy}", COPY_SECONDS)
        return copy

    def size(self, path: str) -> int:
        """The size of a directory on the disk, in bytes; 0 if it cannot be read."""
        with contextlib.suppress(ProvisionError):
            return int(self._run(f"du -sk {shlex.quote(path)}").split()[0]) * 1024
        return 0

    def flush_seconds(self) -> float:
        """The median time of this machine's flushes for a program in the guest, in seconds.

        It excludes the guest's overhead, so that a flush without effect has no duration. Measured once. Raises
        ProvisionError.
        """
        if not self._flush_seconds:
            there = {"there": shlex.quote(self.directory), "flushes": FLUSHES}
            try:
                self._run(MEASURE.format(**there))
                before = self._served.counters()
                self._run(FLUSH.format(**there))
                after = self._served.counters()
            finally:
                self._run(f"rm -rf {there['there']}/.flush")
            if (flushes := after.flushes - before.flushes) < FLUSHES:
                file = self._served.disk.path
                raise ProvisionError(
                    f"{FLUSHES} flushes in {self._host.name} caused {quantity(flushes, 'flush')} of its disk {file}"
                )
            self._flush_seconds = statistics.median(after.latest[-flushes:])
        return self._flush_seconds

    def _run(self, script: str, seconds: float = 60.0) -> str:
        return self._host.run(["sh", "-c", script], seconds=seconds).stdout
