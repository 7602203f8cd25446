"""A release in a container image. We inspect a running container of the image to find its programs."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ConfigError, ProvisionError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.releases import fetched, layout
from pytest_dbcluster.releases.release import IMAGE_PATH, Release
from pytest_dbcluster.spec import ReleaseName

# Directories of server plugins and of the Galera library, in Debian's packages and in the vendors' packages.
PLUGINS = ("/usr/lib/mysql/plugin", "/usr/lib64/mysql/plugin", "/usr/local/mysql/lib/plugin")
GALERA = (
    "/usr/lib/galera", "/usr/lib64/galera-4", "/usr/lib/galera-4", "/usr/lib64/galera",
    "/usr/lib/galera4", "/usr/lib64/galera4",
)  # fmt: skip
PROVIDER = "libgalera_smm.so"
# Directories with messages and character sets. A server has their paths built in, but not if its files were moved.
SHARES = tuple(f"{prefix}/{share}" for prefix in ("/usr", "/usr/local/mysql") for share in layout.SHARES)
MESSAGES, CHARSETS = "english", "charsets"


def find(name: ReleaseName, tag: str, image: str, host: Host) -> Release:
    """The release in the image of ``host``. ``image``: the id of the image; ``tag``: its name for messages.

    Raises ProvisionError if we cannot run programs in the image, ConfigError if it does not have this server.
    """
    shares = [f"{share}/{part}" for share in SHARES for part in (MESSAGES, CHARSETS)]
    patterns = " ".join(f"{directory}/*" for directory in (*IMAGE_PATH, *PLUGINS, *GALERA, *shares))
    try:
        listed = host.run(["/bin/sh", "-c", f"ls -d {patterns} 2>/dev/null || true"]).stdout.split("\n")
    except CommandFailed as error:
        raise ProvisionError(f"{name}: cannot run programs in image {tag}: {error}") from error
    files = frozenset(filter(None, listed))
    inspected = Release(str(name), name.product, "", Path("/usr/bin"), source=f"image {tag}", image=image, files=files)
    server = next((path for program in layout.SERVERS[name.product] if (path := inspected.path_of(program))), None)
    if server is None:
        raise ConfigError(f"{name}: image {tag} has no server program ({' or '.join(layout.SERVERS[name.product])})")
    try:
        output = host.run([str(server), "--no-defaults", "--version"]).stdout
    except CommandFailed as error:
        raise ProvisionError(f"{name}: the server of image {tag} does not run: {error}") from error
    product, version = layout.product_of(output), layout.exact_version(output)
    if product != name.product or not f"{version}.".startswith(f"{name.version}."):
        raise ConfigError(f"{name}: the server of image {tag} is {product} {version}")
    found = Release(
        name=str(name),
        product=product,
        version=version,
        bin=server.parent,
        server_options=_paths(files) | layout.privacy_options(product),
        wsrep_provider=next((path for parent in GALERA if str(path := Path(parent, PROVIDER)) in files), None),
        source=f"image {tag}",
        image=image,
        files=files,
    )
    return dataclasses.replace(found, transfer_tools=_transfer_tools(found))


def _transfer_tools(release: Release) -> Path | None:
    """The programs of state transfers that the image lacks, in a cached release of its version or of its series."""
    if not release.wsrep_provider or not release.lacks_for_transfers:
        return None
    versions = (release.version, release.series)
    cached = next(filter(None, (fetched.lookup(release.product, version) for version in versions)), None)
    complete = cached and all((cached.bin / name).exists() for name in layout.TRANSFERS[release.product])
    return cached.bin if cached and complete else None


def _paths(files: Iterable[str]) -> dict[str, str]:
    """The options with the paths of a server's files, as far as the image has these files."""
    parents = {str(Path(file).parent) for file in files}
    plugins = next((directory for directory in PLUGINS if directory in parents), "")
    found = {"plugin-dir": plugins} if plugins else {}
    for option, part in (("lc-messages-dir", MESSAGES), ("character-sets-dir", CHARSETS)):
        for share in SHARES:
            inside = [parent for parent in sorted(parents) if fnmatch.fnmatchcase(parent, f"{share}/{part}")]
            if inside:
                found[option] = inside[0].removesuffix(f"/{MESSAGES}")
                break
    return found
