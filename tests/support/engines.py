"""What tests of containers share: an image of this machine's own shell, and the reason why there is no engine."""

from __future__ import annotations

import contextlib
import functools
import io
import shutil
import socket
import tarfile
import time
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.container import engine, images
from pytest_dbcluster.releases.portable import libraries
from pytest_dbcluster.spec import ReleaseName

TINY = "pytest-dbcluster-tests/tiny:1"
PROGRAMS = ("sh", "cat", "sleep", "setsid", "ls", "dd", "sync", "head", "tail")


@functools.cache  # a dozen modules ask while they are collected
def missing() -> str:
    """Why containers cannot be tested here; empty when they can."""
    try:
        engine.connect().close()
    except (ProvisionError, Unsupported) as error:
        return str(error)
    return ""


def no_image(release: str) -> str:
    """Why the image of a release cannot be used; empty when it can."""
    try:
        with contextlib.closing(engine.connect()) as made:
            engine.image(made, images.tag(ReleaseName.parse(release)), pull=None)
    except (ProvisionError, Unsupported) as error:
        return str(error)
    return ""


def tiny(made: engine.Engine) -> str:
    """The tag of an image with a shell and a few programs of this machine. It is imported if it is missing."""
    if not made.client.images.list(name=TINY):
        # With the tag in the name: Podman 4.3 does not read the parameter for it.
        made.client.api.import_image_from_data(_tar(PROGRAMS), repository=TINY)
    return TINY


def files_of(programs: tuple[str, ...]) -> dict[str, Path]:
    """Programs of this machine with their libraries: path in an image -> file."""
    paths = {name: Path(shutil.which(name, path="/bin:/usr/bin") or "").resolve() for name in programs}
    needed = {str(path).lstrip("/"): path.resolve() for path in libraries.libraries_of(paths.values())}
    return {f"bin/{name}": path for name, path in paths.items()} | needed


def _tar(programs: tuple[str, ...]) -> bytes:
    files = files_of(programs)
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as tar:
        for name, path in files.items():
            tar.add(path, arcname=name)
    return found.getvalue()


def ours(made: engine.Engine, run: str) -> list[str]:
    """The names of the containers and networks of a run."""
    wanted = {"label": f"{engine.RUN_LABEL}={run}"}
    containers = made.client.containers.list(all=True, filters=wanted, sparse=True)
    names = [one.attrs["Names"][0].lstrip("/") for one in containers]
    return [*names, *(one.name for one in made.client.networks.list(filters=wanted))]


def empty() -> bytes:
    """An image in which nothing can be run."""
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("nothing"))
    return found.getvalue()


def reachable(address: str, seconds: float = 1.0) -> float | None:
    """Seconds until a host refused a connection, which it does when it is there; None when nothing came back."""
    began = time.monotonic()
    try:
        socket.create_connection((address, 1), timeout=seconds).close()
    except ConnectionRefusedError:
        return time.monotonic() - began
    except OSError:
        return None
    raise AssertionError(f"something listens on port 1 of {address}")
