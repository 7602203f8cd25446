"""``LuaTree``: a user's sysbench script with the files beside it, read once, so that all rounds run the same."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import mebibytes
from pytest_dbcluster.hosts.host import Host

DIGITS = 10  # of a digest
MOST_FILES, MOST_DIRECTORIES = 500, 1000
MOST_BYTES = 64 * 2**20
OWN_DIRECTORY = "put the script and what it requires into a directory of its own"


@dataclasses.dataclass(frozen=True)
class LuaTree:
    """A script, all files named ``*.lua`` in its directory and below, and files that the test names."""

    shown: str
    """The path of the script as the test writes it."""

    path: str
    """The absolute path of the script."""

    name: str
    """The name of the script without ``.lua``."""

    main: str
    """The name of the script's file."""

    files: Mapping[str, bytes] = dataclasses.field(repr=False)
    """Path relative to the script's directory -> content."""

    @functools.cached_property
    def digests(self) -> Mapping[str, str]:
        """The SHA-256 of each file, by its path from the parent of the script's directory."""
        directory = Path(self.path).parent.name
        return {f"{directory}/{name}": hashlib.sha256(content).hexdigest() for name, content in self.files.items()}

    @functools.cached_property
    def digest(self) -> str:
        """A digest of the names and contents of all files."""
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        return hashlib.sha256(json.dumps([self.main, sums], sort_keys=True).encode()).hexdigest()[:DIGITS]

    def write(self, directory: Path) -> Path:
        """Write the files into a directory of this machine, and return the path of the script."""
        for name, content in self.files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
        return directory / self.main

    def push(self, host: Host) -> str:
        """Write the files to a host, unless it has them, and return the path of the script there."""
        place = f"{host.directory}/{self.name}-{self.digest}"
        for name, content in self.files.items():
            host.push_once(content, f"{place}/{name}")
        return f"{place}/{self.main}"

    def readable(self, message: str) -> str:
        """A message of Lua, with the names of files as the test would write them: ``mine.lua:3:`` -> bench/mine.lua."""
        directory = self.shown.removesuffix(self.main)
        names = "|".join(map(re.escape, self.files))
        return re.sub(
            rf"(?<![\w/.])(?:\./)?({names}):(\d+):", lambda found: f"{directory}{found[1]}:{found[2]}:", message
        )


def read(script: str | os.PathLike[str], more: Sequence[str]) -> LuaTree:
    """Read a script and its files. more: names of other files, relative to the script's directory.

    Raises ConfigError for a missing file, and for a directory with too many or too large files.
    """
    shown = os.fspath(script)
    path = Path(script)
    if not path.is_file():
        own = (
            f'; SysBench("{path.stem}") runs a script of sysbench' if path.stem.startswith(("oltp_", "select_")) else ""
        )
        near = [each.name for each in _lua_files(path.parent)] if path.parent.is_dir() else []
        known = f"; {path.parent} has {', '.join(sorted(near)[:10])}" if near else ""
        raise ConfigError(f"LuaScript({shown!r}): there is no file {path.absolute()}{known}{own}")
    directory = path.resolve().parent
    names = {path.resolve().name, *(each.relative_to(directory).as_posix() for each in _lua_files(directory, shown))}
    for name in more:
        if not (directory / name).is_file():
            raise ConfigError(f"LuaScript({shown!r}, data_files={list(more)!r}): there is no file {directory / name}")
        names.add(Path(name).as_posix())
    size = sum((directory / name).stat().st_size for name in names)
    if size > MOST_BYTES:
        raise ConfigError(
            f"LuaScript({shown!r}): its files have {mebibytes(size)}, and the limit is {mebibytes(MOST_BYTES)}: "
            f"{OWN_DIRECTORY}, and write rows in prepare"
        )
    contents = {name: (directory / name).read_bytes() for name in sorted(names)}
    return LuaTree(shown, str(path.resolve()), path.resolve().stem, path.resolve().name, contents)


def _lua_files(directory: Path, shown: str = "") -> Iterator[Path]:
    """The files of Lua in a directory and below, without hidden directories. Without ``shown`` those in it only."""
    if not shown:
        yield from directory.glob("*.lua")
        return
    files = directories = 0
    for place, below, names in os.walk(directory):
        below[:] = sorted(name for name in below if not name.startswith("."))
        found = [Path(place) / name for name in names if name.endswith(".lua")]
        files, directories = files + len(found), directories + 1
        if files > MOST_FILES or directories > MOST_DIRECTORIES:
            raise ConfigError(
                f"LuaScript({shown!r}): {directory} has more than {MOST_FILES} files of Lua or {MOST_DIRECTORIES} "
                f"directories, which all belong to the script: {OWN_DIRECTORY}"
            )
        yield from found
