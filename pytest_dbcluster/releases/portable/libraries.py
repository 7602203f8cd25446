"""The libraries that programs of this machine load, and the dynamic loader that starts them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.releases import shims

# A line of ldd: "	libaio.so.1 => /lib/x86_64-linux-gnu/libaio.so.1 (0x7f40)", or the loader without an arrow.
_LOADED = re.compile(r"^\t(?:\S+ => )?(/.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
# Libraries that glibc opens by name, so that ldd does not list them. Newer versions of glibc contain the second one.
_OPENED = ("libgcc_s.so.1", "libnss_files.so.2")


def libraries_of(programs: Iterable[Path]) -> list[Path]:
    """The paths of all libraries that these programs or plugins load, with the loader. Scripts are ignored.

    Libraries that this machine lacks are missing in the list. Raises Unsupported on a system without ldd.
    """
    binaries = [str(path) for path in programs if path.is_file() and shims.is_elf(path)]
    if not binaries:
        return []
    try:
        # It exits with 1 if one of the programs has no libraries.
        done = subprocess.run(
            ["ldd", *binaries], capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except FileNotFoundError as error:
        raise Unsupported("this system has no ldd, a program of glibc that lists the libraries of programs") from error
    found = dict.fromkeys(Path(os.path.normpath(path)) for path in _LOADED.findall(done.stdout))
    libc = next((path for path in found if path.name == "libc.so.6"), None)
    opened = [path for name in _OPENED if libc and (path := libc.with_name(name)).exists()]
    return list(dict.fromkeys([*found, *opened]))
