"""``dbcluster image``: make, list and remove container images of releases, without an image registry."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.cli.text import known_size, tell, turn
from pytest_dbcluster.hosts.provisioners.container.engine import Engine
from pytest_dbcluster.hosts.provisioners.container.images import Image
from pytest_dbcluster.reporting.tables import layout


def run_build(arguments: argparse.Namespace) -> int:
    """``dbcluster image build NAME:VERSION ...``: make images and load them into the container engine."""
    from pytest_dbcluster.hosts.provisioners.container import images

    offers = [images.offer(name) for name in arguments.names]
    with _engine() as engine:
        for offer in offers:
            with turn():
                image = images.build(offer, engine, tell, again=arguments.again)
            print(image.tag)
    return 0


def run_list(arguments: argparse.Namespace) -> int:
    """``dbcluster image list``: list the images in the container engine that ``build`` made."""
    from pytest_dbcluster.hosts.provisioners.container import images

    with _engine() as engine:
        _show_images("image", images.found(engine))
    return 0


def run_remove(arguments: argparse.Namespace) -> int:
    """``dbcluster image remove NAME ...``: remove images that ``build`` made from the container engine."""
    from pytest_dbcluster.hosts.provisioners.container import images

    with _engine() as engine:
        _show_images("removed", [image for name in arguments.names for image in images.remove(engine, name)])
    return 0


@contextlib.contextmanager
def _engine() -> Iterator[Engine]:
    from pytest_dbcluster.hosts.provisioners.container import engine

    connected = engine.connect()
    with contextlib.closing(connected.client):
        yield connected


def _show_images(head: str, images: Sequence[Image]) -> None:
    now = time.time()
    rows = [
        (
            image.tag or "(untagged)",
            image.release,
            image.exact,
            known_size(image.size),
            formatting.duration(now - image.built),
        )
        for image in images
    ]
    print(layout.plain((head, "release", "version", "size", "age"), rows))
