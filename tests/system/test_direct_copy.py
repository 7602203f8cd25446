"""Copies of directories: equal to what they were made from, on file systems with and without O_DIRECT."""

from __future__ import annotations

import errno
import filecmp
import os
import stat

import pytest

from pytest_dbcluster.system import direct_copy
from pytest_dbcluster.system.direct_copy import copy_sparse, copy_tree

SIZES = [
    0,
    1,
    4096,
    direct_copy.SMALL,
    direct_copy.SMALL + 1,
    direct_copy.CHUNK,
    direct_copy.CHUNK + 4096,
    2 * direct_copy.CHUNK + 17,
]


@pytest.fixture
def source(tmp_path):
    """Files of sizes at which something may go wrong, two directories deep."""
    deep = tmp_path / "source" / "deep"
    deep.mkdir(parents=True)
    for size in SIZES:
        (deep / f"file-{size}").write_bytes(os.urandom(size))
    (deep / "file-1").chmod(0o640)
    deep.chmod(0o750)
    return tmp_path / "source"


def equal(source, target):
    """Whether every file of the one is in the other, byte by byte, and no other."""
    names = sorted(path.name for path in (source / "deep").iterdir())
    assert sorted(path.name for path in (target / "deep").iterdir()) == names
    return filecmp.cmpfiles(source / "deep", target / "deep", names, shallow=False) == (names, [], [])


def test_a_copy_is_equal_whatever_the_sizes(source, tmp_path):
    """Modes go along; a block that is not full ends where the file does."""
    copy_tree(source, tmp_path / "target")

    assert equal(source, tmp_path / "target")
    assert stat.S_IMODE((tmp_path / "target" / "deep").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "target" / "deep" / "file-1").stat().st_mode) == 0o640


def test_a_file_system_without_direct_writes_gets_a_copy_too(source, tmp_path, monkeypatch):
    """It is forced to disk instead."""
    forced = []

    def refuse(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(direct_copy.fcntl, "fcntl", refuse)
    monkeypatch.setattr(direct_copy.os, "fsync", forced.append)
    copy_tree(source, tmp_path / "target")

    assert equal(source, tmp_path / "target")
    assert len(forced) == sum(size > direct_copy.SMALL for size in SIZES)


def test_a_short_write_goes_on_where_it_ended(source, tmp_path, monkeypatch):
    """The kernel may take less than it was given."""
    write = os.write
    monkeypatch.setattr(
        direct_copy.os, "write", lambda file, view: write(file, view[: max(len(view) // 8192, 1) * 4096])
    )
    copy_tree(source, tmp_path / "target")

    assert equal(source, tmp_path / "target")


@pytest.mark.parametrize("parts", [[], [(0, 1)], [(5, 3), (8 * 2**20, 2 * direct_copy.CHUNK + 17), (2**30 - 1, 1)]])
def test_a_sparse_copy_has_the_same_content_and_no_more(tmp_path, parts):
    """What the target had before is gone, also where the source has a hole."""
    source, target = tmp_path / "source", tmp_path / "target"
    with source.open("wb") as file:
        for offset, size in parts:
            file.seek(offset)
            file.write(os.urandom(size))
        file.truncate(2**30)
    target.write_bytes(b"x" * 2**20)

    copy_sparse(source, target)

    assert target.stat().st_size == 2**30
    assert target.stat().st_blocks <= source.stat().st_blocks + 64
    with source.open("rb") as old, target.open("rb") as new:
        for offset in {0, 4096, 2**20, *(offset for offset, _ in parts)}:
            old.seek(offset)
            new.seek(offset)
            assert old.read(3 * direct_copy.CHUNK) == new.read(3 * direct_copy.CHUNK)
