"""The root file system of a release: a tar that mmdebstrap makes from Debian packages, the content of an image.

mmdebstrap extracts the packages and does not install them (``--variant=extract``). So no maintainer script runs, no
server starts, and no data directory is made. We report packages such as perl to apt as installed. We write the files
that scripts of base packages would make, such as /etc/passwd. The image of mariadb:10.11 has 271 MB. With all its
dependencies it would have 341 MB and take 18 s. Installed (``--variant=essential``) it would have 509 MB and take 43 s.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases import apt, layout, shims, sources
from pytest_dbcluster.releases.catalogue import NOT_FETCHED, Offer
from pytest_dbcluster.releases.sources import AptEntry, Candidate
from pytest_dbcluster.releases.vendors import preferences

PROGRAM = "mmdebstrap"
END_SECONDS = 60.0  # until it has removed its files after SIGTERM
# Packages of programs that we run on a host beside the server, and packages that every program expects.
HOST_PACKAGES = (
    "base-files", "base-passwd", "bash", "coreutils", "dash", "debianutils", "findutils", "gawk", "grep", "hostname",
    "iproute2", "libc-bin", "procps", "sed", "tar", "util-linux",
)  # fmt: skip
NOTES = "etc/pytest-dbcluster"  # in the image: its packages and its version
# Message of mmdebstrap -> our line of progress, reported once.
STAGES = {
    "running apt-get update": "reading the lists",
    "downloading packages": "downloading",
    "extracting archives": "unpacking",
    "creating tarball": "writing the tar",
}
_NO_NAMESPACES = re.compile(r"unshare|newuidmap|newgidmap|subuid|subgid|user namespace|userns", re.IGNORECASE)
# Lines of apt and mmdebstrap that name a cause, and lines that only repeat that there was an error.
_WORDS = re.compile(r"E:|W: .*(GPG|sign)|Err:")
_ECHO = re.compile(r"^E: (mmdebstrap failed to run|apt download failed|apt-get |Unable to fetch some archives)")

# /usr is merged in every suite. From trixie on base-files contains these links; for older suites we make them first.
_BEFORE = """\
set -eu; cd "$1"
for part in bin sbin lib lib64; do mkdir -p "usr/$part"; ln -s "usr/$part" "$part"; done
cat >etc/apt/preferences.d/archive <<'END'
{preferences}END
cat >>var/lib/dpkg/status <<'END'
{installed}END
"""

_AFTER = """\
set -eu; cd "$1"
mkdir -p {notes}
printf '%s\\n' $MMDEBSTRAP_ESSENTIAL >{notes}/packages
cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
echo 'mysql:x:999:999:server:/nonexistent:/usr/sbin/nologin' >>etc/passwd
echo 'mysql:x:999:' >>etc/group
printf 'passwd: files\\ngroup: files\\nhosts: files dns\\n' >etc/nsswitch.conf
[ -e usr/bin/sh ] || ln -s dash usr/bin/sh
[ -e usr/bin/awk ] || ln -s gawk usr/bin/awk
[ -e usr/bin/which ] || ln -s which.debianutils usr/bin/which
rm -rf etc/apt var/cache/apt var/lib/apt var/lib/dpkg var/log/apt
rm -rf usr/share/doc usr/share/man usr/share/locale usr/share/lintian usr/share/info
other() {{
    for directory in usr/bin usr/sbin; do
        if [ -e "$directory/$1" ] && [ ! -e "$directory/$2" ]; then ln -s "$1" "$directory/$2"; fi
    done
}}
{others}
chroot . {server} --version >{notes}/version
"""


@dataclasses.dataclass(frozen=True)
class RootFileSystem:
    """The content of a finished tar."""

    exact: str
    """The version that the server reports."""

    packages: dict[str, str]
    """Package name -> version."""

    suite: str
    """The suite of its packages, such as bookworm."""

    source: str
    """The mirror of the packages, with remarks, for messages."""


def make(offer: Offer, candidates: Sequence[Candidate], staging: Path, progress: Report) -> RootFileSystem:
    """Make ``staging/image.tar`` from the first candidate that has the release.

    Raises ProvisionError with the reason for each candidate, Unsupported on a machine without mmdebstrap.
    """
    if program := apt.missing_program():
        raise Unsupported(
            f"images are built from packages of Debian and Ubuntu, and this system has no {program}: name another "
            f"image with --db-image {offer.name}=IMAGE, such as the vendor's"
        )
    if not shutil.which(PROGRAM):
        raise Unsupported(
            f"an image of {offer.name} needs {PROGRAM}, which is not installed: apt-get install {PROGRAM}"
        )
    reasons = []
    for candidate in candidates:
        if refusal := candidate.refusal(apt.architecture()):
            reasons.append(refusal)
            continue
        variants = [(*candidate.entries, *candidate.optional), candidate.entries]
        for entries in variants if candidate.optional else variants[1:]:
            try:
                sources.check_keys(candidate)
                return _make(offer, candidate, entries, staging, progress)
            except CommandFailed as error:
                reasons.append(reason(offer, candidate, error))
                progress(f"{offer.name}: {reasons[-1]}")
            except ProvisionError as error:
                reasons.append(str(error))
    raise ProvisionError(f"no image of {offer.name}: {'; '.join(dict.fromkeys(reasons)) or _nowhere(offer)}")


def _nowhere(offer: Offer) -> str:
    suites = ", ".join(dict.fromkeys(origin.suite for origin in offer.origins))
    return (
        f"it is in {suites}, but the apt sources of this system name no mirror with that suite; "
        "name a Debian mirror with DBCLUSTER_MIRROR=URL"
    )


def _make(
    offer: Offer, candidate: Candidate, entries: Sequence[AptEntry], staging: Path, progress: Report
) -> RootFileSystem:
    where, remarks = candidate.where, []
    left_out = ", ".join(entry.suite for entry in candidate.optional if entry not in entries)
    if left_out:
        remarks.append(f"without {left_out}, which is incomplete on the mirror")
    progress(f"{offer.name}: making an image from {where} with {PROGRAM}")
    try:
        _run(command(offer, candidate, entries, staging), offer.name, staging, progress)
    except CommandFailed as error:
        stale = apt.out_of_date(error.stderr)
        if not stale:
            raise
        remarks += stale
        for remark in stale:
            progress(f"{offer.name}: {remark}")
        _run(command(offer, candidate, entries, staging, stale=True), offer.name, staging, progress)
    packages = dict(map(_package, (staging / "packages").read_text().split()))
    exact = layout.exact_version((staging / "version").read_text())
    if not f"{exact}.".startswith(f"{offer.version}."):
        raise ProvisionError(f"{where} has {offer.product} {exact}, not {offer.version}")
    return RootFileSystem(exact, packages, candidate.origin.suite, "; ".join([where, *remarks]))


def mode() -> str:
    """The mode of mmdebstrap for this user: ``root``, or ``unshare`` with a user namespace."""
    return "root" if os.getuid() == 0 else "unshare"


def command(
    offer: Offer, candidate: Candidate, entries: Sequence[AptEntry], staging: Path, *, stale: bool = False
) -> list[str]:
    """The command line of mmdebstrap. Also writes the file with its apt sources beside the tar.

    ``stale``: accept Release files that are out of date. mmdebstrap still checks the signatures.
    """
    native = apt.architecture()
    mirrors = staging / "mirror.sources"
    mirrors.write_text("\n".join(map(_stanza, entries)))
    names = list(dict.fromkeys([*candidate.origin.packages, *HOST_PACKAGES]))
    installed = "".join(apt.status_stanza(name, native) for name in NOT_FETCHED if name not in names)
    repository = candidate.origin.repository
    preferred = preferences.of_vendor(repository.own, repository.label) if repository else ""
    before = _BEFORE.format(preferences=preferred + preferences.DISTRIBUTIONS, installed=installed)
    known = shims.OTHER_NAMES.get(offer.product, {})
    pairs = [*known.items(), *((old, new) for new, old in known.items())]
    others = "\n".join(f"other {name} {other}" for name, other in pairs)
    server = f"/usr/sbin/{layout.SERVERS[offer.product][0]}"
    after = _AFTER.format(notes=NOTES, others=others, server=server)
    return [
        PROGRAM,
        f"--mode={mode()}",
        "--variant=extract",
        "--format=tar",
        f"--architectures={native}",
        f"--include={','.join(names)}",
        # Programs in the image do not need these mounts, and hooks that remove files must not see mounts of this
        # machine.
        "--skip=chroot/mount",
        "--skip=output/dev",
        "--skip=cleanup/apt",
        "--skip=cleanup/mmdebstrap",
        *(f"--aptopt={line}" for line in _apt_settings(stale)),
        f"--setup-hook={before}",
        f"--extract-hook={after}",
        *(
            f"--extract-hook=download /{NOTES}/{file} {shlex.quote(str(staging / file))}"
            for file in ("packages", "version")
        ),
        candidate.origin.suite,
        str(staging / "image.tar"),
        str(mirrors),
    ]


def _apt_settings(stale: bool) -> list[str]:
    """The settings of apt: this machine's access to its mirrors, and the timeouts of fetched releases."""
    ours = {"Acquire::http::Timeout": "30", "Acquire::https::Timeout": "30", "Acquire::Retries": "1"}
    ours["APT::Sandbox::User"] = "root"
    if stale:
        ours |= {"Acquire::Check-Valid-Until": "false", "Acquire::Check-Date": "false"}
    return [*apt.host_settings(), *(f'{key} "{value}";' for key, value in ours.items())]


def _stanza(entry: AptEntry) -> str:
    """An apt source as text. ``file:`` becomes ``copy:``, because apt would look for ``file:`` paths in the image."""
    return str(dataclasses.replace(entry, uri=re.sub("^file:", "copy:", entry.uri)))


def _package(path: str) -> tuple[str, str]:
    """The name and the version of a package, from the path of its file."""
    name, version, *_ = unquote(Path(path).name).split("_")
    return name, version


def _run(line: Sequence[str], name: str, staging: Path, progress: Report) -> None:
    """Run mmdebstrap to its end and report its stages. Raises CommandFailed."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    # In mode unshare, mmdebstrap uses other user ids, which may have no access to the cache.
    environment |= {"TMPDIR": str(staging)} if os.getuid() == 0 else {}
    errors: list[str] = []
    waiting = dict(STAGES)
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        env=environment,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            for text in process.stderr:
                errors.append(text)
                stage = next((stage for stage in waiting if stage in text), None)
                if stage:
                    progress(f"{name}: .. {waiting.pop(stage)}")
            status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()  # mmdebstrap then removes its files
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(END_SECONDS)
                process.kill()
    if status:
        raise CommandFailed(line[:1], status, "", "".join(errors))


def reason(offer: Offer, candidate: Candidate, error: CommandFailed) -> str:
    """Why mmdebstrap failed, from its messages. If the user has no namespaces, it names the command for root."""
    causes = [
        line for text in error.stderr.splitlines() if _WORDS.match(line := text.strip()) and not _ECHO.search(line)
    ]
    text = "; ".join(dict.fromkeys(causes))[:800] or str(error)
    if os.getuid() != 0 and _NO_NAMESPACES.search(text):
        again = f"sudo {shlex.quote(sys.argv[0])} image build {offer.name}"
        return f"{PROGRAM} needs user namespaces, which this user cannot make ({text}); run it as root:  {again}"
    if candidate.entries and (fault := apt.signature_fault(error.stderr, candidate.entries[0])):
        text = f"{fault}. apt says: {text}"
    return f"{PROGRAM} could not make the image from {candidate.where}: {text}"
