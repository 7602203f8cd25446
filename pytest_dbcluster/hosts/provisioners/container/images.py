"""Container images of releases, built without a registry from Debian packages or a tarball, and kept in the cache.

An image is a tar from root_file_system.py or tarball_image.py. We import it into the engine with labels for release,
version and format. We do not use its entry point: the container runs our agent, which starts the server as on any other
host. system_image.py makes one more image.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import formatting, registry
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioners.container.engine import Engine, engine_errors
from pytest_dbcluster.releases import catalogue, fetched, find, shims, sources
from pytest_dbcluster.releases.vendors.tarball_archive import TARBALLS
from pytest_dbcluster.spec import TOOLS, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.system.tracing.recorder import span

if TYPE_CHECKING:
    from pytest_dbcluster.hosts.provisioners.container.root_file_system import RootFileSystem

REPOSITORY = "pytest-dbcluster"
FORMAT = 1  # of the content of an image; we rebuild images of another format
TAR = "image.tar"
MANIFEST = "image.json"
UNTAGGED = "<none>:<none>"  # how an engine names an image without a tag
RELEASE, VERSION, BUILT, FORMAT_LABEL = (
    f"{REPOSITORY}.{name}" for name in ("release", "version", "built", "image-format")
)


@dataclasses.dataclass(frozen=True)
class ImageManifest:
    """The content of a tar in the cache. We write the manifest last, so an entry with a manifest is complete."""

    release: str
    """The release as the user names it ("mariadb:10.11")."""

    exact: str
    """The version that the server reports."""

    suite: str
    """The suite of its packages, such as bookworm."""

    source: str
    """The mirror of the packages, with remarks, for messages."""

    packages: dict[str, str]
    """Package name -> version."""

    built: str
    """Time of the build, in ISO 8601."""

    format: int
    """Version of the layout, ``FORMAT``."""


@dataclasses.dataclass(frozen=True)
class HomeMadeImage:
    """An image of ours in an engine."""

    id: str
    """The engine's id of the image."""

    tag: str
    """Its first tag; empty if it has none."""

    release: str
    """The release as the user names it ("mariadb:10.11")."""

    exact: str
    """The version that the server reports; empty if the image has no label with it."""

    size: int
    """Size in bytes."""

    built: float
    """Time of the build, in seconds since the epoch."""

    current: bool
    """Whether the image has our format and a tag."""


def tag(name: ReleaseName | str) -> str:
    """The tag of our image of a release: ``pytest-dbcluster/mariadb:11.8``."""
    return f"{REPOSITORY}/{name}"


def directory() -> Path:
    """The directory of the tars."""
    return cache.root() / "images"


def lock_name(key: str) -> str:
    """The name of the lock of an entry. It differs from the lock of the release with the same name."""
    return f"image-{key}"


def read(entry: Path) -> ImageManifest | None:
    """The manifest of a cache entry; None if manifest or tar is missing, or if it has another format."""
    manifest = cache.read_manifest(entry / MANIFEST, lambda fields: ImageManifest(**fields))
    return manifest if manifest and manifest.format == FORMAT and (entry / TAR).exists() else None


def offer(name: str) -> catalogue.Offer:
    """The catalogue's offer of a release, if we can build its image. Raises ConfigError with the known releases."""
    wanted = ReleaseName.parse(name)
    known = [candidate for candidate in catalogue.OFFERS if candidate.product not in TOOLS]
    chosen = catalogue.offer(wanted.product, wanted.version)
    if wanted.directory or wanted.version == "path":
        raise ConfigError(
            f"{name}: images are built from packages, and of exact versions also from a vendor's tarball; known: "
            f"{', '.join(candidate.name for candidate in known)}"
        )
    if chosen is None:
        raise registry.unknown("release", name, [candidate.name for candidate in known])
    find.check_age(wanted)
    return chosen


def build(wanted: catalogue.Offer, engine: Engine, progress: Report, *, again: bool = False) -> HomeMadeImage:
    """The image of a release in this engine: the present one, otherwise imported from the cache, otherwise built.

    ``again``: build it in any case. Raises ProvisionError, or Unsupported without mmdebstrap.
    """
    key = fetched.key(wanted.product, wanted.version, shims.architecture())
    with cache.lock(lock_name(key), progress=progress, does="builds"), span("image", release=wanted.name):
        before = list_images(engine, wanted.name)
        current = next((image for image in before if image.current), None)
        if current and not again:
            progress(f"{wanted.name}: {current.tag} is there ({current.exact}, {formatting.size(current.size)})")
            return current
        entry = directory() / key
        if again or read(entry) is None:
            _make(wanted, key, progress)
        return _import(wanted, entry, engine, before, progress)


def _make(wanted: catalogue.Offer, key: str, progress: Report) -> None:
    start = time.monotonic()
    with cache.stage(key, among=directory()) as staging:
        made = _make_tar(wanted, staging, progress)
        for path in staging.iterdir():
            if path.name != TAR:
                path.unlink()
        manifest = ImageManifest(wanted.name, made.exact, made.suite, made.source, made.packages, _now(), FORMAT)
        cache.write_manifest(staging / MANIFEST, dataclasses.asdict(manifest))
        size = formatting.size((staging / TAR).stat().st_size)
    progress(f"{wanted.name}: {made.exact}, {size}, {time.monotonic() - start:.1f} s")


def _make_tar(wanted: catalogue.Offer, staging: Path, progress: Report) -> RootFileSystem:
    """Make the tar from packages; if no apt source has them, an exact version from its vendor's archive of tarballs."""
    from pytest_dbcluster.hosts.provisioners.container import root_file_system, tarball_image

    archive = TARBALLS.get(wanted.product) if catalogue.is_exact(wanted.version) else None
    reason = ""
    if wanted.origins or archive is None:
        candidates = sources.candidates(wanted, sources.host_entries(), os.environ.get("DBCLUSTER_MIRROR"))
        try:
            return root_file_system.make(wanted, candidates, staging, progress)
        except (ProvisionError, Unsupported) as error:
            if archive is None:
                raise
            reason = f"{error}; "
            progress(f"{wanted.name}: {error}; looking in {archive.title}")
    try:
        return tarball_image.make(wanted, archive, staging / TAR, progress)
    except ProvisionError as error:
        raise ProvisionError(f"{reason}{error}") from error


def _import(
    wanted: catalogue.Offer, entry: Path, engine: Engine, before: Sequence[HomeMadeImage], progress: Report
) -> HomeMadeImage:
    """Import the tar of an entry, and remove the images in ``before`` that no container uses."""
    start, manifest = time.monotonic(), read(entry)
    if manifest is None:
        raise ProvisionError(f"the tar of the image of {wanted.name} disappeared from {directory()}; build it again")
    made = load(engine, wanted.name, manifest.exact, entry / TAR, before, manifest.built)
    progress(f"{wanted.name}: {made.tag} is in {engine.name}, {time.monotonic() - start:.1f} s")
    return made


def load(
    engine: Engine, release: str, exact: str, tar: Path, before: Sequence[HomeMadeImage], built: str = ""
) -> HomeMadeImage:
    """Import a tar as the image of a release, and remove the images in ``before`` that no container uses.

    ``built``: the time of the build in ISO 8601; empty for now. Raises ProvisionError.
    """
    labels = {RELEASE: release, VERSION: exact, BUILT: built or _now(), FORMAT_LABEL: FORMAT}
    changes = [*(f'LABEL "{name}"="{value}"' for name, value in labels.items()), 'CMD ["/bin/bash"]']
    name = tag(release)
    with engine_errors(f"import {tar} as {name}", engine):
        # The name includes the tag, because Podman 4.3 ignores the parameter for the tag.
        text = engine.client.api.import_image_from_file(str(tar), name, changes=changes)
    if '"error"' in text:  # the HTTP status is 200 even for an error
        raise ProvisionError(f"{engine.name} could not import {tar}: {text.strip()[-500:]}")
    known = {old.id for old in before}
    made = next((image for image in list_images(engine, release) if image.id not in known), None)
    if made is None:
        raise ProvisionError(f"{engine.name} imported {tar}, but does not list image {name}")
    for old in before:
        _remove_unused(engine, old)
    return made


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _remove_unused(engine: Engine, image: HomeMadeImage) -> None:
    try:
        with engine_errors(f"remove {image.id}", engine):
            engine.client.images.remove(image.id)
    except ProvisionError:
        return  # a container still uses it


def list_images(engine: Engine, release: str = "") -> list[HomeMadeImage]:
    """Our images in the engine, of one release or of all, sorted by name and age. Raises ProvisionError."""
    label = f"{RELEASE}={release}" if release else RELEASE
    with engine_errors("list its images", engine):
        images = engine.client.api.images(filters={"label": label})  # images.list asks for each, which may be gone
    return sorted(map(_image, images), key=lambda image: (image.release, image.built))


def _image(image: Mapping[str, Any]) -> HomeMadeImage:
    labels = image["Labels"]
    tags = [tag for tag in image["RepoTags"] or () if tag != UNTAGGED]
    return HomeMadeImage(
        id=image["Id"],
        tag=next(iter(tags), ""),
        release=labels[RELEASE],
        exact=labels.get(VERSION, ""),
        size=image.get("Size", 0),
        built=datetime.datetime.fromisoformat(labels[BUILT]).timestamp() if BUILT in labels else 0.0,
        current=labels.get(FORMAT_LABEL) == str(FORMAT) and bool(tags),
    )


def remove(engine: Engine, name: str) -> list[HomeMadeImage]:
    """Remove the images with this name, which is the name of a release or a tag. Returns the removed images.

    The tar stays in the cache. Raises ConfigError for an unknown name, ProvisionError for an image in use.
    """
    present = list_images(engine)
    chosen = [image for image in present if name in (image.release, image.tag, tag(image.release))]
    if not chosen:
        raise registry.unknown("home-made image", name, [image.release for image in present])
    for image in chosen:
        with engine_errors(f"remove {image.tag or image.id}", engine):
            engine.client.images.remove(image.tag or image.id)
    return chosen
