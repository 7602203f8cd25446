"""Releases from programs that are already on this machine: a directory ``bin/`` with links to them."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ConfigError, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases import apt, fetched, layout, shims, tarballs
from pytest_dbcluster.releases.catalogue import OFFERS, PROGRAMS
from pytest_dbcluster.releases.portable import portable_copy
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.system import cache

_SIGNATURE = "programs.json"

_BINS = ("bin", "sbin", "scripts", "libexec")

APPARMOR = Path("/sys/kernel/security/apparmor/profiles")
PROFILES = Path("/etc/apparmor.d")
SYSTEM = tuple(map(Path, ("/", "/usr", "/usr/local")))
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def programs_in(directories: Iterable[Path], patterns: Iterable[str]) -> dict[str, Path]:
    """The programs that match a pattern: name -> path in the first directory that has it."""
    programs: dict[str, Path] = {}
    for directory in directories:
        for pattern in patterns:
            for path in sorted(directory.glob(pattern)):
                if path.is_file():
                    programs.setdefault(path.name, path)
    return programs


def link_programs(product: str, location: str, programs: Mapping[str, Path], root: Path | None = None) -> Path:
    """A directory in the cache with ``bin/``: links to the programs, or shims if ``root`` has its own libraries.

    ``product`` and ``location`` identify the directory. We make it again only when the programs have changed, because
    servers may be running from it.
    """
    name = "at-" + hashlib.sha256(f"{product} {location}".encode()).hexdigest()[:12]
    entry = cache.releases() / name
    signature = [cache.FORMAT, _stamps(programs), str(root or "")]
    with cache.lock(name, progress=lambda line: None):
        if cache.read_manifest(entry / _SIGNATURE, lambda value: value) == signature:
            return entry
        with cache.stage(name) as staging:
            if root:
                (staging / shims.ROOT).symlink_to(root.resolve())
                shims.make(staging, tuple(programs), shims.architecture(), remove_others=False)
            else:
                (staging / "bin").mkdir()
                for program, path in programs.items():
                    (staging / "bin" / program).symlink_to(path.resolve())
                for extra in {path.resolve().parent / shims.EXTRA for path in programs.values()}:
                    if extra.is_dir():
                        (staging / "bin" / shims.EXTRA).symlink_to(extra)
            shims.add_other_names(staging / "bin", product)
            (staging / "sbin").symlink_to("bin")
            cache.write_manifest(staging / _SIGNATURE, signature)
    return entry


def _stamps(programs: Mapping[str, Path]) -> dict[str, list[str | int]]:
    return {name: [str(path), path.stat().st_mtime_ns] for name, path in sorted(programs.items())}


def release_of(name: ReleaseName, bin_: Path, prefix: Path, source: str) -> Release:
    """The release of the server in ``bin_``, with its files below ``prefix``.

    Raises ConfigError for another product or version, ProvisionError if the server does not run.
    """
    names = layout.SERVERS[name.product]
    server = next((bin_ / program for program in names if (bin_ / program).exists()), None)
    if server is None:
        raise ConfigError(f"{name}: {source} has no server program ({' or '.join(names)})")
    try:
        output = apt.run([str(server), "--no-defaults", "--version"], seconds=60)
    except CommandFailed as error:
        raise ProvisionError(f"{name}: the server of {source} does not run on this system: {error}") from error
    product, version = layout.product_of(output), layout.exact_version(output)
    wanted = "" if name.version == "path" else name.version
    if product != name.product or not f"{version}.".startswith(f"{wanted}." if wanted else ""):
        raise ConfigError(f"{name}: the server of {source} is {product} {version}")
    return Release(
        name=str(name),
        product=name.product,
        version=version,
        bin=bin_,
        server_options=layout.server_options(prefix) | layout.privacy_options(product),
        client_options=layout.client_options(prefix),
        wsrep_provider=layout.wsrep_provider(prefix),
        source=source,
    )


def with_prefix(release: Release, entry: Path) -> Release:
    """The release with ``entry`` as its basedir, so that its scripts find the shims instead of the programs."""
    return dataclasses.replace(release, server_options={**release.server_options, "basedir": str(entry)})


def in_directory(name: ReleaseName, progress: Report = lambda _: None, *, portable: bool = False) -> Release:
    """The release in ``name.directory``, which may be a tarball.

    ``portable``: a copy of it with its libraries, for hosts that do not see this machine's system. Raises ConfigError
    if there is no server in it, or another version. A directory of the system cannot be copied: ConfigError too.
    """
    tarballs.check(f"{name}={name.directory}")
    given = Path(name.directory).expanduser().absolute()
    directory = given if given.is_dir() else tarballs.unpack(given, progress)
    release = _in_directory(name, directory, progress if portable else None)
    return release if directory is given else dataclasses.replace(release, source=f"{given} (in {directory})")


def in_tools(name: ReleaseName) -> Release | None:
    """The newest release of this name in the directories of ``make servers``; None without one."""
    cache.require_trusted(cache.root() / "tools")
    found = (cache.root() / "tools").glob(f"{name.product}-*")
    versions = {path: path.name.removeprefix(f"{name.product}-") for path in found if path.is_dir()}
    fitting = [path for path, version in versions.items() if f"{version}.".startswith(f"{name.version}.")]
    newest = max(fitting, key=lambda path: ReleaseName(name.product, versions[path]).series, default=None)
    return in_directory(dataclasses.replace(name, directory=str(newest))) if newest else None


def _in_directory(name: ReleaseName, directory: Path, copying: Report | None) -> Release:
    """The release in an unpacked directory. ``copying``: reports a portable copy; None to use it where it is."""
    manifest = cache.read(directory)
    if manifest:
        if (manifest.product, manifest.version) != (name.product, name.version):
            raise ConfigError(f"{name}: {directory} holds {manifest.product} {manifest.version}")
        return fetched.from_entry(directory, manifest)
    for prefix in (directory / part for part in layout.PREFIXES):
        programs = _programs_below(prefix, directory, name)
        if any(server in programs for server in layout.SERVERS[name.product]):
            release = _at_prefix(name, directory, prefix, programs)
            return release if copying is None else _portable(release, name, directory, prefix, programs, copying)
    servers = " or ".join(layout.SERVERS[name.product])
    looked = ", ".join(f"{part}/" for part in _BINS)
    raise ConfigError(f"{name}: {directory} has no {servers} in {looked} or in the same directories of usr/")


def _programs_below(prefix: Path, directory: Path, name: ReleaseName) -> dict[str, Path]:
    # Old tarballs have the installer in scripts/; unpacked packages may have ss and ip outside of usr.
    directories = [prefix / part for part in _BINS] + [directory / part for part in ("bin", "sbin")]
    return programs_in(directories, PROGRAMS[name.product])


def _at_prefix(name: ReleaseName, directory: Path, prefix: Path, programs: dict[str, Path]) -> Release:
    own_loader = prefix != directory and shims.has_loader(directory)
    entry = link_programs(name.product, str(directory), programs, directory if own_loader else None)
    if own_loader and not (entry / "share").exists():
        fetched.link_prefix(entry)
    release = release_of(name, entry / "bin", prefix, str(directory))
    release = dataclasses.replace(release, trees=_trees(entry, directory, programs))
    return with_prefix(release, entry) if own_loader else release


def _portable(
    release: Release, name: ReleaseName, directory: Path, prefix: Path, programs: Mapping[str, Path], progress: Report
) -> Release:
    """A copy of a release in a directory that other hosts can run. Raises ConfigError for the system's directory."""
    if directory.resolve() in SYSTEM:
        raise ConfigError(
            f"{name}={directory}: these programs belong to the system of this machine, which no other host has; use a "
            "release from `dbcluster fetch` (`dbcluster releases` lists them), a tarball, or an image"
        )
    entry = portable_copy.make(name.product, directory, prefix, programs, progress)
    copied = release_of(name, entry / "bin", entry, release.source)
    return dataclasses.replace(with_prefix(copied, entry), trees=(entry,))


def _trees(entry: Path, directory: Path, programs: Mapping[str, Path]) -> tuple[Path, ...]:
    """The trees of a release in a directory; empty if the directory or a linked program belongs to the system."""
    real = directory.resolve()
    if real in SYSTEM or not all(path.resolve().is_relative_to(real) for path in programs.values()):
        return ()
    return tuple(dict.fromkeys([entry, real, directory]))


def path_directories() -> list[Path]:
    """The directories of PATH, and those for servers, which an ordinary user's PATH lacks."""
    parts = [*os.environ.get("PATH", "").split(os.pathsep), *_SBIN]
    return [Path(part) for part in dict.fromkeys(parts) if part]


def server_on_path(product: str) -> Path | None:
    """The path of the server program on PATH; None if PATH has no server."""
    search = os.pathsep.join(map(str, path_directories()))
    paths = (shutil.which(name, path=search) for name in layout.SERVERS[product])
    return next((Path(path) for path in paths if path), None)


def on_path(name: ReleaseName) -> Release:
    """The release of the server on PATH. Raises ConfigError if PATH has no server, or one of another product."""
    program = server_on_path(name.product)
    if program is None:
        looked = ":".join(map(str, path_directories()))
        offers = ", ".join(offer.name for offer in OFFERS if offer.product == name.product)
        other = f"name a version that can be fetched: {offers}"
        if apt.missing_program():
            other = apt.without_packages(f"{name.product}:VERSION")
        raise ConfigError(
            f"{name}: no {' or '.join(layout.SERVERS[name.product])} on PATH ({looked}); install a server, or {other}"
        )
    beside = [program.parent, program.parent.parent / "bin"]
    programs = programs_in([*beside, *path_directories()], PROGRAMS[name.product])
    entry = link_programs(name.product, "on PATH", programs)
    source = f"PATH ({program}{_apparmor_remark(program)})"
    return release_of(name, entry / "bin", program.resolve().parent.parent, source)


def _apparmor_remark(program: Path) -> str:
    """A remark if AppArmor confines the server, because it may be unable to write its data directory; or empty."""
    real = str(program.resolve())
    try:
        confined = any(line.startswith(f"{real} (enforce)") for line in APPARMOR.read_text().splitlines())
    except OSError:  # only root may read it
        profile = PROFILES / real.strip("/").replace("/", ".")
        text = profile.read_text() if APPARMOR.parent.is_dir() and profile.is_file() else ""
        confined = any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())
    return "; AppArmor confines it: if it cannot reach its data directory, see aa-status" if confined else ""


def tool_on_path(name: str, reason: str) -> Release | None:
    """The release of a tool on PATH, or None. ``reason``: why the tool could not be fetched."""
    program = shutil.which(name, path=os.pathsep.join(map(str, path_directories())))
    if program is None:
        return None
    try:
        output = apt.run([program, "-v" if name == "haproxy" else "--version"], seconds=60)
    except ProvisionError:
        return None
    entry = link_programs(name, "on PATH", {name: Path(program)})
    scripts = Path(program).resolve().parent.parent / "share/sysbench"
    return Release(
        name=name,
        product=name,
        version=layout.exact_version(output),
        bin=entry / "bin",
        scripts=scripts if name == "sysbench" and scripts.is_dir() else None,
        source=f"PATH ({program}), because it could not be fetched: {reason}",
    )
