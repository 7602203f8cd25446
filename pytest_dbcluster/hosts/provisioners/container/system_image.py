"""The image for releases in a user's directory: programs of this machine's system, and no server.

It has a shell and the programs that scripts of servers call, with their libraries. The release comes as a portable copy
in the cache, which every container mounts. So no registry, no mirror and no apt is needed, and one image serves all
such releases.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioners.container import images
from pytest_dbcluster.hosts.provisioners.container.engine import Engine
from pytest_dbcluster.hosts.provisioners.container.images import HomeMadeImage
from pytest_dbcluster.releases.portable import libraries
from pytest_dbcluster.system import cache

NAME = "system:local"
NEEDED = ("sh", "cat", "ls")  # without them a container is no host
# What scripts of servers, of state transfers and of users call; those that this machine lacks are left out.
PROGRAMS = (
    *NEEDED, "awk", "base64", "basename", "bash", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname", "du",
    "echo", "env", "expr", "false", "find", "flock", "gawk", "getconf", "getent", "grep", "gzip", "head", "hostname",
    "id", "install", "ip", "kill", "ln", "lsof", "mawk", "mkdir", "mkfifo", "mktemp", "mv", "nproc", "od", "pgrep",
    "pkill", "printf", "ps", "pv", "pwd", "readlink", "realpath", "rm", "rmdir", "sed", "seq", "setsid", "sha256sum",
    "sleep", "socat", "sort", "split", "ss", "stat", "stdbuf", "sync", "tail", "tar", "tee", "test", "timeout", "touch",
    "tr", "true", "uname", "uniq", "wc", "which", "whoami", "xargs",
)  # fmt: skip
SEARCH = "/usr/bin:/bin:/usr/sbin:/sbin"
TOP = ("bin", "sbin", "lib", "lib32", "lib64")  # links into /usr on most systems
DIRECTORIES = {"root": 0o700, "run": 0o755, "tmp": 0o1777, "var/tmp": 0o1777}
ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "group": "root:x:0:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
LOADER_CACHE = Path("/etc/ld.so.cache")  # names directories of libraries besides the usual ones


def build(engine: Engine, progress: Report) -> HomeMadeImage:
    """The image in this engine: the present one, or a new one if the programs of this machine have changed.

    Raises ProvisionError, or Unsupported on a system without a shell or ldd.
    """
    files = _files()
    exact = _digest(files)
    with cache.lock(images.lock_name("system"), progress=progress, does="builds"):
        before = images.list_images(engine, NAME)
        current = next((image for image in before if image.current and image.exact == exact), None)
        if current:
            return current
        progress("making an image from programs of this system")
        with tempfile.NamedTemporaryFile(prefix="dbcluster-image-", suffix=".tar") as tar:
            _write(files, tar)
            return images.load(engine, NAME, exact, Path(tar.name), before)


def _files() -> dict[str, Path]:
    """The files of the image: path in the image -> file of this machine."""
    programs = {name: shutil.which(name, path=SEARCH) for name in PROGRAMS}
    found = {name: Path(path) for name, path in programs.items() if path}
    if missing := [name for name in NEEDED if name not in found]:
        raise Unsupported(f"this system has no {', '.join(missing)} in {SEARCH}, which every container needs")
    needed = libraries.libraries_of(path.resolve() for path in found.values())
    paths = [*found.values(), *needed, *([LOADER_CACHE] if LOADER_CACHE.exists() else [])]
    return {str(path.parent.resolve() / path.name).lstrip("/"): path.resolve() for path in paths}


def _digest(files: dict[str, Path]) -> str:
    """A digest that changes with the content of a file, as far as its size and time show."""
    states = [(name, (status := path.stat()).st_size, status.st_mtime_ns) for name, path in sorted(files.items())]
    return hashlib.sha256(repr((images.FORMAT, states)).encode()).hexdigest()[:12]


def _write(files: dict[str, Path], target: IO[bytes]) -> None:
    """Write the content of the image as a tar."""
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name, mode in DIRECTORIES.items():
            tar.addfile(_entry(name, tarfile.DIRTYPE, mode))
        for name in TOP:
            if Path("/", name).is_symlink():
                entry = _entry(name, tarfile.SYMTYPE, 0o777)
                entry.linkname = str(Path("/", name).readlink())
                tar.addfile(entry)
        for name, text in ACCOUNTS.items():
            entry = _entry(f"etc/{name}", tarfile.REGTYPE, 0o644)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
        for name, path in sorted(files.items()):
            tar.add(path, arcname=name, filter=_of_root)
    target.flush()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode &= 0o755  # no program gets more rights than its user has
    return entry
