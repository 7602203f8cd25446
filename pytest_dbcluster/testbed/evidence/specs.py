"""A variant as a value: its cluster as records store it, and what its answers depend on."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from pytest_dbcluster.measuring.evidence import ResolvedSpec, SpecDocument
from pytest_dbcluster.redaction import redact
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.variants import Variant

PROGRAMS = ("mariadbd", "mysqld")


def resolved_spec(variant: Variant, parity: str) -> ResolvedSpec:
    """A variant as a value. parity: the parity profile of the run, for a spec that names none."""
    spec, releases = variant.spec, dict(zip(variant.spec.releases, variant.releases or [variant.release], strict=False))
    own = [release for name, release in releases.items() if name.directory or name.version == "path"]
    return ResolvedSpec(
        name=spec.short_name,
        document=spec_document(spec, variant.release_name, variant.version, parity),
        options=variant.asked,
        instance=spec.instance,
        image="+".join(dict.fromkeys(one.image for one in variant.releases or [variant.release])),
        built="; ".join(_program_stamp(release.bin) for release in own),
    )


def spec_document(spec: ClusterSpec, release: str, version: str, parity: str) -> SpecDocument:
    """The document of a spec. parity: the parity profile of the run, for a spec that names none."""
    iops = "" if spec.needs.iops is None else f"iops={spec.needs.iops}"
    return SpecDocument(
        topology=spec.topology,
        nodes=spec.nodes,
        release=release,
        version=version,
        proxy=spec.proxy or "",
        options={name: redact(value) for name, value in spec.options},
        cnf=tuple(PurePosixPath(name).name for name in spec.cnf),
        limits=str(spec.needs),
        storage=spec.needs.storage or iops,
        parity=spec.parity or parity,
        proxy_options=dict(spec.proxy_options),
    )


def _program_stamp(directory: Path) -> str:
    """The directory of the server's program, with its size and time."""
    for name in PROGRAMS:
        try:
            found = (directory / name).stat()
        except OSError:
            continue
        return f"{directory}: {found.st_size} bytes, {found.st_mtime_ns}"
    return str(directory)
