"""Shims: scripts in ``bin/`` of an unpacked release that run programs of another suite on this machine.

A shim starts its program through the release's dynamic loader. It calls the loader through a link with the name of the
program. The kernel gives this name to the process. The SST scripts look for a listening process "socat". We do not set
LD_LIBRARY_PATH, because the machine's programs that a server starts would inherit it.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError, Unsupported

ROOT = "root"
LOADERS = "loader"
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
# Directories of private libraries of one package. The loader does not search them by default.
OWN_LIBRARIES = ("usr/lib/mysql-router", "usr/lib/mysql/private")
# Programs with two names: some suites have only one of them. New name -> old name.
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

# A script in Perl runs with the perl of the release, which would look for its modules in the paths of the machine.
PERL = "perl"
PERL_MODULES = (
    "usr/share/perl5", "usr/lib/*/perl5/[0-9]*", "usr/share/perl/[0-9]*", "usr/lib/*/perl/[0-9]*",
    "usr/lib/*/perl-base",
)  # fmt: skip
_PERL_SHIM = """\
#!/bin/sh
home=${{0%/*}}; home=${{home%/*}}
[ -e "$home/{root}" ] || {{ home=$(readlink -f "$0"); home=${{home%/*/*}}; }}
PERL5LIB="{modules}" exec "$home/bin/perl" "$home/{program}" "$@"
"""

# Percona XtraDB Cluster has XtraBackup in this directory beside the script of its state transfers.
EXTRA = "pxc_extra"
_EXTRA_PROGRAM = """\
#!/bin/sh
exec "${{0%/*/*/*/*}}/{name}" "$@"
"""
# The script starts the server again, as the program in /proc/PID/exe. That is the loader here. Without an answer, the
# script starts the server in PATH, which is the shim.
_READLINK = """\
#!/bin/sh
case "$*" in */proc/*/exe) exit 0 ;; esac
PATH=/usr/bin:/bin exec readlink "$@"
"""


def make(entry: Path, patterns: Sequence[str], architecture: str, *, remove_others: bool = True) -> Path:
    """Make ``entry/bin`` with every program of ``entry/root`` that matches a pattern. Returns its path.

    The shims use paths relative to themselves, so the entry may be moved or copied.
    """
    unpacked, bin_ = entry / ROOT, entry / "bin"
    bin_.mkdir()
    (entry / LOADERS).mkdir()
    loader = _loader(unpacked, architecture)
    path = ":".join(
        f"$home/{directory.relative_to(entry)}" for directory in library_directories(unpacked, architecture)
    )
    argv0 = '--argv0 "$0" ' if _keeps_argv0(loader) else ""
    extra = _extra_programs(unpacked)
    programs = _programs(unpacked, patterns) | {name: program for name, (program, _) in extra.items()}
    if remove_others:
        _remove_others(unpacked, set(programs.values()))
    for name, program in programs.items():
        if is_elf(program):
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
        elif PERL in programs and b"perl" in program.read_bytes().partition(b"\n")[0]:
            modules = ":".join(f"$home/{path.relative_to(entry)}" for path in _perl_modules(unpacked))
            text = _PERL_SHIM.format(root=ROOT, modules=modules, program=program.relative_to(entry))
            (bin_ / name).write_text(text, encoding="utf-8")
            (bin_ / name).chmod(0o755)
    _lay_out_extra(bin_, extra)
    return bin_


def machine() -> str:
    """The architecture of this machine as the kernel names it, ``x86_64`` or ``aarch64``."""
    return os.uname().machine


def architecture() -> str:
    """The architecture of this machine as dpkg names it, also on systems without dpkg. Raises Unsupported."""
    names = {triplet.partition("-")[0]: name for name, triplet in TRIPLETS.items()}
    if machine() not in names:
        raise Unsupported(f"releases run on {' and '.join(names)}, not on {machine()}")
    return names[machine()]


def library_directories(unpacked: Path, architecture: str) -> list[Path]:
    """The directories of the libraries of an unpacked release."""
    triplet = TRIPLETS[architecture]
    paths = (unpacked / "lib" / triplet, unpacked / "usr/lib" / triplet, *(unpacked / own for own in OWN_LIBRARIES))
    return [path for path in paths if path.is_dir()]


def _loader(unpacked: Path, architecture: str) -> Path:
    for directory in library_directories(unpacked, architecture):
        for path in sorted(directory.glob("ld-linux*.so.*")):
            return path
    raise ProvisionError(f"{unpacked} has no dynamic loader for {architecture}, so its programs cannot start")


def has_loader(unpacked: Path) -> bool:
    """Whether an unpacked directory has its own dynamic loader. Its programs must run through this loader."""
    return any(any(unpacked.glob(f"{lib}/*-linux-gnu/ld-linux*.so.*")) for lib in ("lib", "usr/lib"))


def _keeps_argv0(loader: Path) -> bool:
    """Whether the loader has the option ``--argv0``, which sets the program's own name; glibc before 2.33 lacks it."""
    done = subprocess.run([loader, "--help"], capture_output=True, text=True, check=False)
    return "--argv0" in done.stdout + done.stderr


def _programs(unpacked: Path, patterns: Sequence[str]) -> dict[str, Path]:
    programs: dict[str, Path] = {}
    for directory in ("usr/sbin", "usr/bin", "sbin", "bin"):
        for path in sorted((unpacked / directory).glob("*")):
            if any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns):
                real = _inside(unpacked, path)
                if real.is_file() and path.name not in programs:
                    programs[path.name] = real
    return programs


def _perl_modules(unpacked: Path) -> list[Path]:
    """The directories of the modules of an unpacked perl."""
    return [path for pattern in PERL_MODULES for path in sorted(unpacked.glob(pattern)) if path.is_dir()]


def _extra_programs(unpacked: Path) -> dict[str, tuple[Path, Path]]:
    """The programs of XtraBackup: name of the shim -> (program, its path below ``bin/``)."""
    found = sorted((unpacked / "usr/bin" / EXTRA).glob("*/bin/*"))
    return {f"{path.parts[-3]}-{path.name}": (path, path.relative_to(unpacked / "usr/bin")) for path in found}


def _lay_out_extra(bin_: Path, extra: Mapping[str, tuple[Path, Path]]) -> None:
    """Make ``bin/pxc_extra`` with the programs of XtraBackup, where the script of a state transfer looks for them."""
    scripts = {place: _EXTRA_PROGRAM.format(name=name) for name, (_, place) in extra.items()}
    for place, text in {**scripts, **({Path("readlink"): _READLINK} if scripts else {})}.items():
        (bin_ / place).parent.mkdir(parents=True, exist_ok=True)
        (bin_ / place).write_text(text, encoding="utf-8")
        (bin_ / place).chmod(0o755)


def _remove_others(unpacked: Path, kept: set[Path]) -> None:
    """Remove all other programs, which are most of the size of an unpacked server."""
    kept |= {path.resolve() for path in kept}
    for directory in ("usr/sbin", "usr/bin", "sbin", "bin"):
        for path in (unpacked / directory).glob("*"):
            if path not in kept and not path.is_dir():
                path.unlink()


def _inside(unpacked: Path, path: Path) -> Path:
    """The target of an absolute link, as if ``unpacked`` were the root directory. Other paths stay unchanged."""
    target = path.readlink() if path.is_symlink() else None
    if target is not None and target.is_absolute():
        return _inside(unpacked, unpacked / target.relative_to("/"))
    return path


def is_elf(path: Path) -> bool:
    """Whether a file is a program or a library, and not a script."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def add_other_names(bin_: Path, product: str) -> None:
    """Add the missing name of each program that has an old and a new name, as a link."""
    for new, old in OTHER_NAMES.get(product, {}).items():
        for name, other in ((new, old), (old, new)):
            if (bin_ / name).exists() and not (bin_ / other).exists():
                (bin_ / other).symlink_to(name)
