"""A release out of programs that are already on this machine: one ``bin/`` of links to them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_dbcluster.errors import CommandFailed, ConfigError, ProvisionError
from pytest_dbcluster.releases import apt, layout, shims
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.system import cache

_SIGNATURE = "programs.json"


def programs_in(directories: Iterable[Path], patterns: Iterable[str]) -> dict[str, Path]:
    """The programs whose names fit, each from the first directory that has it."""
    found: dict[str, Path] = {}
    for directory in directories:
        for pattern in patterns:
            for path in sorted(directory.glob(pattern)):
                if path.is_file():
                    found.setdefault(path.name, path)
    return found


def linked(product: str, place: str, programs: Mapping[str, Path], root: Path | None = None) -> Path:
    """A directory of the cache with ``bin/``: links to the programs, or shims when ``root`` has its own libraries.

    ``product`` and ``place`` tell one such directory from others. It is made anew only when the programs have
    changed, because servers may be running out of it.
    """
    name = "at-" + hashlib.sha256(f"{product} {place}".encode()).hexdigest()[:12]
    entry = cache.releases() / name
    signature = json.dumps([cache.FORMAT, _stamps(programs), str(root or "")], indent=1)
    with cache.lock(name, progress=lambda line: None):
        kept = entry / _SIGNATURE
        if kept.is_file() and kept.read_text(encoding="utf-8") == signature:
            return entry
        with cache.staged(name) as staging:
            if root:
                (staging / shims.ROOT).symlink_to(root.resolve())
                shims.make(staging, tuple(programs), apt.architecture(), remove_others=False)
            else:
                (staging / "bin").mkdir()
                for program, path in programs.items():
                    (staging / "bin" / program).symlink_to(path.resolve())
            shims.add_other_names(staging / "bin", product)
            (staging / "sbin").symlink_to("bin")
            (staging / _SIGNATURE).write_text(signature, encoding="utf-8")
    return entry


def _stamps(programs: Mapping[str, Path]) -> dict[str, list[str | int]]:
    return {name: [str(path), path.stat().st_mtime_ns] for name, path in sorted(programs.items())}


def release(name: ReleaseName, bin_: Path, prefix: Path, source: str) -> Release:
    """The server in ``bin_``, whose files lie below ``prefix``. Raises ConfigError when it is another one."""
    names = layout.SERVERS[name.product]
    server = next((bin_ / program for program in names if (bin_ / program).exists()), None)
    if server is None:
        raise ConfigError(f"{name}: {source} has no server program ({' or '.join(names)})")
    try:
        words = apt.run([str(server), "--no-defaults", "--version"], seconds=60)
    except CommandFailed as error:
        raise ProvisionError(f"{name}: the server of {source} does not run on this system: {error}") from error
    product, version = layout.product_of(words), layout.exact_version(words)
    wanted = "" if name.version == "path" else name.version
    if product != name.product or not f"{version}.".startswith(f"{wanted}." if wanted else ""):
        raise ConfigError(f"{name}: the server of {source} is {product} {version}")
    return Release(
        name=str(name),
        product=name.product,
        version=version,
        bin=bin_,
        server_options=layout.server_options(prefix),
        client_options=layout.client_options(prefix),
        wsrep_provider=layout.wsrep_provider(prefix),
        source=source,
    )


def with_prefix(found: Release, entry: Path) -> Release:
    """The release with ``entry`` as its basedir, so that its scripts find the shims and not the bare programs."""
    return dataclasses.replace(found, server_options={**found.server_options, "basedir": str(entry)})
