"""Files of a run's directory, which other users may neither write nor redirect."""

from __future__ import annotations

import os
import stat

import pytest

from pytest_dbcluster.system import owned_files
from tests.support import users
from tests.support.users import ALICE, MALLORY

MODULE = "pytest_dbcluster.system.owned_files"
PROGRAM = """
from pathlib import Path
from pytest_dbcluster.system import owned_files

for name in sys.argv[1:]:
    print(owned_files.distrust_reason(Path(name)))
"""


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


@pytest.mark.parametrize(
    ("mode", "uid", "words"),
    [
        (0o777, 0, "others can write to {}, which belongs to user root, mode 0777"),
        (0o1777, 0, "mode 1777"),
        (0o775, ALICE, f"belongs to user {ALICE}, mode 0775"),
        (0o755, ALICE, f"belongs to user {ALICE}, mode 0755"),
        (0o755, 0, ""),
        (0o700, 0, ""),
    ],
)
def test_programs_that_another_user_can_change_are_not_trusted(directory, mode, uid, words):
    """Root would run them. The reason names the directory, its owner and its mode."""
    if reason := users.missing():
        pytest.skip(reason)
    os.chown(directory, uid, uid)
    directory.chmod(mode)

    reason = owned_files.distrust_reason(directory)

    assert bool(reason) == bool(words)
    assert words.format(directory) in reason


def test_root_trusts_no_directory_below_one_that_another_user_can_change(open_to_all):
    """Whoever owns the directory above can put another one in its place; in /tmp only its owner can."""
    (below := open_to_all / "cache" / "releases").mkdir(parents=True)
    assert owned_files.distrust_reason(below) == ""

    os.chown(open_to_all / "cache", ALICE, ALICE)
    assert f"{open_to_all / 'cache'} belongs to user {ALICE}" in owned_files.distrust_reason(below)


def test_a_link_into_a_directory_of_another_user_is_not_trusted(open_to_all):
    """What counts is where the programs are."""
    (theirs := open_to_all / "theirs").mkdir()
    os.chown(theirs, ALICE, ALICE)
    (ours := open_to_all / "ours").symlink_to(theirs)

    assert f"{ours} belongs to user {ALICE}" in owned_files.distrust_reason(ours)


def test_a_user_trusts_the_cache_of_root_and_their_own(open_to_all):
    """A machine may have one cache for all users, which root fills."""
    (theirs := open_to_all / "theirs").mkdir(mode=0o755)
    (shared := open_to_all / "shared").mkdir(mode=0o755)
    os.chown(theirs, ALICE, ALICE)
    asked = [users.begin(uid, PROGRAM, theirs, shared, loads=[MODULE]) for uid in (ALICE, MALLORY)]
    alice, mallory = (one.communicate(timeout=60)[0].splitlines() for one in asked)

    assert alice == ["", ""]
    assert ("belongs to user" in mallory[0], mallory[1]) == (True, "")
