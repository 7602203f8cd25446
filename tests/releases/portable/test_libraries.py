"""The libraries that programs of this machine load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.releases.portable import libraries

SHELL = Path(shutil.which("sh")).resolve()


def test_a_program_loads_its_libraries_through_a_loader():
    """Those of the C library, the loader, and what glibc opens by name; every path exists."""
    found = libraries.libraries_of([SHELL])
    names = {path.name for path in found}

    assert {"libc.so.6", "libgcc_s.so.1"} <= names
    assert any(name.startswith("ld-linux") for name in names)
    assert [path for path in found if not path.exists()] == []


def test_libraries_of_several_programs_are_named_once():
    """The order is that of the programs."""
    once, twice = libraries.libraries_of([SHELL]), libraries.libraries_of([SHELL, SHELL])

    assert once == twice


def test_scripts_load_nothing(tmp_path):
    """They have no list of libraries; a path without a file has none either."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")

    assert libraries.libraries_of([script, tmp_path / "none"]) == []


def test_a_system_without_ldd_says_so(monkeypatch):
    """It has no glibc, so nothing of ours would run there."""
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(Unsupported, match="no ldd"):
        libraries.libraries_of([SHELL])
