"""A release out of the programs on PATH: ``mariadb:path``; and a tool there, when it cannot be fetched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.releases import apt, installed, layout
from pytest_dbcluster.releases.catalogue import OFFERS, PROGRAMS
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ReleaseName

APPARMOR = Path("/sys/kernel/security/apparmor/profiles")
PROFILES = Path("/etc/apparmor.d")
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def directories() -> list[Path]:
    """PATH, and the directories of servers that an ordinary user's PATH lacks."""
    parts = [*os.environ.get("PATH", "").split(os.pathsep), *_SBIN]
    return [Path(part) for part in dict.fromkeys(parts) if part]


def server(product: str) -> Path | None:
    """The server program on PATH."""
    places = os.pathsep.join(map(str, directories()))
    found = (shutil.which(name, path=places) for name in layout.SERVERS[product])
    return next((Path(path) for path in found if path), None)


def find(name: ReleaseName) -> Release:
    """The server on PATH with what lies beside it. Raises ConfigError when there is none, or another product."""
    program = server(name.product)
    if program is None:
        looked = ":".join(map(str, directories()))
        offers = ", ".join(offer.name for offer in OFFERS if offer.product == name.product)
        raise ConfigError(
            f"{name}: no {' or '.join(layout.SERVERS[name.product])} on PATH ({looked}); "
            f"install one, or name a version that is fetched: {offers}"
        )
    beside = [program.parent, program.parent.parent / "bin"]
    programs = installed.programs_in([*beside, *directories()], PROGRAMS[name.product])
    entry = installed.linked(name.product, "on PATH", programs)
    source = f"PATH ({program}{_confined(program)})"
    return installed.release(name, entry / "bin", program.resolve().parent.parent, source)


def _confined(program: Path) -> str:
    """A remark when AppArmor confines the server: it may then not write where its data directory is."""
    real = str(program.resolve())
    try:
        confined = any(line.startswith(f"{real} (enforce)") for line in APPARMOR.read_text().splitlines())
    except OSError:  # only root may read it
        profile = PROFILES / real.strip("/").replace("/", ".")
        text = profile.read_text() if APPARMOR.parent.is_dir() and profile.is_file() else ""
        confined = any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())
    return "; AppArmor confines it, see aa-status, if it cannot reach its data directory" if confined else ""


def tool(name: str, reason: str) -> Release | None:
    """A tool on PATH, the last way out; ``reason`` says why it was not fetched."""
    program = shutil.which(name, path=os.pathsep.join(map(str, directories())))
    if program is None:
        return None
    try:
        words = apt.run([program, "-v" if name == "haproxy" else "--version"], seconds=60)
    except ProvisionError:
        return None
    entry = installed.linked(name, "on PATH", {name: Path(program)})
    scripts = Path(program).resolve().parent.parent / "share/sysbench"
    return Release(
        name=name,
        product=name,
        version=layout.exact_version(words),
        bin=entry / "bin",
        scripts=scripts if name == "sysbench" and scripts.is_dir() else None,
        source=f"PATH ({program}), because it could not be fetched: {reason}",
    )
