"""What the cache holds, listed and removed: under the locks of its makers, and beside runs that begin."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import time

import filelock
import pytest

from pytest_dbcluster.cli import cache as commands
from pytest_dbcluster.cli import main
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed import datasets
from tests.support.facts import missing


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pytest-dbcluster"


def test_the_cache_is_listed_and_cleaned(data, empty_cache, capsys):
    """What can be made again is listed with its size and removed; runs stay."""
    for place in ("releases/sysbench-amd64", "templates/mariadb-1"):
        (empty_cache / place).mkdir(parents=True)
        (empty_cache / place / "file").write_bytes(bytes(3_000_000))
    (empty_cache / "references").mkdir()
    (empty_cache / "references" / "a.json").write_text("{}")
    assert main.main(["cache"]) == 0
    listed = capsys.readouterr().out
    assert main.main(["cache", "clean"]) == 0
    capsys.readouterr()

    assert re.findall(r"^\S+ +\d+ MB", listed, re.MULTILINE) == [
        "releases/sysbench-amd64  3 MB", "templates/mariadb-1      3 MB", "references               0 MB",
    ]  # fmt: skip
    assert f"6 MB in {empty_cache}" in listed
    assert commands.list_entries() == []


@pytest.mark.parametrize("folder", commands.FOLDERS)
def test_what_a_killed_fetch_left_is_listed_and_cleaned(data, empty_cache, folder, capsys):
    """An unfinished entry is listed with its size and cleaned, but not while its maker holds the lock."""
    unfinished = empty_cache / folder / ".fetching-mariadb-10.11-amd64-x_1abc2d"
    unfinished.mkdir(parents=True)
    (unfinished / "file").write_bytes(bytes(3_000_000))
    with commands._lock(unfinished, print):
        while_made = commands.list_entries()
    assert main.main(["cache"]) == 0
    listed = capsys.readouterr().out
    assert main.main(["cache", "clean"]) == 0

    assert while_made == []
    assert re.search(
        rf"^{folder}/.fetching-mariadb-10.11-amd64-x_1abc2d +3 MB +unfinished: the process that made it was killed",
        listed,
        re.MULTILINE,
    )
    assert not unfinished.exists()
    assert commands.list_entries() == []


@pytest.fixture
def two_data_sets(empty_cache):
    """A cache with two loaded databases in it."""
    for name, holds, hours in (("mariadb-1", "tpcc of 10 warehouses", 3), ("mysql-1", "sysbench of 4 tables", 50)):
        place = empty_cache / "stored" / name
        (place / "data").mkdir(parents=True)
        said = {"holds": holds, "release": "mariadb:10.11 10.11.19", "size": 2_000_000, "password": "never told"}
        (place / datasets.FILE).write_text(json.dumps(said))
        os.utime(place / datasets.FILE, (time.time() - 3600 * hours,) * 2)
    return empty_cache / "stored"


def test_data_sets_are_listed_with_what_they_hold_and_when_they_were_used(data, two_data_sets, capsys):
    """``dbcluster cache`` lists the contents of each data set, its release, and when it was last used."""
    assert main.main(["cache"]) == 0
    listed = capsys.readouterr().out

    assert re.search(r"^entry +size +holds +used$", listed, re.MULTILINE)
    assert re.search(
        r"^stored/mariadb-1  2 MB  data set tpcc of 10 warehouses, mariadb:10\.11 10\.11\.19 +3 h ago$", listed, re.M
    )
    assert re.search(r"^stored/mysql-1 .* 2 d ago$", listed, re.MULTILINE)
    assert "never told" not in listed


def test_one_entry_of_the_cache_is_removed_by_its_name(data, two_data_sets, capsys):
    """Only named entries are removed. An unknown name is refused before any removal; ``list`` takes no names."""
    assert main.main(["cache", "clean", "stored/mysql-1", "stored/mysql-2"]) == 2
    refused = capsys.readouterr().err
    assert len(list(two_data_sets.iterdir())) == 2
    assert main.main(["cache", "list", "stored/mysql-1"]) == 2
    capsys.readouterr()
    assert main.main(["cache", "clean", "stored/mysql-1"]) == 0

    assert [path.name for path in two_data_sets.iterdir()] == ["mariadb-1"]
    assert "stored/mysql-1" in capsys.readouterr().out
    known = "known: stored/mariadb-1, stored/mysql-1;"
    assert missing(refused, "dbcluster: ", "'stored/mysql-2'", known, "did you mean stored/mysql-1?\n") == []


@pytest.mark.parametrize(
    ("folder", "lock"),
    [
        ("releases", "locks/one.lock"),
        ("images", "locks/image-one.lock"),
        ("stored", "locks/stored-one.lock"),
        ("templates", "templates/one.lock"),
    ],
)
def test_an_entry_is_removed_under_the_lock_of_its_maker(data, empty_cache, monkeypatch, folder, lock):
    """An entry is removed under its lock; the lock file stays, because other processes may wait for it."""
    (empty_cache / folder / "one").mkdir(parents=True)
    held, discard = [], cache.discard

    def discarding(place):
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(empty_cache / lock).acquire(timeout=0)
        held.append(place)
        discard(place)

    monkeypatch.setattr(cache, "discard", discarding)
    commands.clean([f"{folder}/one"])

    assert held == [empty_cache / folder / "one"]
    assert not held[0].exists()
    assert (empty_cache / lock).exists()


@pytest.mark.parametrize("folder", commands.FOLDERS)
def test_an_entry_whose_lock_is_another_users_is_named(data, empty_cache, capsys, folder):
    """An entry of another user is not removed, and the error is one line."""
    (empty_cache / folder / "one").mkdir(parents=True)
    name = {"images": "image-one", "stored": "stored-one"}.get(folder, "one")
    lock = empty_cache / ("templates" if folder == "templates" else "locks") / f"{name}.lock"
    lock.mkdir(parents=True)  # which even root cannot write

    assert main.main(["cache", "clean", f"{folder}/one"]) == 1
    assert capsys.readouterr().err.startswith(f"dbcluster: cannot take the lock {lock} of the cache: ")
    assert (empty_cache / folder / "one").is_dir()


def begin_run(data):
    """A run that has begun: this process owns it."""
    (data / "ab12").mkdir(parents=True)
    runs.claim(data / "ab12")


def test_a_program_of_the_cache_that_runs_keeps_it(data, two_data_sets, tmp_path):
    """A run with another data directory is in no list of this one."""
    program = cache.root() / "releases" / "mariadb-1" / "sleep"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "600"]) as running:
        try:
            with pytest.raises(ConfigError, match=rf"programs of the cache run: sleep \(pid {running.pid}\)"):
                commands.clean()
        finally:
            running.kill()

    assert len(list(two_data_sets.iterdir())) == 2


def test_a_run_that_begins_while_a_lock_is_waited_for_keeps_its_cache(data, two_data_sets, capsys):
    """The error lists the removed entries and those that stay; waiting for a lock is reported."""
    waits = []

    def tell(line):
        waits.append(line)
        begin_run(data)
        holder.release()

    (cache.root() / "locks").mkdir()
    holder = filelock.FileLock(cache.root() / "locks" / "stored-mysql-1.lock")
    with holder, pytest.raises(ConfigError) as caught:
        commands.clean(progress=tell)

    (wait,) = waits
    assert missing(wait, "waiting for another process", "stored-mysql-1", "30 min at most (--db-wait)") == []
    assert [path.name for path in two_data_sets.iterdir()] == ["mysql-1"]
    used, remain, removed = str(caught.value).splitlines()
    assert missing(used, "in use by run ab12", "end it first: dbcluster ps, dbcluster down") == []
    assert remain.endswith(": stored/mysql-1")
    assert removed == "removed: stored/mariadb-1"


def test_readings_stay_when_a_run_has_begun(data, two_data_sets, monkeypatch):
    """The references stay when a run has begun: they have no lock."""
    (cache.root() / "references").mkdir()
    reading = cache.root() / "references" / "a.json"
    reading.write_text("{}")
    discard = cache.discard

    def discarding(place):
        discard(place)
        if place.name == "mysql-1":  # the last before them
            begin_run(data)

    monkeypatch.setattr(cache, "discard", discarding)
    with pytest.raises(ConfigError, match="so these entries remain: references\nremoved: stored/mariadb-1, stored/my"):
        commands.clean()
    assert reading.exists()


@pytest.fixture
def refused(monkeypatch):
    """Names that no file or directory of can be deleted."""
    names, rmdir, unlink = set(), os.rmdir, os.unlink

    def refusing(delete):
        def refuse(path, **options):
            if any(os.fspath(path).rsplit("/", 1)[-1].startswith(name) for name in names):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            delete(path, **options)

        return refuse

    monkeypatch.setattr(os, "rmdir", refusing(rmdir))
    monkeypatch.setattr(os, "unlink", refusing(unlink))
    return names


def test_what_cannot_be_removed_does_not_keep_the_rest(data, two_data_sets, refused, capsys):
    """Every entry that cannot be removed is listed with its reason, and again by the next ``clean``."""
    (two_data_sets / "mariadb-1" / "data" / "another").touch()
    refused.add("another")
    assert main.main(["cache", "clean"]) == 1
    told = capsys.readouterr()
    (left,) = two_data_sets.iterdir()
    assert main.main(["cache", "clean"]) == 0
    again = capsys.readouterr()

    assert left.name.startswith(".removed-mariadb-1-")
    why = f"0 MB of a removed cache entry are left in {left}: Permission denied; delete it as "
    assert told.err.startswith(f"dbcluster: {why}")
    assert told.err.endswith("\nremoved: stored/mysql-1\n")
    assert told.err.count(str(left)) == 1
    assert why in again.out + again.err


def test_readings_that_cannot_be_removed_are_named(data, empty_cache, refused, capsys):
    """References of another user raise an error that says who can remove them."""
    (empty_cache / "references").mkdir(parents=True)
    (empty_cache / "references" / "another.json").write_text("{}")
    refused.add("another")

    assert main.main(["cache", "clean", "references"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    asked = f"dbcluster: cannot empty {empty_cache}/references"
    assert missing(line, asked, "Permission denied", "as the owner of the directory") == []


def test_what_an_interrupted_removal_left_goes_with_the_next_one(data, two_data_sets):
    """An incomplete entry is removed as well, although it is not listed."""
    (two_data_sets / ".removed-mysql-9-a1" / "data").mkdir(parents=True)

    assert [one.path.name for one in commands.clean(["stored/mysql-1"])] == ["mysql-1"]
    assert [path.name for path in two_data_sets.iterdir()] == ["mariadb-1"]


def test_calibrations_are_an_entry(empty_cache, capsys):
    """They took an hour each, so the list says what they are."""
    (empty_cache / "calibrations").mkdir(parents=True)
    (empty_cache / "calibrations" / "galera3.json").write_text("{}")

    assert main.main(["cache", "list"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("calibrations"))
    assert line.endswith("how far equal clusters differ here")
