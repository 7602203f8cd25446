"""Images of a registry: they are pulled with progress, and their digest is known."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.container import engine
from tests.support import engines, registry

needs_engine = pytest.mark.skipif(bool(engines.missing()), reason=engines.missing() or "an engine answers")


@pytest.fixture
def answering():
    """The engine."""
    with contextlib.closing(engine.connect()) as made:
        yield made


@needs_engine
def test_an_image_is_pulled_with_progress(answering, monkeypatch):
    """The lines name the image and the downloaded bytes; afterwards its digest is that of the registry."""
    monkeypatch.setattr(engine, "PROGRESS_SECONDS", 0.0)
    lines = []
    with registry.serve("vendor/server") as (served, name):
        try:
            pulled = engine.image(answering, f"{name}:1", pull=lines.append)
            again = engine.image(answering, f"{name}:1", pull=lines.append)
            digest = engine.digest(answering, f"{name}:1")
        finally:
            answering.client.images.remove(f"{name}:1", force=True)

    assert pulled == again
    assert digest == f"{name}@{served.digest}"
    assert lines[0] == f"pulling image {name}:1"
    assert any(line.startswith(f"pulling image {name}:1: ") and line.endswith(" of 4.2 MB") for line in lines[1:])
    assert lines.count(lines[0]) == 1


@needs_engine
def test_an_image_that_a_registry_lacks_is_an_error(answering):
    """It has the name of the image and the words of the engine."""
    with registry.serve("vendor/server") as (_, name), pytest.raises(ProvisionError) as caught:
        engine.image(answering, f"{name}:2", pull=lambda line: None)

    assert f"could not find image {name}:2 here, or pull it" in str(caught.value)


@needs_engine
def test_an_image_of_no_registry_has_its_id(answering):
    """A record still tells two such images apart."""
    tag = engines.tiny(answering)

    assert engine.digest(answering, tag) == f"{tag}, {answering.client.images.get(tag).id}, from no registry"


def test_progress_counts_the_layers(monkeypatch):
    """A finished layer counts in full; between two lines some seconds pass."""
    now = [0.0]
    monkeypatch.setattr(engine.time, "monotonic", lambda: now[0])
    layers = engine.Layers()

    def at(second, status, layer, **sizes):
        now[0] = second
        return layers.progress({"status": status, "id": layer, "progressDetail": sizes})

    assert at(1, "Pulling fs layer", "a") == ""
    assert at(2, "Downloading", "a", current=10**6, total=10**8) == ""
    assert at(6, "Downloading", "b", current=2 * 10**6, total=10**8) == "3 MB of 200 MB"
    assert at(7, "Download complete", "a") == ""
    assert at(12, "Downloading", "b", current=5 * 10**6, total=10**8) == "105 MB of 200 MB"
