"""Disks of guests: sparse files of this machine, each with one owner."""

from __future__ import annotations

import dataclasses
import fcntl
import os
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk. path: its file. size: bytes; a new file takes no space until the guest writes.

    A guest writes into the file through the page cache of this machine. A flush in the guest is an fsync of the file.
    """

    path: Path
    size: int

    def open(self) -> int:
        """Make the file if there is none, and take it for one owner. Returns an open file, which holds the lock.

        The lock stays as long as any process has the file open: a guest that inherits it keeps the disk to its end.
        Raises ProvisionError for a disk that another guest has, and for a file that cannot be made.
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
                "destroy it. End the other run, or take another file"
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise ProvisionError(f"cannot make the disk {self.path} of {self.size} bytes: {error.strerror}") from None
        return descriptor
