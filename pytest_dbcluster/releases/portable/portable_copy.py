"""A copy of a release in a user's directory, with the libraries that it loads from this machine's system.

The copy has the layout of a fetched release, and its programs start through its own dynamic loader. So it runs in
guests, in containers and on other machines, whatever libraries they have.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases import fetched, shims
from pytest_dbcluster.releases.catalogue import PROGRAMS
from pytest_dbcluster.releases.portable import libraries
from pytest_dbcluster.system import cache

MANIFEST = "portable.json"
# What a server needs besides its programs: plugins, private libraries, messages, character sets, XtraBackup of PXC.
_PARTS = ("lib", "lib64", "share", "bin/pxc_extra")
# What no cluster uses: half of a vendor's tarball.
_LEFT_OUT = shutil.ignore_patterns("*.a", "*.la", "debug", "man", "doc", "docs", "mysql-test", "mariadb-test")
_SHELL = Path("/bin/sh")  # its loader is that of every program here, also if the release has scripts only


def entry_of(product: str, directory: Path) -> Path:
    """The entry of the cache for a copy of the release in this directory; it need not exist."""
    return cache.releases() / ("portable-" + hashlib.sha256(f"{product} {directory}".encode()).hexdigest()[:12])


def make(product: str, directory: Path, prefix: Path, programs: Mapping[str, Path], progress: Report) -> Path:
    """The entry of the cache with a copy of a release. It is made again only if the files of the release have changed.

    ``prefix``: the directory of the installation, in ``directory``. ``programs``: name -> path. Raises ProvisionError
    for a cache that we cannot write, Unsupported on a system without ldd.
    """
    entry = entry_of(product, directory)
    name = entry.name
    own_loader = prefix != directory and shims.has_loader(directory)
    trees = [directory] if own_loader else [prefix / part for part in _PARTS]
    signature = [cache.FORMAT, _digest([*programs.values(), *_files(trees)])]
    with cache.lock(name, progress=progress, does="copies"):
        if cache.read_manifest(entry / MANIFEST, lambda value: value) == signature:
            return entry
        progress(f"copying {directory} with its libraries, for hosts that have another system")
        with cache.stage(name) as staging:
            root = staging / shims.ROOT
            if own_loader:
                shutil.copytree(directory, root, symlinks=True)
                wanted = tuple(programs)
            else:
                wanted = tuple(_copy(root / "usr", prefix, {**_helpers(product), **programs}))
            shims.make(staging, wanted, shims.architecture())
            shims.add_other_names(staging / "bin", product)
            fetched.link_prefix(staging)
            cache.write_manifest(staging / MANIFEST, signature)
    return entry


def _copy(usr: Path, prefix: Path, programs: Mapping[str, Path]) -> Mapping[str, Path]:
    """Copy an installation without a loader, and the libraries of this machine that it loads. Returns its programs."""
    (usr / "bin").mkdir(parents=True)
    for name, path in programs.items():
        shutil.copy(path, usr / "bin" / name)
    for part in _PARTS:
        if (prefix / part).is_dir():
            shutil.copytree(prefix / part, usr / part, ignore=_LEFT_OUT, ignore_dangling_symlinks=True)
    target = usr / "lib" / shims.TRIPLETS[shims.architecture()]
    target.mkdir(parents=True, exist_ok=True)
    plugins = [path for part in ("lib", "lib64") for path in sorted((usr / part).rglob("*.so*"))]
    for library in libraries.libraries_of([_SHELL, *sorted((usr / "bin").rglob("*")), *plugins]):
        if not library.resolve().is_relative_to(usr.resolve()):
            shutil.copy(library, target / library.name)
    return programs


def _helpers(product: str) -> dict[str, Path]:
    """The programs of state transfers that come with the system and not with a vendor's server: name -> path."""
    names = [name for name in ("socat", "pv", "ss", "ip", "ps") if name in PROGRAMS[product]]
    found = {name: shutil.which(name) for name in names}
    return {name: Path(path) for name, path in found.items() if path}


def _files(trees: list[Path]) -> Iterator[Path]:
    """The files of these trees, in a fixed order."""
    for tree in trees:
        yield from (path for path in sorted(tree.rglob("*")) if path.is_file())


def _digest(files: list[Path]) -> str:
    """A digest that changes with the content of a file, as far as its size and time show."""
    states = [(str(path), (status := path.stat()).st_size, status.st_mtime_ns) for path in files]
    return hashlib.sha256(repr(states).encode()).hexdigest()
