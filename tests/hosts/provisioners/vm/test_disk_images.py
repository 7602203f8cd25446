"""Images of disks: what is made by a guest, and what is copied. Files take the place of disks; guests are elsewhere."""

from __future__ import annotations

import concurrent.futures
import os
import threading

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.vm import disk_images
from pytest_dbcluster.hosts.provisioners.vm.disk_images import DiskImages
from tests.support.facts import missing

SIZE = 2**20


@pytest.fixture
def images(tmp_path):
    """The images of a run."""
    return DiskImages(tmp_path / "images")


@pytest.fixture
def disk(tmp_path):
    """``disk("one")``: a disk; ``disk("one", 2**21)``: one of another size."""

    def disk(name, size=SIZE):
        path = tmp_path / f"{name}.disk"
        with path.open("wb") as file:
            file.truncate(size)
        return path

    return disk


@pytest.fixture
def source(tmp_path):
    """``source("one")``: a directory to copy."""

    def source(name):
        (tmp_path / name).mkdir()
        return tmp_path / name

    return source


def fill(disk, text, made):
    """What a guest does to a disk: write a text in the middle; ``made`` gets the disk."""

    def make():
        with disk.open("r+b") as file:
            file.seek(SIZE // 2)
            file.write(text)
        made.append(disk.name)

    return make


def test_nodes_that_start_at_once_have_one_that_copies(images, disk, source):
    """The others wait for it, and get its disk."""
    origin, made = source("origin"), []
    disks = [disk(f"node{number}") for number in range(4)]
    together = threading.Barrier(4)

    def place(one):
        together.wait(60)
        images.place(origin, one, fill(one, one.name.encode(), made))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        list(threads.map(place, disks))

    assert len(made) == 1
    content = {one.read_bytes() for one in disks}
    assert [text.strip(b"\0") for text in content] == [made[0].encode()]
    assert all(one.stat().st_size == SIZE for one in disks)


def test_images_of_several_directories_are_made_at_once(images, disk, source):
    """Neither waits for the other, and each disk has the content of its own."""
    made, together = [], threading.Barrier(2)

    def place(name):
        one, other, origin = disk(f"{name}1"), disk(f"{name}2"), source(name)

        def make():
            together.wait(60)
            fill(one, name.encode(), made)()

        images.place(origin, one, make)
        images.place(origin, other, lambda: pytest.fail("made again"))
        return other.read_bytes().strip(b"\0")

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        assert list(threads.map(place, ["first", "second"])) == [b"first", b"second"]


def test_another_content_and_another_size_are_made(images, disk, source):
    """A directory that was changed since, and a disk for which the file system of the image has the wrong size."""
    origin, made = source("origin"), []
    for one in (disk("one"), disk("same"), disk("larger", 2 * SIZE)):
        images.place(origin, one, fill(one, b"x", made))
    os.utime(origin, ns=(0, 0))
    late = disk("late")
    images.place(origin, late, fill(late, b"x", made))

    assert made == ["one.disk", "larger.disk", "late.disk"]


def test_one_that_could_not_be_made_is_tried_again(images, disk, source):
    """By the next node, whose message is about its own disk."""
    origin, made = source("origin"), []

    def fails():
        raise ProvisionError("the disk is too small")

    with pytest.raises(ProvisionError, match="too small"):
        images.place(origin, disk("one"), fails)
    other = disk("other")
    images.place(origin, other, fill(other, b"x", made))

    assert made == ["other.disk"]


def test_without_room_for_more_no_image_is_kept(images, disk, source, tmp_path, monkeypatch):
    """Every guest copies for itself then, as if there were no images."""
    monkeypatch.setattr(disk_images, "ROOM", 10**15)
    origin, made = source("origin"), []
    for name in ("one", "other"):
        one = disk(name)
        images.place(origin, one, fill(one, b"x", made))

    assert made == ["one.disk", "other.disk"]
    assert not (tmp_path / "images").exists()


def test_a_full_disk_of_this_machine_is_said(images, disk, source, tmp_path, small):
    """With both files, and the variable that names another directory."""
    origin = source("origin")
    first = disk("first")
    images.place(origin, first, lambda: first.write_bytes(os.urandom(2 * SIZE)))
    full = small("1M") / "full.disk"
    full.touch()
    os.truncate(full, SIZE)

    with pytest.raises(ProvisionError) as caught:
        images.place(origin, full, lambda: pytest.fail("made again"))

    why = f"cannot copy {tmp_path}/images/image-1 to {full}: No space left on device"
    assert missing(caught.value, why, "set DBCLUSTER_DATA_DIR", "another directory") == []
