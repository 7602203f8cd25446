"""The files of a cache entry: what counts as damage, and when contents are read."""

from __future__ import annotations

import os
import shutil

import pytest

from pytest_dbcluster.system import entry_files
from tests.support.facts import missing


@pytest.fixture
def entry(tmp_path):
    """An entry with a program, a library in a folder, and a link; its files are recorded."""
    made = tmp_path / "entry"
    (made / "lib").mkdir(parents=True)
    (made / "mariadbd").write_bytes(b"server")
    (made / "lib" / "libgalera_smm.so").write_bytes(b"library")
    (made / "link").symlink_to("nowhere")
    entry_files.record(made)
    return made


@pytest.fixture
def read(monkeypatch):
    """The names of the files whose contents are read."""
    names, digest = [], entry_files.digest
    monkeypatch.setattr(entry_files, "digest", lambda path: names.append(path.name) or digest(path))
    return names


def test_whole_files_are_not_read_again(entry, read):
    """The first use after the making reads no contents, nor does any later one."""
    assert [entry_files.damage(entry) for _ in range(3)] == [""] * 3
    assert read == []


@pytest.mark.parametrize(
    ("do", "facts"),
    [
        (lambda entry: os.truncate(entry / "mariadbd", 3), ("mariadbd", "3 bytes instead of 6")),
        (lambda entry: (entry / "mariadbd").write_bytes(b""), ("mariadbd", "0 bytes instead of 6")),
        (lambda entry: (entry / "lib" / "libgalera_smm.so").unlink(), ("lib/libgalera_smm.so", "missing")),
        (lambda entry: (entry / "mariadbd").write_bytes(b"SERVER"), ("mariadbd", "other contents")),
        (lambda entry: (entry / entry_files.RECORD).write_bytes(b""), (".files.json", "cannot be read")),
    ],
)
def test_damage_is_named_with_the_file(entry, do, facts):
    """Sizes and contents are compared with those of the making."""
    do(entry)

    assert missing(entry_files.damage(entry), *facts) == []


def test_contents_are_compared_although_the_times_are_set_back(entry):
    """Who sets the time of modification cannot set the time of change."""
    status = (entry / "mariadbd").stat()
    (entry / "mariadbd").write_bytes(b"SERVER")
    os.utime(entry / "mariadbd", ns=(status.st_atime_ns, status.st_mtime_ns))

    assert missing(entry_files.damage(entry), "mariadbd", "other contents") == []


def test_a_copied_entry_is_read_once(entry, tmp_path, read):
    """Every file is another one then; what was compared is remembered."""
    copy = tmp_path / "copy"
    shutil.copytree(entry, copy, symlinks=True)

    assert [entry_files.damage(copy) for _ in range(2)] == ["", ""]
    assert sorted(read) == ["libgalera_smm.so", "mariadbd"]


def test_a_touched_file_alone_is_read(entry, read):
    """A data set's description is touched at each use; the data is not read for that."""
    os.utime(entry / "mariadbd")

    assert entry_files.damage(entry) == ""
    assert read == ["mariadbd"]


def test_an_entry_without_a_record_gets_one(entry):
    """Entries of older versions are recorded as they are."""
    (entry / entry_files.RECORD).unlink()
    (entry / "mariadbd").write_bytes(b"of before")

    assert entry_files.damage(entry) == ""
    assert entry_files.is_recorded(entry)
    os.truncate(entry / "mariadbd", 1)
    assert missing(entry_files.damage(entry), "mariadbd", "1 byte instead of 9") == []
