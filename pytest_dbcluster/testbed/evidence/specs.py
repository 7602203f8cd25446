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
    spec, release = variant.spec, variant.release
    own = spec.release is not None and (spec.release.directory or spec.release.version == "path")
    return ResolvedSpec(
        name=spec.short_name,
        document=spec_document(spec, str(release.name), release.version, parity),
        options=variant.asked,
        instance=spec.instance,
        image=release.image,
        built=_program_stamp(release.bin) if own else "",
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
