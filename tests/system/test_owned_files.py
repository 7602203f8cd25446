"""Files of a run's directory, which other users may neither write nor redirect."""

from __future__ import annotations

import os
import stat

import pytest

from pytest_dbcluster.system import owned_files


@pytest.fixture
def directory(tmp_path):
    """A directory of this user alone."""
    made = tmp_path / "own"
    made.mkdir(mode=0o700)
    return made


def test_a_file_is_for_this_user_alone_and_replaces_the_older_one(directory):
    """What a process that died has left beside it is no hindrance."""
    (directory / ".name").symlink_to("elsewhere")
    owned_files.write(directory, "name", "one")
    owned_files.write(directory, "name", "two")

    assert owned_files.read(directory, "name") == (b"two", os.getuid())
    assert stat.S_IMODE((directory / "name").stat().st_mode) == 0o600
    assert [path.name for path in directory.iterdir()] == ["name"]


def test_a_huge_file_is_not_read(directory):
    """Another user could fill our memory with it."""
    with (directory / "name").open("wb") as file:
        file.truncate(2**40)

    with pytest.raises(OSError, match="name has more than 1048576 bytes"):
        owned_files.read(directory, "name")


def test_a_tree_is_removed_without_following_links(directory, tmp_path):
    """Links in it go, and what they lead to stays; files without permissions go too."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (directory / "link").symlink_to(tmp_path / "precious")
    (directory / "inside").mkdir()
    (directory / "inside" / "link").symlink_to(tmp_path / "precious" / "file")
    (directory / "file").touch(mode=0o000)

    owned_files.remove_tree(directory, os.getuid())

    assert [path.name for path in tmp_path.rglob("*")] == ["precious", "file"]


@pytest.mark.parametrize("why", ["missing", "link", "owner", "file"])
def test_what_is_not_the_directory_of_this_user_stays(directory, why):
    """That is no error: another process may just have removed it."""
    (directory / "file").touch()
    other = directory.parent / "other"
    if why == "link":
        other.symlink_to(directory)
    elif why == "file":
        other.touch()

    owned_files.remove_tree(directory if why == "owner" else other, os.getuid() + (why == "owner"))

    assert (directory / "file").exists()
    assert other.exists() == (why in ("link", "file"))
