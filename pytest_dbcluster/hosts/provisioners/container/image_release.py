"""A release whose programs are in a container image: found by looking into a container of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ConfigError, ProvisionError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.releases import layout
from pytest_dbcluster.releases.release import IMAGE_PATH, Release
from pytest_dbcluster.spec import ReleaseName

# Server plugins, and the Galera library, where Debian's packages and the vendors' own put them.
PLUGINS = ("/usr/lib/mysql/plugin", "/usr/lib64/mysql/plugin", "/usr/local/mysql/lib/plugin")
GALERA = ("/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib/galera-4", "/usr/lib64/galera")
PROVIDER = "libgalera_smm.so"


def find(name: ReleaseName, tag: str, image: str, host: Host) -> Release:
    """The release in the image that ``host`` was made of; ``image`` is its id, ``tag`` its name for people.

    Raises ProvisionError for an image in which nothing can be run, ConfigError for one with another server.
    """
    places = " ".join(f"{place}/*" for place in (*IMAGE_PATH, *PLUGINS, *GALERA))
    try:
        listed = host.run(["/bin/sh", "-c", f"ls -d {places} 2>/dev/null || true"]).stdout.split("\n")
    except CommandFailed as error:
        raise ProvisionError(f"{name}: nothing can be run in image {tag}: {error}") from error
    files = frozenset(filter(None, listed))
    found = Release(str(name), name.product, "", Path("/usr/bin"), source=f"image {tag}", image=image, files=files)
    server = next((path for each in layout.SERVERS[name.product] if (path := found.beside(each))), None)
    if server is None:
        raise ConfigError(f"{name}: image {tag} has no server program ({' or '.join(layout.SERVERS[name.product])})")
    try:
        words = host.run([str(server), "--no-defaults", "--version"]).stdout
    except CommandFailed as error:
        raise ProvisionError(f"{name}: the server of image {tag} does not run: {error}") from error
    product, version = layout.product_of(words), layout.exact_version(words)
    if product != name.product or not f"{version}.".startswith(f"{name.version}."):
        raise ConfigError(f"{name}: the server of image {tag} is {product} {version}")
    plugins = _holding(files, PLUGINS)
    return Release(
        name=str(name),
        product=product,
        version=version,
        bin=server.parent,
        server_options={"plugin-dir": plugins} if plugins else {},
        wsrep_provider=next((Path(place, PROVIDER) for place in GALERA if f"{place}/{PROVIDER}" in files), None),
        source=f"image {tag}",
        image=image,
        files=files,
    )


def _holding(files: Iterable[str], places: Iterable[str]) -> str:
    """The first of these directories that has any file."""
    have = {str(Path(file).parent) for file in files}
    return next((place for place in places if place in have), "")
