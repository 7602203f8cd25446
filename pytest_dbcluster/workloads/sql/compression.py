"""Files of data as streams of bytes. Those that end in ``.gz`` or ``.zst`` are decompressed while they are read.

Zstandard is a module of Python from 3.14 on, and the package ``backports.zstd`` has the same module for older ones. It
reads the frames of any number of blocks, and tells a cut file from a whole one.
"""

from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from pytest_dbcluster.errors import ConfigError

ENDINGS = (".gz", ".zst")
MISSING = (
    "{file}: files of Zstandard need the package backports.zstd: pip install 'pytest-dbcluster[zstd]', or compress the "
    "file with gzip"
)


def plain_name(name: str) -> str:
    """The name of a file without ``.gz`` or ``.zst``."""
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), "")
    return name.removesuffix(ending)


@contextlib.contextmanager
def open_bytes(path: Path, shown: str) -> Iterator[IO[bytes]]:
    """The decompressed content of a file. shown: the file in messages.

    Raises ConfigError for a damaged or cut file, and if Python has no module for its compression.
    """
    damages: tuple[type[Exception], ...] = (EOFError, zlib.error, gzip.BadGzipFile)
    opens: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    if path.suffix == ".zst":
        zstandard = _zstandard(shown)
        damages, opens = (EOFError, zstandard.ZstdError), zstandard.open
    with opens(path, "rb") as file:
        try:
            yield file
        except damages as error:
            raise ConfigError(f"{shown}: this file is damaged or was cut: {error}; copy it again") from None


def _zstandard(shown: str) -> Any:
    """The module of Zstandard. Raises ConfigError without one."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise ConfigError(MISSING.format(file=shown)) from None
    return zstd
