"""The image for releases in a user's directory: programs of this machine's system, and no server.

The release comes as a portable copy in the cache, which every container mounts. So no registry, no mirror and no apt is
needed, and one image serves all such releases.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioners.container import images, system_files
from pytest_dbcluster.hosts.provisioners.container.engine import Engine
from pytest_dbcluster.hosts.provisioners.container.images import HomeMadeImage
from pytest_dbcluster.system import cache

NAME = "system:local"


def build(engine: Engine, progress: Report) -> HomeMadeImage:
    """The image in this engine: the present one, or a new one if the programs of this machine have changed.

    Raises ProvisionError, or Unsupported on a system without a shell or ldd.
    """
    files = system_files.find()
    exact = _digest(files)
    with cache.lock(images.lock_name("system"), progress=progress, does="builds"):
        before = images.list_images(engine, NAME)
        current = next((image for image in before if image.current and image.exact == exact), None)
        if current:
            return current
        progress("making an image from programs of this system")
        with tempfile.NamedTemporaryFile(prefix="dbcluster-image-", suffix=".tar") as tar:
            system_files.write(files, tar)
            return images.load(engine, NAME, exact, Path(tar.name), before)


def _digest(files: dict[str, Path]) -> str:
    """A digest that changes with the content of a file, as far as its size and time show."""
    states = [(name, (status := path.stat()).st_size, status.st_mtime_ns) for name, path in sorted(files.items())]
    return hashlib.sha256(repr((images.FORMAT, states)).encode()).hexdigest()[:12]
