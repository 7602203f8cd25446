"""Locks in directories that all users share."""

from __future__ import annotations

import fcntl
import os

import pytest

from pytest_dbcluster.errors import ProvisionError
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


def test_a_lock_file_that_was_replaced_is_not_trusted(tmp_path):
    """Its owner, or a clean-up of old files, has removed it: two processes would else hold two files of one name."""
    old = shared_directory.LockFile(tmp_path, "lock", "no lock")
    (tmp_path / "lock").unlink()
    new = shared_directory.LockFile(tmp_path, "lock", "no lock")

    assert new.try_lock()
    assert not old.try_lock()
    new.close()
    assert old.try_lock()
    old.close()


def test_a_file_that_goes_while_it_is_locked_is_no_lock(tmp_path, monkeypatch):
    """It is looked at once more after the lock was taken; the next attempt takes the new file."""
    lock = shared_directory.LockFile(tmp_path, "lock", "no lock")
    take = shared_directory.try_lock

    def take_and_lose(file, kind):
        (tmp_path / "lock").unlink()
        return take(file, kind)

    with monkeypatch.context() as patch:
        patch.setattr(shared_directory, "try_lock", take_and_lose)
        assert not lock.try_lock()
    assert lock.try_lock()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    lock.close()


def test_the_kernel_names_who_holds_a_lock(tmp_path):
    """Whatever anybody has written down."""
    lock = shared_directory.LockFile(tmp_path, "lock", "no lock")

    assert lock.lockers() == []
    assert lock.try_lock(fcntl.LOCK_SH)
    assert lock.lockers() == [os.getpid()]
    lock.close()


def test_a_file_that_appears_and_goes_all_the_time_is_given_up(tmp_path, monkeypatch):
    """Another user could keep us here for ever."""

    def exists(*_):
        raise FileExistsError

    monkeypatch.setattr(shared_directory, "create", exists)
    monkeypatch.setattr(shared_directory, "TRIES", 2)

    with pytest.raises(ProvisionError, match="keeps creating and removing it"):
        shared_directory.LockFile(tmp_path, "lock", "no lock")
