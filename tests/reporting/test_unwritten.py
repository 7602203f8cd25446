"""Files that cannot be written: what is left of them, and what is said."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_dbcluster.reporting import results_directory, unwritten
from pytest_dbcluster.reporting.unwritten import Unwritten
from tests.support.facts import missing
from tests.support.records import record

FULL = Path("/dev/full")


def full(*_):
    """What a full disk answers."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_every_file_is_named_once_for_each_reason():
    """The line gives the first paths, the number of others, and the reason of the system."""
    lost = Unwritten()
    for name in ("a", "b", "b", "c", "d", "e"):
        with lost.note(Path(name)):
            full()
    with lost.note(Path("f")):
        raise PermissionError(errno.EACCES, "Permission denied")

    full_disk, denied = lost.lines()
    assert missing(full_disk, "NOT WRITTEN: ", "a, b, c and 2 more: No space left on device") == []
    assert missing(denied, "NOT WRITTEN: ", "f: Permission denied") == []


def test_other_errors_are_raised():
    """Only what the system answers is noted."""
    with pytest.raises(ValueError, match="wrong"), Unwritten().note(Path("a")):
        raise ValueError("wrong")


def test_a_line_is_added_whole_or_not_at_all(tmp_path, monkeypatch):
    """A disk that is full in the middle of a line leaves the lines before it."""
    file = tmp_path / "claims.jsonl"
    unwritten.append(file, b"one\n")
    real = Path.open

    class Short:
        """A file that takes two bytes and is full then."""

        def __init__(self, file):
            self.file = file
            self.room = 2

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, content):
            """As many bytes as there is room for."""
            if not self.room:
                full()
            written = self.file.write(content[: self.room])
            self.room -= written
            return written

    monkeypatch.setattr(Path, "open", lambda *words, **more: Short(real(*words, **more)))
    with pytest.raises(OSError, match="No space left"):
        unwritten.append(file, b"two\n")
    monkeypatch.undo()

    assert file.read_bytes() == b"one\n"


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_full_device_is_an_error():
    """Neither function hides it."""
    for function in (unwritten.append, unwritten.write):
        with pytest.raises(OSError, match="No space left on device"):
            function(FULL, b"x")
    assert FULL.is_char_device()


def test_only_a_plain_file_is_removed_when_it_could_not_be_written(tmp_path, monkeypatch):
    """A device, or what a link leads to, is not ours; a part of our own file is."""
    plain, link, target = (tmp_path / name for name in ("plain", "link", "target"))
    for file in (plain, target):
        file.write_text("part")
    link.symlink_to(target)
    monkeypatch.setattr(Path, "write_bytes", full)
    for file in (plain, link):
        with pytest.raises(OSError, match="No space left"):
            unwritten.write(file, b"x")

    assert (plain.exists(), link.is_symlink(), target.exists()) == (False, True, True)


def test_a_claim_that_could_not_be_listed_has_no_line(tmp_path, monkeypatch):
    """The next one that can be written is line 1, where readers find it."""
    kept = results_directory.Results(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(results_directory, "append", full)
        patch.setattr(results_directory, "write", full)
        lost = kept.add(record())
    found = kept.add(record())

    assert (lost.line, lost.chart, found.line) == (0, None, 1)
    assert len((tmp_path / "claims.jsonl").read_text().splitlines()) == 1
    [said] = kept.unwritten.lines()
    assert "claims.jsonl" in said
