"""The cache: entries appear whole or not at all."""

from __future__ import annotations

import dataclasses
import errno
import functools
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import LockHeld, ProvisionError
from pytest_dbcluster.system import cache, processes, shared_directory
from tests.support.facts import missing

MANIFEST = cache.Manifest(
    product="mariadb",
    version="10.11",
    exact="10.11.19",
    architecture="amd64",
    suite="bookworm",
    source="bookworm of this system's apt sources",
    packages={"mariadb-server": "1:10.11.19"},
    downloaded=100,
    size=200,
    fetched="2026-01-01T00:00:00+00:00",
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pytest-dbcluster"


def test_the_cache_lies_in_xdg_cache_home(own_cache):
    """XDG_CACHE_HOME moves the cache."""
    assert cache.root() == own_cache


@pytest.mark.parametrize("value", ["", "relative/path"])
def test_a_cache_home_that_is_not_absolute_does_not_count(monkeypatch, value):
    """An empty or relative XDG_CACHE_HOME means ~/.cache, as its specification says."""
    monkeypatch.setenv("XDG_CACHE_HOME", value)

    assert cache.root() == Path.home() / ".cache" / "pytest-dbcluster"


def test_an_entry_is_there_when_its_block_has_ended():
    """What was made in the staging directory is the entry afterwards, and nothing else is left."""
    with cache.stage("mariadb-10.11-amd64") as staging:
        cache.write(staging, MANIFEST)

        assert cache.entries() == []

    assert cache.entries() == [(cache.releases() / "mariadb-10.11-amd64", MANIFEST)]
    assert [path.name for path in cache.releases().iterdir()] == ["mariadb-10.11-amd64"]


@pytest.mark.parametrize("made", [False, True])
def test_an_error_leaves_no_entry(made):
    """A block that fails leaves the cache as it was: the parent stays if it was there before."""
    if made:
        cache.releases().mkdir(parents=True)
    with pytest.raises(TypeError), cache.stage("mariadb-10.11-amd64") as staging:
        cache.write(staging, "not a manifest")

    assert cache.releases().exists() == made
    assert [*cache.releases().glob("*")] == []


def test_a_parent_that_another_process_removes_is_made_again(monkeypatch):
    """The other one had made it, and failed, just when this one was about to use it."""
    create, created = cache._create, []

    def removed(directory):
        create(directory)
        created.append(directory)
        if len(created) == 1:
            directory.rmdir()
        return directory

    monkeypatch.setattr(cache, "_create", removed)
    with cache.stage("haproxy-amd64") as staging:
        (staging / "bin").mkdir()

    assert created == [cache.releases()] * 2
    assert (cache.releases() / "haproxy-amd64" / "bin").is_dir()


def test_what_a_killed_fetch_left_is_removed_by_the_next_one():
    """A staging directory of the same entry is stale once its lock is free; others are left alone."""
    stale, other = (cache.releases() / f".fetching-{name}-x" for name in ("haproxy-amd64", "sysbench-amd64"))
    for directory in (stale, other):
        (directory / "root").mkdir(parents=True)

    with cache.stage("haproxy-amd64"):
        assert not stale.exists()

    assert other.exists()


def test_an_entry_is_on_disk_before_it_has_its_name(monkeypatch):
    """Every file and directory is forced to disk while it is staged, and then the directory that got the new name."""
    synced = []

    def fsync(descriptor):
        synced.append((Path(f"/proc/self/fd/{descriptor}").readlink(), (cache.releases() / "haproxy-amd64").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    with cache.stage("haproxy-amd64") as staging:
        (staging / "bin").mkdir()
        (staging / "bin" / "haproxy").touch()

    before = {path for path, named in synced if not named}
    names = ("", "bin", "bin/haproxy", ".files.json")
    assert {staging / name for name in names} <= before
    assert [path for path, named in synced if named] == [cache.releases()]


def test_only_the_last_damaged_one_is_kept(own_cache):
    """An entry that is damaged again and again does not fill the disk."""
    told = []
    for _ in range(2):
        with cache.stage("haproxy-amd64") as staging:
            cache.write(staging, MANIFEST)
        entry = cache.releases() / "haproxy-amd64"
        (entry / cache.MANIFEST).unlink()
        assert cache.set_aside_if_damaged(entry, cache.MANIFEST, told.append)

    [aside] = cache.releases().iterdir()
    assert cache.entry_of(aside) == entry
    assert cache.leftovers(cache.releases()) == {aside: "damaged: manifest.json is missing"}
    assert aside.name in told[1]
    assert not cache.set_aside_if_damaged(entry, cache.MANIFEST, told.append)


def test_a_directory_in_place_of_the_manifest_is_damage(own_cache):
    """The entry is set aside, so that it is made again."""
    with cache.stage("haproxy-amd64") as staging:
        cache.write(staging, MANIFEST)
    entry = cache.releases() / "haproxy-amd64"
    (entry / cache.MANIFEST).unlink()
    (entry / cache.MANIFEST).mkdir()

    assert cache.set_aside_if_damaged(entry, cache.MANIFEST, lambda _: None)
    assert not entry.exists()
    (state,) = cache.leftovers(cache.releases()).values()
    assert missing(state, "damaged", "manifest.json is a directory") == []


def test_an_entry_is_replaced_whole():
    """A second fetch takes the place of the first, without its files."""
    for name in ("first", "second"):
        with cache.stage("haproxy-amd64") as staging:
            (staging / name).touch()

    assert [path.name for path in (cache.releases() / "haproxy-amd64").glob("[!.]*")] == ["second"]


@pytest.mark.parametrize("text", ["", "{}", "[]", json.dumps({**dataclasses.asdict(MANIFEST), "format": 0})])
def test_an_entry_with_another_manifest_is_not_listed(text):
    """A manifest that is broken, or of another format, makes an entry that is fetched anew."""
    with cache.stage("mariadb-10.11-amd64") as staging:
        (staging / cache.MANIFEST).write_text(text)

    assert cache.entries() == []


def test_the_second_holder_of_a_lock_says_that_it_waits():
    """A lock is held by one at a time, and whoever has to wait tells the user."""
    lines, order = [], []
    inside = threading.Event()

    def second():
        with cache.lock("haproxy-amd64", progress=lambda line: (lines.append(line), inside.set())):
            order.append("second")

    with cache.lock("haproxy-amd64", progress=lines.append):
        thread = threading.Thread(target=second)
        thread.start()
        inside.wait(10)
        order.append("first")
    thread.join(10)

    assert order == ["first", "second"]
    (line,) = lines
    assert missing(line, "waiting for another process", "fetches haproxy-amd64;", "30 min at most (--db-wait)") == []


def test_a_lock_that_stays_held_ends_the_waiting():
    """After the time of ``--db-wait`` the error names the process that has it, with its user and command."""
    file = cache.lock_file("haproxy-amd64")
    with cache.lock("haproxy-amd64", progress=lambda line: None):
        pass
    with subprocess.Popen(["flock", file, "cat"], stdin=subprocess.PIPE) as other:
        wait.until(lambda: [] if shared_directory.lockers(file.stat()) else ["no lock"], "the lock", seconds=60)
        with (
            wait.lock_limit(0.05, "--wait"),
            pytest.raises(LockHeld) as caught,
            cache.lock("haproxy-amd64", progress=str),
        ):
            pytest.fail("it has the lock")
        other.stdin.close()

    assert "another process that fetches haproxy-amd64" in str(caught.value)
    assert f"pid {other.pid} ({processes.user_name(os.getuid())}: flock {file} cat, since " in str(caught.value)
    assert "--wait" in str(caught.value)


def test_a_short_wait_for_a_lock_is_not_reported(monkeypatch):
    """Another process that only reads an entry holds its lock for milliseconds."""
    monkeypatch.setattr(cache, "SILENT_SECONDS", 60.0)
    lines, order = [], []

    def second():
        with cache.lock("haproxy-amd64", progress=lines.append):
            order.append("second")

    with cache.lock("haproxy-amd64", progress=lines.append):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.3)  # long enough for the second one to ask; if it has not, it asks later, and the test still holds
        order.append("first")
    thread.join(60)

    assert (order, lines) == (["first", "second"], [])


def test_a_cache_that_cannot_be_made_names_the_way_out(tmp_path, monkeypatch):
    """The error says which directory it is and which variable moves it."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))

    with pytest.raises(
        ProvisionError, match=r"cannot create the cache .*: Not a directory; set XDG_CACHE_HOME to a writable"
    ):
        cache.lock("haproxy-amd64", progress=print).__enter__()


@pytest.mark.parametrize("taken", [functools.partial(cache.lock, progress=print), cache.if_free])
def test_a_lock_that_cannot_be_taken_is_named(own_cache, taken):
    """The error says which file it is and what the system said, in a cache that users share for example."""
    (own_cache / "locks" / "haproxy-amd64.lock").mkdir(parents=True)  # which even root cannot write

    with pytest.raises(ProvisionError) as caught, taken("haproxy-amd64"):
        pass
    for fact in (f"{own_cache}/locks/haproxy-amd64.lock", "Is a directory", "XDG_CACHE_HOME"):
        assert fact in str(caught.value)


@pytest.fixture
def entry():
    """A whole entry with a file that is its proof, and others."""
    with cache.stage("haproxy-amd64") as staging:
        cache.write(staging, MANIFEST)
        (staging / "root").mkdir()
        (staging / "root" / "file").touch()
    return cache.releases() / "haproxy-amd64"


def test_a_removal_that_is_interrupted_leaves_no_entry(entry, monkeypatch):
    """What is left of it is none, whatever has gone by then; the next removal takes it along."""
    with monkeypatch.context() as patch:
        patch.setattr(cache.shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cache.discard(entry)
    left = list(cache.releases().iterdir())

    assert (cache.entries(), len(left), entry.exists()) == ([], 1, False)
    cache.discard(entry)
    assert list(cache.releases().iterdir()) == []


def interrupted(*args, **options):
    """Ctrl-C before the first file is gone."""
    raise KeyboardInterrupt


def test_an_entry_that_may_not_be_removed_is_named(entry, monkeypatch):
    """Nothing is said to be gone that is still there."""

    def refuse(path, target):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ProvisionError) as caught:
        cache.discard(entry)

    for fact in (f"cannot remove {entry}", "Permission denied", f"write permission for {entry.parent}"):
        assert fact in str(caught.value)


def test_what_of_an_entry_cannot_be_deleted_is_named(entry, monkeypatch):
    """It is no entry any more, but its place on the disk is not free; what can go goes, now or the next time."""
    (entry / "root" / "another").write_bytes(bytes(2_000_000))
    unlink = os.unlink

    def refuse(path, **options):
        if Path(path).name == "another":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        unlink(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        with pytest.raises(ProvisionError) as caught:
            cache.discard(entry)
        (left,) = cache.releases().iterdir()
        assert cache.sweep(cache.releases()) == {left: str(caught.value)}
        assert [path.name for path in left.rglob("*")] == ["root", "another"]
    assert cache.sweep(cache.releases()) == {}

    assert list(cache.releases().iterdir()) == []
    for fact in ("2 MB", f"left in {left}", "Permission denied", "delete it"):
        assert fact in str(caught.value)


def test_what_another_removal_left_does_not_stop_one(entry, monkeypatch):
    """Whose it is cannot be helped by whoever removes an entry of their own."""
    other = cache.releases() / f"{cache.REMOVED}sysbench-amd64-a1"
    other.mkdir()
    rmdir = os.rmdir

    def refuse(path, **options):
        if Path(path).name == other.name:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        rmdir(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", refuse)
        cache.discard(entry)

    assert list(cache.releases().iterdir()) == [other]


def test_a_lock_that_is_held_is_not_waited_for():
    """Whoever can do without it is told, and has it otherwise."""
    with cache.if_free("haproxy-amd64") as first, cache.if_free("haproxy-amd64") as second:
        pass
    with cache.if_free("haproxy-amd64") as again:
        pass

    assert (first, second, again) == (True, False, True)


def test_size_counts_each_file_once(tmp_path):
    """Hard links and symbolic links add nothing."""
    (tmp_path / "a").write_bytes(b"x" * 1000)
    (tmp_path / "b").hardlink_to(tmp_path / "a")

    assert cache.size(tmp_path) == 1000


@pytest.mark.parametrize("text", [None, "", '{"size": 1', "[]", "7", '{"length": 1}', '{"size": "many"}'])
def test_a_manifest_that_cannot_be_read_is_none(tmp_path, text):
    """Where it is missing, half-written, of another shape or of another format."""
    file = tmp_path / "entry.json"
    if text is not None:
        file.write_text(text)

    assert cache.read_manifest(file, lambda fields: int(fields["size"])) is None


def test_a_manifest_is_whole_or_not_there(tmp_path):
    """What a process that died has left of one is no obstacle; a value that is no JSON leaves the old one as it is."""
    file = tmp_path / "entry.json"
    (tmp_path / ".entry.json.new").write_text("{")
    cache.write_manifest(file, {"size": 1})

    with pytest.raises(TypeError):
        cache.write_manifest(file, {"size": 1, "time": object()})

    assert cache.read_manifest(file, lambda fields: fields) == {"size": 1}


def test_a_manifest_with_a_password_is_its_owners(tmp_path):
    """From its first byte on, also where another mode was left."""
    file = tmp_path / "entry.json"
    (tmp_path / ".entry.json.new").touch(mode=0o644)
    cache.write_manifest(file, {"password": "never told"}, mode=0o600)

    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["entry.json"]


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_nobody_else_may_write_into_directories_that_we_make(own_cache, umask):
    """Or we would not run the programs in them. A directory that was there stays as it is."""
    own_cache.mkdir(parents=True, exist_ok=True)
    own_cache.chmod(0o755)
    before = os.umask(umask)
    try:
        made = cache._create(own_cache / "a" / "b")
    finally:
        os.umask(before)

    assert [path.stat().st_mode & 0o022 for path in (made, made.parent)] == [0, 0]
    cache.require_trusted(made)
