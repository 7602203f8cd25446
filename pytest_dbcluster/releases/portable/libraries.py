"""The libraries that programs of this machine load, and the dynamic loader that starts them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.releases import shims

LDD_SECONDS = 60.0  # it reads each program, perhaps over a network
# A line of ldd: "	libaio.so.1 => /lib/x86_64-linux-gnu/libaio.so.1 (0x7f40)", or the loader without an arrow.
_LOADED = re.compile(r"^\t(?:\S+ => )?(/.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
# Libraries that glibc opens by name, so that ldd does not list them. Newer versions of glibc contain the second one.
_OPENED = ("libgcc_s.so.1", "libnss_files.so.2")


def libraries_of(programs: Iterable[Path]) -> list[Path]:
    """The paths of all libraries that these programs or plugins load, with the loader. Scripts are ignored.

    Libraries that this machine lacks are missing in the list. Raises Unsupported on a system without ldd,
    and ProvisionError if that does not end.
    """
    binaries = [str(path) for path in programs if path.is_file() and shims.is_elf(path)]
    if not binaries:
        return []
    try:
        # It exits with 1 if one of the programs has no libraries.
        environment, limit = {**os.environ, "LC_ALL": "C"}, LDD_SECONDS
        done = subprocess.run(
            ["ldd", *binaries], capture_output=True, text=True, check=False, env=environment, timeout=limit
        )
    except subprocess.TimeoutExpired as error:
        raise ProvisionError(f"ldd of {quantity(len(binaries), 'program')} did not end within {limit:g} s") from error
    except FileNotFoundError as error:
        raise Unsupported("this system has no ldd, a program of glibc that lists the libraries of programs") from error
    found = dict.fromkeys(Path(os.path.normpath(path)) for path in _LOADED.findall(done.stdout))
    libc = next((path for path in found if path.name == "libc.so.6"), None)
    opened = [path for name in _OPENED if libc and (path := libc.with_name(name)).exists()]
    return list(dict.fromkeys([*found, *opened]))
