"""Home-made container images of releases: made from Debian packages without a registry, kept in the cache.

An image is a tar of bootstrap.py, imported into the engine with labels that say what it is. Its entry point is of no
matter: a container runs a program of ours, and starts the server as a host of any other kind does.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster import formatting, registry
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioners.container.engine import Engine, said
from pytest_dbcluster.releases import apt, catalogue, fetched, sources
from pytest_dbcluster.spec import TOOLS, ReleaseName
from pytest_dbcluster.system import cache

REPOSITORY = "pytest-dbcluster"
FORMAT = 1  # of what is in an image; those of another format are made anew
TAR = "image.tar"
MANIFEST = "image.json"
RELEASE, VERSION, BUILT, FORMAT_LABEL = (
    f"{REPOSITORY}.{name}" for name in ("release", "version", "built", "image-format")
)


@dataclasses.dataclass(frozen=True)
class ImageManifest:
    """What a tar of the cache holds: written last, so an entry that has one is whole."""

    release: str
    exact: str
    suite: str
    source: str
    packages: dict[str, str]
    built: str
    format: int


@dataclasses.dataclass(frozen=True)
class Image:
    """A home-made image that an engine has. size: bytes; built: seconds since the epoch; current: of our format."""

    id: str
    tag: str
    release: str
    exact: str
    size: int
    built: float
    current: bool


def tag(name: ReleaseName) -> str:
    """What the home-made image of a release is called: ``pytest-dbcluster/mariadb:11.8``."""
    return f"{REPOSITORY}/{name}"


def directory() -> Path:
    """Where the tars are."""
    return cache.root() / "images"


def lock_name(key: str) -> str:
    """The lock of an entry, which is another than that of the release with the same name."""
    return f"image-{key}"


def read(entry: Path) -> ImageManifest | None:
    """What an entry of the cache holds; None where there is none, or one that another program wrote."""
    manifest = cache.read_manifest(entry / MANIFEST, lambda fields: ImageManifest(**fields))
    return manifest if manifest and manifest.format == FORMAT and (entry / TAR).exists() else None


def offer(name: str) -> catalogue.Offer:
    """The release that an image can be made of. Raises ConfigError with those that there are."""
    wanted = ReleaseName.parse(name)
    known = [each for each in catalogue.OFFERS if each.product not in TOOLS]
    found = next((each for each in known if each.name == name), None)
    if wanted.directory or wanted.version == "path":
        raise ConfigError(
            f"{name}: images are made of Debian packages; known: {', '.join(each.name for each in known)}"
        )
    if found is None:
        raise registry.unknown("release", name, [each.name for each in known])
    return found


def build(wanted: catalogue.Offer, engine: Engine, progress: Report, *, again: bool = False) -> Image:
    """The image of a release in this engine: as it is, out of the tar in the cache, or made now.

    ``again`` makes it now in any case. Raises ProvisionError, Unsupported without mmdebstrap.
    """
    key = fetched.key(wanted.product, wanted.version, apt.architecture())
    with cache.lock(lock_name(key), progress=progress, does="builds"):
        before = found(engine, wanted.name)
        current = next((image for image in before if image.current), None)
        if current and not again:
            progress(f"{wanted.name}: {current.tag} is there ({current.exact}, {formatting.size(current.size)})")
            return current
        entry = directory() / key
        if again or read(entry) is None:
            _make(wanted, key, progress)
        return _bring(wanted, entry, engine, before, progress)


def _make(wanted: catalogue.Offer, key: str, progress: Report) -> None:
    from pytest_dbcluster.hosts.provisioners.container import root_file_system

    start = time.monotonic()
    places = sources.candidates(wanted, sources.host_entries(), os.environ.get("DBCLUSTER_MIRROR"))
    with cache.staged(key, among=directory()) as staging:
        made = root_file_system.make(wanted, places, staging, progress)
        for path in staging.iterdir():
            if path.name != TAR:
                path.unlink()
        built = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        manifest = ImageManifest(wanted.name, made.exact, made.suite, made.source, made.packages, built, FORMAT)
        cache.write_manifest(staging / MANIFEST, dataclasses.asdict(manifest))
        size = formatting.size((staging / TAR).stat().st_size)
    progress(f"{wanted.name}: {made.exact}, {size}, {time.monotonic() - start:.1f} s")


def _bring(wanted: catalogue.Offer, entry: Path, engine: Engine, before: Sequence[Image], progress: Report) -> Image:
    """Import the tar of an entry; what had the name before is removed where no container uses it."""
    start, manifest = time.monotonic(), read(entry)
    if manifest is None:
        raise ProvisionError(f"the image of {wanted.name} was made and is gone again from {directory()}")
    labels = {RELEASE: manifest.release, VERSION: manifest.exact, BUILT: manifest.built, FORMAT_LABEL: FORMAT}
    changes = [*(f'LABEL "{name}"="{value}"' for name, value in labels.items()), 'CMD ["/bin/bash"]']
    name = tag(ReleaseName.parse(wanted.name))
    with said(f"import {entry / TAR} as {name}", engine):
        # With the tag in the name: Podman 4.3 does not read the parameter for it.
        text = engine.client.api.import_image_from_file(str(entry / TAR), name, changes=changes)
    if '"error"' in text:  # the answer is 200 all the same
        raise ProvisionError(f"{engine.name} could not import {entry / TAR}: {text.strip()[-500:]}")
    made = next((image for image in found(engine, wanted.name) if image.id not in {old.id for old in before}), None)
    if made is None:
        raise ProvisionError(f"{engine.name} imported {entry / TAR} and has no image {name}")
    for old in before:
        _remove_unused(engine, old)
    progress(f"{wanted.name}: {made.tag} is in {engine.name}, {time.monotonic() - start:.1f} s")
    return made


def _remove_unused(engine: Engine, image: Image) -> None:
    try:
        with said(f"remove {image.id}", engine):
            engine.client.images.remove(image.id)
    except ProvisionError:
        return  # a container still uses it


def found(engine: Engine, release: str = "") -> list[Image]:
    """The home-made images of the engine, of one release or of all, by name. Raises ProvisionError."""
    label = f"{RELEASE}={release}" if release else RELEASE
    with said("list its images", engine):
        images = engine.client.images.list(filters={"label": label})
    return sorted(map(_image, images), key=lambda image: (image.release, image.built))


def _image(image: Any) -> Image:
    labels = image.labels
    return Image(
        id=image.id,
        tag=next(iter(image.tags), ""),
        release=labels[RELEASE],
        exact=labels.get(VERSION, ""),
        size=image.attrs.get("Size", 0),
        built=datetime.datetime.fromisoformat(labels[BUILT]).timestamp() if BUILT in labels else 0.0,
        current=labels.get(FORMAT_LABEL) == str(FORMAT) and bool(image.tags),
    )


def remove(engine: Engine, name: str) -> list[Image]:
    """Remove the image of a release, named as the release or as the image; what was removed.

    The tar stays in the cache. Raises ConfigError for one that is not there, ProvisionError for one in use.
    """
    there = found(engine)
    chosen = [image for image in there if name in (image.release, image.tag, tag(ReleaseName.parse(image.release)))]
    if not chosen:
        raise registry.unknown("home-made image", name, [image.release for image in there])
    for image in chosen:
        with said(f"remove {image.tag or image.id}", engine):
            engine.client.images.remove(image.tag or image.id)
    return chosen
