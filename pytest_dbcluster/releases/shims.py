"""Programs of another suite, made to run on this host: ``bin/`` of an unpacked release.

A shim starts its program through the release's own dynamic loader. The loader is called by a link that has the
program's name, because that is the name the kernel gives to the process: the SST scripts look for "socat" among the
listening processes. LD_LIBRARY_PATH is not used, the host's programs that a server starts would inherit it.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError

ROOT = "root"
LOADERS = "loader"
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
# Where packages keep libraries that only their own programs use; the loader does not look there by itself.
OWN_LIBRARIES = ("usr/lib/mysql-router",)
# Names that some suites of a product have and others do not; either one is there everywhere.
OTHER_NAMES = {
    "mariadb": {
        "mariadb": "mysql", "mariadb-admin": "mysqladmin", "mariadb-backup": "mariabackup",
        "mariadb-binlog": "mysqlbinlog", "mariadb-check": "mysqlcheck", "mariadb-dump": "mysqldump",
        "mariadb-import": "mysqlimport", "mariadb-install-db": "mysql_install_db", "mariadb-show": "mysqlshow",
        "mariadb-slap": "mysqlslap", "mariadb-upgrade": "mysql_upgrade", "mariadbd": "mysqld",
    },
}  # fmt: skip

_SHIM = """\
#!/bin/sh
home=${{0%/*}}; home=${{home%/*}}
[ -e "$home/{root}" ] || {{ home=$(readlink -f "$0"); home=${{home%/*/*}}; }}
exec "$home/{loaders}/{name}" --inhibit-cache --library-path "{path}" {argv0}"$home/{program}" "$@"
"""


def make(entry: Path, patterns: Sequence[str], architecture: str, *, remove_others: bool = True) -> Path:
    """``entry/bin``, filled with every program of ``entry/root`` whose name fits one of the patterns.

    Everything in it finds its way from its own place, so the entry may be moved or copied.
    """
    unpacked, bin_ = entry / ROOT, entry / "bin"
    bin_.mkdir()
    (entry / LOADERS).mkdir()
    loader = _loader(unpacked, architecture)
    path = ":".join(
        f"$home/{directory.relative_to(entry)}" for directory in library_directories(unpacked, architecture)
    )
    argv0 = '--argv0 "$0" ' if _keeps_argv0(loader) else ""
    programs = _programs(unpacked, patterns)
    if remove_others:
        _remove_others(unpacked, set(programs.values()))
    for name, program in programs.items():
        if _is_elf(program):
            (entry / LOADERS / name).symlink_to(Path("..") / loader.relative_to(entry))
            text = _SHIM.format(
                root=ROOT,
                loaders=LOADERS,
                name=name,
                path=path,
                argv0=argv0,
                program=program.relative_to(entry),
            )
            (bin_ / name).write_text(text, encoding="utf-8")
            (bin_ / name).chmod(0o755)
        elif program.read_bytes()[:64].startswith((b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash")) or (
            name.startswith("wsrep_")
        ):
            shutil.copy(program, bin_ / name)
    return bin_


def machine() -> str:
    """The kernel's name for this machine, ``x86_64`` or ``aarch64``."""
    return os.uname().machine


def library_directories(unpacked: Path, architecture: str) -> list[Path]:
    """Where the libraries of an unpacked release are."""
    triplet = TRIPLETS[architecture]
    places = (unpacked / "lib" / triplet, unpacked / "usr/lib" / triplet, *(unpacked / own for own in OWN_LIBRARIES))
    return [path for path in places if path.is_dir()]


def _loader(unpacked: Path, architecture: str) -> Path:
    for directory in library_directories(unpacked, architecture):
        for path in sorted(directory.glob("ld-linux*.so.*")):
            return path
    raise ProvisionError(f"{unpacked} has no dynamic loader for {architecture}, its programs cannot be started")


def has_loader(unpacked: Path) -> bool:
    """Whether an unpacked directory has libc and its loader, so that its programs must run through that one."""
    return any(any(unpacked.glob(f"{lib}/*-linux-gnu/ld-linux*.so.*")) for lib in ("lib", "usr/lib"))


def _keeps_argv0(loader: Path) -> bool:
    """Whether the loader can give the program the name that it was called by; glibc before 2.33 cannot."""
    done = subprocess.run([loader, "--help"], capture_output=True, text=True, check=False)
    return "--argv0" in done.stdout + done.stderr


def _programs(unpacked: Path, patterns: Sequence[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for directory in ("usr/sbin", "usr/bin", "sbin", "bin"):
        for path in sorted((unpacked / directory).glob("*")):
            if any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns):
                real = _inside(unpacked, path)
                if real.is_file() and path.name not in found:
                    found[path.name] = real
    return found


def _remove_others(unpacked: Path, kept: set[Path]) -> None:
    """Remove the programs that nobody will start: most of an unpacked server's size."""
    kept |= {path.resolve() for path in kept}
    for directory in ("usr/sbin", "usr/bin", "sbin", "bin"):
        for path in (unpacked / directory).glob("*"):
            if path not in kept and not path.is_dir():
                path.unlink()


def _inside(unpacked: Path, path: Path) -> Path:
    """The file that a link means when ``unpacked`` is the root directory. Relative links mean themselves."""
    target = path.readlink() if path.is_symlink() else None
    if target is not None and target.is_absolute():
        return _inside(unpacked, unpacked / target.relative_to("/"))
    return path


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def add_other_names(bin_: Path, product: str) -> None:
    """Link a product's old names to the new ones and the other way round, where one is missing."""
    for new, old in OTHER_NAMES.get(product, {}).items():
        for name, other in ((new, old), (old, new)):
            if (bin_ / name).exists() and not (bin_ / other).exists():
                (bin_ / other).symlink_to(name)
