"""Locks in directories that all users share."""

from __future__ import annotations

import fcntl

from pytest_dbcluster.system import shared_directory


def test_a_lock_is_taken_without_waiting(tmp_path):
    """One holder, or several that share it; it ends when its file is closed."""
    file = tmp_path / "lock"
    file.touch()
    with file.open() as first, file.open() as second:
        assert shared_directory.try_lock(first)
        assert not shared_directory.try_lock(second)
        assert not shared_directory.try_lock(second.fileno(), fcntl.LOCK_SH)

        first.close()

        assert shared_directory.try_lock(second, fcntl.LOCK_SH)
