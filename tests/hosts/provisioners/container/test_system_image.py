"""The image with this machine's shell and tools, for releases in a user's directory."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.hosts.provisioners.container import engine, images, system_files, system_image
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from tests.support import engines

needs_engine = pytest.mark.skipif(bool(engines.missing()), reason=engines.missing() or "an engine answers")


@pytest.fixture
def answering(monkeypatch):
    """The engine, with an image of the test's own, which is removed afterwards."""
    monkeypatch.setattr(system_image, "NAME", "system:of-a-test")
    with contextlib.closing(engine.connect()) as made:
        yield made
        for image in images.list_images(made, system_image.NAME):
            made.client.images.remove(image.id, force=True)


@needs_engine
def test_it_is_made_once_and_removed_by_its_name(answering):
    """Another call finds it; other programs of this machine make it again, and remove the old one.

    Its name removes it, as the images of releases.
    """
    lines = []
    first = system_image.build(answering, lines.append)
    again = system_image.build(answering, lines.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system_files, "PROGRAMS", system_files.NEEDED)
        smaller = system_image.build(answering, lines.append)

    assert first == again
    assert (first.release, first.tag) == ("system:of-a-test", "pytest-dbcluster/system:of-a-test")
    assert smaller.size < first.size
    assert images.list_images(answering, system_image.NAME) == [smaller]
    assert lines == ["making an image from programs of this system"] * 2
    assert images.remove(answering, "system:of-a-test") == [smaller]
    assert images.list_images(answering, system_image.NAME) == []


@needs_engine
def test_its_programs_run(answering, tmp_path):
    """A container of it is a host: scripts of servers find a shell, tools and a place for files."""
    made = ContainerProvisioner()
    try:
        spec = ClusterSpec("standalone", release=ReleaseName("mariadb", "11.4", str(tmp_path)))
        (host,) = made.acquire(spec)
        script = "echo one two | awk '{print $2}' | tr a-z A-Z; mktemp -d; readlink -f /tmp/../tmp"
        printed = host.run(["bash", "-c", script]).stdout.split()
    finally:
        made.close()

    assert printed[0] == "TWO"
    assert printed[1].startswith("/tmp/")
    assert printed[2] == "/tmp"


def test_a_system_without_a_shell_says_so(monkeypatch):
    """The error names what is missing, and where we looked."""
    monkeypatch.setattr(system_files, "SEARCH", "/nowhere")

    with pytest.raises(Unsupported, match=r"^this system has no sh, cat, ls in /nowhere"):
        system_image.build(None, print)
