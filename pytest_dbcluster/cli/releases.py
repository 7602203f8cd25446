"""``dbcluster releases``, ``fetch`` and ``image``: list and download releases, and make container images of them."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.cli.text import add_wait, size_text, tell, turn
from pytest_dbcluster.hosts.provisioners.container.engine import Engine
from pytest_dbcluster.hosts.provisioners.container.images import HomeMadeImage
from pytest_dbcluster.reporting.tables import layout


def add_releases(releases: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster releases`` to its parser."""
    releases.set_defaults(run=run_releases)


def add_fetch(fetch: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster fetch`` to its parser."""
    fetch.set_defaults(run=run_fetch)
    fetch.add_argument(
        "names",
        nargs="+",
        metavar="NAME:VERSION",
        help="such as mariadb:11.8, or sysbench, haproxy, pt-online-schema-change, vm, stand-in, allure",
    )
    add_wait(fetch)


def add_image(image: argparse.ArgumentParser) -> None:
    """Add the commands of ``dbcluster image`` to its parser."""
    actions = image.add_subparsers(title="commands", required=True, metavar="COMMAND")
    build = actions.add_parser("build", help="make images of releases and load them into the container engine")
    build.add_argument("names", nargs="+", metavar="NAME:VERSION", help="such as mariadb:11.8")
    build.add_argument(
        "--again", action="store_true", help="also make existing images again, from the mirror's current packages"
    )
    add_wait(build)
    build.set_defaults(run=run_build)
    actions.add_parser("list", help="list the images from build").set_defaults(run=run_list)
    remove = actions.add_parser("remove", help="remove images from build")
    remove.add_argument("names", nargs="+", metavar="NAME", help="a release or an image of the list")
    remove.set_defaults(run=run_remove)


def run_releases(arguments: argparse.Namespace) -> int:
    """``dbcluster releases``: list the releases and tools, and their directories."""
    from pytest_dbcluster.releases import catalogue, find

    rows = [
        (row.name, row.supplier, row.state, row.version, size_text(row.size), row.source)
        for row in find.list_releases()
    ]
    print(layout.plain(("release", "source", "state", "version", "size", "where"), rows))
    print(f"\nuntried from every source: {', '.join(catalogue.UNTRIED)}")
    return 0


def run_fetch(arguments: argparse.Namespace) -> int:
    """``dbcluster fetch NAME:VERSION ...``: download releases and tools into the cache."""
    from pytest_dbcluster.releases import find
    from pytest_dbcluster.reporting.allure import program

    for name in arguments.names:
        if name == program.NAME:
            print(f"{name} {program.VERSION}: {program.fetch(tell)}")
            continue
        with turn():
            release = find.find(name, progress=tell)
        print(f"{release.name} {release.version}: {release.bin} ({release.source})")
    return 0


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
    """``dbcluster image list``: list the images of ``build`` in the container engine."""
    from pytest_dbcluster.hosts.provisioners.container import images

    with _engine() as engine:
        _show_images("image", images.list_images(engine))
    return 0


def run_remove(arguments: argparse.Namespace) -> int:
    """``dbcluster image remove NAME ...``: remove images of ``build`` from the container engine."""
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


def _show_images(head: str, images: Sequence[HomeMadeImage]) -> None:
    now = time.time()
    rows = [
        (
            image.tag or "(untagged)",
            image.release,
            image.exact,
            size_text(image.size),
            formatting.duration(now - image.built),
        )
        for image in images
    ]
    print(layout.plain((head, "release", "version", "size", "age"), rows))
