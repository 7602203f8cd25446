"""System files of this machine that every image of ours needs, and the tar of an image.

They are a shell and the programs that scripts of servers call, with their libraries.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.releases.portable import libraries

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


def find() -> dict[str, Path]:
    """The files: path in an image -> file of this machine. Raises Unsupported on a system without a shell or ldd."""
    programs = {name: shutil.which(name, path=SEARCH) for name in PROGRAMS}
    found = {name: Path(path) for name, path in programs.items() if path}
    if missing := [name for name in NEEDED if name not in found]:
        raise Unsupported(f"this system has no {', '.join(missing)} in {SEARCH}, which every container needs")
    needed = libraries.libraries_of(path.resolve() for path in found.values())
    paths = [*found.values(), *needed, *([LOADER_CACHE] if LOADER_CACHE.exists() else [])]
    return {str(path.parent.resolve() / path.name).lstrip("/"): path.resolve() for path in paths}


def write(files: Mapping[str, Path], target: IO[bytes]) -> None:
    """Write the tar of an image. ``files``: path in the image -> file or directory of this machine."""
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
