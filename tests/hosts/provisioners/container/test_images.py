"""Home-made images: made once, kept as tars in the cache, imported into a real engine; most have nothing inside."""

from __future__ import annotations

import io
import json
import tarfile
import threading

import docker
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.cli import main
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.hosts.provisioners.container import engine, images, root_file_system
from pytest_dbcluster.releases.catalogue import Offer, Origin
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.system import cache
from tests.support import engines
from tests.support.command import dbcluster

# A release that nobody has, so that nobody's image is in the way.
OFFER = Offer("mariadb", "1.0", (Origin("buzz", ("mariadb-server",)),), ())
TAG = "pytest-dbcluster/mariadb:1.0"

needs_engine = pytest.mark.skipif(bool(engines.missing()), reason=engines.missing() or "an engine answers")


class Bootstrap:
    """In place of mmdebstrap: a tar with one file of random name."""

    def __init__(self):
        self.made = 0

    def __call__(self, offer, candidates, staging, progress):
        """What bootstrap.make does, in no time."""
        self.made += 1
        with tarfile.open(staging / images.TAR, "w") as tar:
            entry = tarfile.TarInfo(f"file-{self.made}")
            entry.size = 10
            tar.addfile(entry, io.BytesIO(b"0123456789"))
        (staging / "packages").touch()
        return root_file_system.RootFileSystem(
            f"1.0.{self.made}", {"mariadb-server": "1:1.0"}, "buzz", "buzz of a test"
        )


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pytest-dbcluster"


@pytest.fixture
def bootstraps(own_cache, monkeypatch):
    """Counts what is made."""
    made = Bootstrap()
    monkeypatch.setattr(root_file_system, "make", made)
    return made


@pytest.fixture
def answering(bootstraps):
    """The engine, without images of the test's release before and after."""
    reached = engine.connect()
    yield reached
    for image in images.list_images(reached, OFFER.name):
        reached.client.images.remove(image.id, force=True)
    reached.client.close()


def test_an_image_has_the_name_of_its_release():
    """The repository tells it from the images of a registry."""
    assert images.tag(ReleaseName.parse("mariadb:11.8")) == "pytest-dbcluster/mariadb:11.8"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "mariadb:11.9",
            r"unknown release 'mariadb:11.9'; known: mariadb:10.5, .*, mysql:9.7, .*; did you mean mariadb:11.8",
        ),
        ("mariadb:path", "mariadb:path: images are built from packages, .*; known: mariadb:10.5, "),
        ("mysql:9.7=/opt/mysql", "mysql:9.7=/opt/mysql: images are built from packages, .* tarball; known: "),
        ("sysbench", "a release is written NAME:VERSION"),
        ("mysql:5.7.44", "mysql 5.7.44 is too old to be measured"),
    ],
)
def test_images_are_made_of_releases_that_can_be_fetched(name, said):
    """Others are refused before anything is asked or made."""
    with pytest.raises(ConfigError, match=said):
        images.offer(name)


@needs_engine
def test_an_image_is_made_once(answering, bootstraps, own_cache):
    """A second call says what is there; an engine that has lost it gets it out of the cache."""
    lines = []
    first = images.build(OFFER, answering, lines.append)
    again = images.build(OFFER, answering, lines.append)
    answering.client.images.remove(first.id)
    third = images.build(OFFER, answering, lines.append)

    assert (first.tag, first.release, first.exact) == (TAG, "mariadb:1.0", "1.0.1")
    assert again == first
    assert third.exact == "1.0.1"
    assert bootstraps.made == 1
    assert [line.split(",")[0] for line in lines] == [
        "mariadb:1.0: 1.0.1", f"mariadb:1.0: {TAG} is in {answering.name}",
        f"mariadb:1.0: {TAG} is there (1.0.1", f"mariadb:1.0: {TAG} is in {answering.name}",
    ]  # fmt: skip
    (entry,) = (own_cache / "images").iterdir()
    visible = [
        path.name for path in entry.iterdir() if not path.name.startswith(".")
    ]  # without the record of its files
    assert sorted(visible) == [images.MANIFEST, images.TAR]


@needs_engine
def test_images_are_listed_while_others_remove_theirs(answering, bootstraps, monkeypatch):
    """The list alone has what is shown; a later request for an image fails if it is gone."""
    made = images.build(OFFER, answering, print)

    def gone(*_):
        raise docker.errors.ImageNotFound("it is gone")

    monkeypatch.setattr(docker.models.images.ImageCollection, "get", gone)
    assert images.list_images(answering, OFFER.name) == [made]


@needs_engine
def test_an_image_can_be_made_again(answering, bootstraps):
    """The new one takes the name, and the old one is gone."""
    images.build(OFFER, answering, print)
    made = images.build(OFFER, answering, print, again=True)

    assert made.exact == "1.0.2"
    assert images.list_images(answering, OFFER.name) == [made]


@needs_engine
def test_an_image_of_an_older_program_is_made_again(answering, bootstraps, monkeypatch):
    """In the engine and in the cache, because what is in it has changed."""
    images.build(OFFER, answering, print)
    monkeypatch.setattr(images, "FORMAT", images.FORMAT + 1)
    made = images.build(OFFER, answering, print)

    assert made.exact == "1.0.2"
    assert made.current


@needs_engine
def test_two_at_once_make_it_once(answering, bootstraps):
    """The second waits for the first, and finds it made."""
    lines = []
    builds = [threading.Thread(target=images.build, args=(OFFER, answering, lines.append)) for _ in range(2)]
    with cache.lock(images.lock_name(f"mariadb-1.0-{images.shims.architecture()}"), progress=print):
        for build in builds:
            build.start()
        waiting = lambda: [] if len(lines) == 2 else ["they do not wait"]  # noqa: E731
        wait.until(waiting, "two builds", seconds=20)
    for build in builds:
        build.join()

    assert bootstraps.made == 1
    assert len(images.list_images(answering, OFFER.name)) == 1


@needs_engine
def test_an_interrupted_build_leaves_nothing(answering, bootstraps, own_cache, monkeypatch):
    """Neither in the cache nor in the engine."""

    def interrupted(offer, candidates, staging, progress):
        (staging / images.TAR).write_bytes(b"half a tar")
        raise KeyboardInterrupt

    monkeypatch.setattr(root_file_system, "make", interrupted)

    with pytest.raises(KeyboardInterrupt):
        images.build(OFFER, answering, print)
    assert not (own_cache / "images").exists()
    assert images.list_images(answering, OFFER.name) == []


@needs_engine
def test_a_tar_that_the_engine_refuses_is_an_error(answering, own_cache):
    """The error has the place of the tar, and what the engine said."""
    images.build(OFFER, answering, print)
    (tar,) = (own_cache / "images").glob("*/image.tar")
    tar.write_bytes(b"no tar" * 1000)
    images.remove(answering, OFFER.name)

    with pytest.raises(ProvisionError, match=rf"could not import {tar}"):
        images.build(OFFER, answering, print)


@needs_engine
def test_images_are_listed_and_removed_by_the_command(answering, own_cache, capsys):
    """By the name of the release or of the image; the tar stays in the cache and is listed there."""
    images.build(OFFER, answering, print)
    capsys.readouterr()
    assert main.main(["image", "list"]) == 0
    listed = capsys.readouterr().out
    assert main.main(["image", "remove", TAG]) == 0
    removed = capsys.readouterr().out
    assert main.main(["image", "remove", "mariadb:1.0"]) == 2
    refused = capsys.readouterr().err
    assert main.main(["cache"]) == 0

    (row,) = (line.split() for line in listed.splitlines() if TAG in line)
    assert row[:3] == [TAG, "mariadb:1.0", "1.0.1"]
    assert removed.split()[0] == "removed"
    assert refused.startswith("dbcluster: unknown home-made image 'mariadb:1.0'; known: ")
    assert "container image of mariadb:1.0 1.0.1" in capsys.readouterr().out


@needs_engine
def test_an_image_in_use_is_not_removed(answering):
    """The engine says which container uses it; a build beside it leaves it there without its name."""
    first = images.build(OFFER, answering, print)
    container = answering.client.containers.create(TAG, ["none"])
    try:
        with pytest.raises(ProvisionError, match=f"could not remove {TAG}: .*{container.id[:12]}"):
            images.remove(answering, OFFER.name)
        images.build(OFFER, answering, print, again=True)

        assert {(image.exact, image.current) for image in images.list_images(answering, OFFER.name)} == {
            ("1.0.1", False), ("1.0.2", True),
        }  # fmt: skip
    finally:
        container.remove()
    assert first.tag == TAG


def test_the_cache_forgets_a_tar_by_its_name(data, own_cache, capsys):
    """As it forgets anything else that can be made again."""
    entry = own_cache / "images" / "mariadb-1.0-amd64"
    entry.mkdir(parents=True)
    (entry / images.TAR).write_bytes(bytes(2_000_000))
    said = {
        "release": "mariadb:1.0",
        "exact": "1.0.7",
        "suite": "",
        "source": "",
        "packages": {},
        "built": "",
        "format": 1,
    }
    (entry / images.MANIFEST).write_text(json.dumps(said))

    assert main.main(["cache", "clean", "images/mariadb-1.0-amd64"]) == 0
    assert "images/mariadb-1.0-amd64  2 MB  container image of mariadb:1.0 1.0.7" in capsys.readouterr().out
    assert not entry.exists()


def test_without_an_engine_nothing_is_made(own_cache, monkeypatch):
    """The error comes before the work."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    done = dbcluster("image", "build", "mariadb:11.8")

    assert done.returncode == 1
    assert done.stderr.startswith("dbcluster: no container engine: /nowhere/docker.sock does not exist")
    assert not own_cache.exists()
