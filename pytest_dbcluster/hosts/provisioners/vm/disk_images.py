"""Images of disks: once per run, a guest copies a directory into a file system. Other disks are copies of its disk.

A guest copies some hundred megabytes a second; this machine copies the file as it copies any other.
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.local_host import OTHER_DIRECTORY
from pytest_dbcluster.system import direct_copy

ROOM = 8  # we keep an image if there is space for this many


class DiskImages:
    """The images of a run. ``directory``: for their files; it need not exist."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changing = threading.Lock()
        self._images: dict[tuple[object, ...], Path] = {}
        self._making: dict[tuple[object, ...], threading.Lock] = {}
        self._numbers = itertools.count(1)  # images of several directories may be made concurrently

    def place(self, source: Path, disk: Path, make: Callable[[], None]) -> None:
        """Make a file system on an unmounted disk, with a copy of a directory of this machine.

        ``make``: does it in the guest of the disk, if there is no image of this directory and size yet. Raises what it
        raises, and ProvisionError.
        """
        status = source.stat()
        key = (str(source), status.st_ino, status.st_mtime_ns, disk.stat().st_size)
        with self._changing:
            making = self._making.setdefault(key, threading.Lock())
        with making:  # the nodes of a cluster start concurrently: the first one makes the image for all
            if key not in self._images:
                make()
                if image := self._keep_image(disk):
                    self._images[key] = image
                return
        self._copy(self._images[key], disk)

    def _keep_image(self, disk: Path) -> Path | None:
        """A copy of a disk; None if there is little space."""
        if shutil.disk_usage(disk.parent).free < ROOM * disk.stat().st_blocks * 512:
            return None
        self._directory.mkdir(exist_ok=True)
        image = self._directory / f"image-{next(self._numbers)}"
        os.close(os.open(image, os.O_CREAT | os.O_EXCL, 0o600))
        self._copy(disk, image)
        return image

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        try:
            direct_copy.copy_sparse(source, target)
        except OSError as error:
            raise ProvisionError(f"cannot copy {source} to {target}: {error.strerror}; {OTHER_DIRECTORY}") from None
