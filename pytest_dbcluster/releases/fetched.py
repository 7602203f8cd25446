"""Fetched releases: read them from the cache, or fetch them into it."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, DBClusterError, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases import apt, guest_system, layout, shims, stand_in_system, tarballs
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM, STAND_IN_SYSTEM, Offer
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.releases.sources import Candidate
from pytest_dbcluster.releases.vendors.tarball_archive import TarballArchive
from pytest_dbcluster.system import cache
from pytest_dbcluster.system.tracing.recorder import span

# Product -> the names of the program that prints its version. For other tools it is the name of the tool.
MAIN_PROGRAMS = {**layout.SERVERS, GUEST_SYSTEM: (guest_system.KERNEL,), STAND_IN_SYSTEM: ("ssh",)}
# Messages of apt about a host that cannot be reached.
_NO_ANSWER = re.compile(r"Could not (resolve|connect|handshake)|Unable to connect|Temporary failure|timed out")
VERSION_OPTIONS = {"haproxy": "-v", STAND_IN_SYSTEM: "-V"}


def key(product: str, version: str, architecture: str) -> str:
    """The name of a cache entry: ``mariadb-10.11-amd64``, ``sysbench-amd64``."""
    return "-".join(part for part in (product, version, architecture) if part)


def lookup(product: str, version: str, progress: Report = lambda _: None) -> Release | None:
    """The cached release for this machine's architecture; None if it is not in the cache.

    If its files are damaged, it is renamed, so that it leaves the cache. Raises ProvisionError.
    """
    for entry, manifest in _entries_of(product, version):
        if product == GUEST_SYSTEM and not guest_system.is_complete(entry):
            continue  # it is fetched again
        if _runs_here(manifest.architecture):
            if not _is_damaged(entry):
                return from_entry(entry, dataclasses.replace(manifest, version=version))
            with cache.lock(entry.name, progress=progress):
                cache.set_aside_if_damaged(entry, cache.MANIFEST, progress)
    return None


def _entries_of(product: str, version: str) -> list[tuple[Path, cache.Manifest]]:
    """The entries with this version as a user names it. ``8.4.6`` is also an entry of 8.4 with exactly this version."""
    known = [(entry, manifest) for entry, manifest in cache.entries() if manifest.product == product]
    named = [pair for pair in known if pair[1].version == version]
    return named + [pair for pair in known if pair[1].exact == version and pair not in named]


def _is_damaged(entry: Path) -> bool:
    try:
        return cache.is_damaged(entry, cache.MANIFEST)
    except OSError as error:
        raise ProvisionError(
            f"cannot read {error.filename} of the cached {entry.name}: {error.strerror}; run as the owner of the "
            "cache, or set XDG_CACHE_HOME to your own directory"
        ) from error


def from_entry(entry: Path, manifest: cache.Manifest) -> Release:
    """The release in a cache entry. The entry may have been moved or copied since it was made."""
    tool = not manifest.version
    return Release(
        name=manifest.product if tool else f"{manifest.product}:{manifest.version}",
        product=manifest.product,
        version=manifest.exact,
        bin=entry / "bin",
        server_options={} if tool else layout.server_options(entry) | layout.privacy_options(manifest.product),
        client_options={} if tool else layout.client_options(entry),
        environment=layout.sysbench_environment(entry) if manifest.product == "sysbench" else {},
        scripts=entry / "share/sysbench" if manifest.product == "sysbench" else None,
        wsrep_provider=None if tool else layout.wsrep_provider(entry),
        source=f"{manifest.source} (in {entry})",
        trees=(entry,),
    )


def fetch(offer: Offer, candidates: Sequence[Candidate], progress: Report) -> Release:
    """Fetch a release from the first candidate that has it. Raises ProvisionError with each candidate's reason."""
    native = apt.architecture()
    name = key(offer.product, offer.version, native)
    reasons = []
    with cache.lock(name, progress=progress):
        if not cache.set_aside_if_damaged(cache.releases() / name, cache.MANIFEST, progress):
            cached = lookup(offer.product, offer.version)
            if cached:
                return cached
        waiting = list(candidates)
        while waiting:
            candidate, *waiting = waiting
            try:
                if reason := candidate.refusal(native):
                    raise ProvisionError(reason)
                with span("fetch", release=offer.name), cache.stage(name) as staging:
                    _build(offer, candidate, staging, native, progress)
            except (DBClusterError, OSError) as error:
                reasons.append(str(error))
                waiting = _remaining(candidate, waiting, str(error))
                if waiting:
                    progress(f"{offer.name}: {error}; looking in {waiting[0].where}")
                continue
            return _from_cache(offer)
    raise ProvisionError("; ".join(dict.fromkeys(reasons)) or _nowhere(offer))


def _remaining(failed: Candidate, waiting: Sequence[Candidate], error: str) -> list[Candidate]:
    """The candidates that are still worth a try: no other suite of a vendor whose host does not answer."""
    host = failed.origin.repository if _NO_ANSWER.search(error) else None
    return [candidate for candidate in waiting if host is None or candidate.origin.repository != host]


def _nowhere(offer: Offer) -> str:
    suites = ", ".join(dict.fromkeys(origin.suite for origin in offer.origins))
    return f"it is in {suites}, but the apt sources of this system name no mirror with that suite"


def _from_cache(offer: Offer) -> Release:
    cached = lookup(offer.product, offer.version)
    if cached is None:
        raise ProvisionError(f"{offer.name} disappeared from {cache.releases()} after it was fetched; fetch it again")
    return cached


def _build(offer: Offer, candidate: Candidate, staging: Path, native: str, progress: Report) -> None:
    fetched = apt.fetch(offer.name, candidate, staging, staging / shims.ROOT, progress)
    if offer.product == GUEST_SYSTEM:
        guest_system.make(staging, offer.programs, native)
    elif offer.product == STAND_IN_SYSTEM:
        stand_in_system.make(staging, offer.programs, native)
    else:
        shims.make(staging, offer.programs, native)
    shims.add_other_names(staging / "bin", offer.product)
    link_prefix(staging)
    exact = _program_version(staging / "bin", offer)
    if not f"{exact}.".startswith(f"{offer.version}." if offer.version else ""):
        raise ProvisionError(f"{fetched.where} has {offer.product} {exact}, not {offer.version}")
    manifest = cache.Manifest(
        product=offer.product,
        version=offer.version,
        exact=exact,
        architecture=native,
        suite=fetched.suite,
        source="; ".join([fetched.where, *fetched.remarks]),
        packages={package.name: package.version for package in fetched.packages},
        downloaded=fetched.downloaded,
        size=cache.size(staging),
        fetched=_now(),
        supplier=candidate.origin.supplier,
    )
    cache.write(staging, manifest)


def fetch_tarball(offer: Offer, archive: TarballArchive, progress: Report) -> Release:
    """Fetch an exact version from an archive of tarballs; this needs no apt. Raises ProvisionError."""
    native = shims.architecture()
    name = key(offer.product, offer.version, native)
    with cache.lock(name, progress=progress):
        if cached := lookup(offer.product, offer.version):
            return cached
        try:
            with span("fetch", release=offer.name), cache.stage(name) as staging:
                downloaded = tarballs.download(archive, offer.version, native, staging, progress)
                exact = _program_version(staging / "bin", offer)
                if exact != offer.version:
                    raise ProvisionError(f"{downloaded.address} has {offer.product} {exact}, not {offer.version}")
                manifest = cache.Manifest(
                    product=offer.product,
                    version=offer.version,
                    exact=exact,
                    architecture=native,
                    suite="",
                    source=downloaded.address,
                    packages={},
                    downloaded=downloaded.size,
                    size=cache.size(staging),
                    fetched=_now(),
                    supplier=archive.title,
                )
                cache.write(staging, manifest)
        except OSError as error:
            raise ProvisionError(f"cannot fetch {offer.name} from {archive.title}: {error}") from error
        return _from_cache(offer)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def link_prefix(entry: Path) -> None:
    """Add links to an entry, so that it looks like an installation: a basedir with bin, sbin, share and lib."""
    inside = {part: f"{shims.ROOT}/usr/{part}" for part in ("share", "lib", "lib64")}
    if not (entry / inside["lib64"]).is_dir():  # RPMs have the plugins there
        del inside["lib64"]
    for part, target in {"sbin": "bin", **inside}.items():
        if not (entry / part).is_symlink():
            (entry / part).symlink_to(target)


def _program_version(bin_: Path, offer: Offer) -> str:
    """The version that the program itself reports. This also tests that the program runs on this machine."""
    names = MAIN_PROGRAMS.get(offer.product, (offer.product,))
    program = next((bin_ / name for name in names if (bin_ / name).exists()), None)
    if program is None:
        raise ProvisionError(f"the packages of {offer.name} contain no {' or '.join(names)}")
    command = [str(program), VERSION_OPTIONS.get(offer.product, "--version")]
    if offer.product == STAND_IN_SYSTEM:  # ssh writes its version, OpenSSH_9.2p1, to its standard error
        command = ["sh", "-c", '"$@" 2>&1 | tr _ " "', "sh", *command]
    try:
        output = apt.run(command, seconds=60)
    except CommandFailed as error:
        raise ProvisionError(f"the fetched {offer.name} does not run on this system: {error}") from error
    return layout.exact_version(output)


def _runs_here(architecture: str) -> bool:
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(architecture) == shims.machine()
