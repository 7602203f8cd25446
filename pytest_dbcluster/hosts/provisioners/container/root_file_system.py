"""The root file system of a release as a tar, made from Debian packages by mmdebstrap: what an image consists of.

Packages are extracted and not installed (``--variant=extract``): no maintainer script runs, so nothing is started, no
data directory is made, and apt is told that perl and its like are there already. What the scripts of base packages
would have made, such as /etc/passwd, is written by hand. mariadb:10.11 is 271 MB so; with its whole closure it was
341 MB in 18 s, and installed (``--variant=essential``) 509 MB in 43 s.
"""

from __future__ import annotations

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
from pytest_dbcluster.releases import apt, layout, shims
from pytest_dbcluster.releases.catalogue import NOT_FETCHED, Offer
from pytest_dbcluster.releases.sources import AptEntry, Candidate

PROGRAM = "mmdebstrap"
# What a host is asked to do besides running a server, and what every program takes for granted.
HOST_PACKAGES = (
    "base-files", "base-passwd", "bash", "coreutils", "dash", "debianutils", "findutils", "gawk", "grep", "hostname",
    "iproute2", "libc-bin", "procps", "sed", "tar", "util-linux",
)  # fmt: skip
NOTES = "etc/pytest-dbcluster"  # in the image: what it was made of
# In mmdebstrap's words; each is said once.
STAGES = {
    "running apt-get update": "reading the lists",
    "downloading packages": "downloading",
    "extracting archives": "unpacking",
    "creating tarball": "writing the tar",
}
_NO_NAMESPACES = re.compile(r"unshare|newuidmap|newgidmap|subuid|subgid|user namespace|userns", re.IGNORECASE)
# What went wrong, in the words of apt and mmdebstrap; and what only says once more that something did.
_WORDS = re.compile(r"E:|W: .*(GPG|sign)|Err:")
_ECHO = re.compile(r"^E: (mmdebstrap failed to run|apt download failed|apt-get |Unable to fetch some archives)")

# /usr is merged in every suite: from trixie on base-files brings these links, for older ones they come first.
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
    for place in usr/bin usr/sbin; do
        if [ -e "$place/$1" ] && [ ! -e "$place/$2" ]; then ln -s "$1" "$place/$2"; fi
    done
}}
{others}
chroot . {server} --version >{notes}/version
"""


@dataclasses.dataclass(frozen=True)
class RootFileSystem:
    """A tar that was written. exact: the server's version, as it says itself. packages: name -> version."""

    exact: str
    packages: dict[str, str]
    suite: str
    source: str


def make(offer: Offer, candidates: Sequence[Candidate], staging: Path, progress: Report) -> RootFileSystem:
    """``staging/image.tar``, from the first candidate that has the release.

    Raises ProvisionError with every candidate's reason, Unsupported on a host without mmdebstrap.
    """
    if not shutil.which(PROGRAM):
        raise Unsupported(
            f"an image of {offer.name} is made by {PROGRAM}, which is not installed: apt-get install {PROGRAM}"
        )
    reasons = []
    for candidate in candidates:
        tries = [(*candidate.entries, *candidate.optional), candidate.entries]
        for entries in tries if candidate.optional else tries[1:]:
            try:
                return _make(offer, candidate, entries, staging, progress)
            except CommandFailed as error:
                reasons.append(reason(offer, candidate, error))
                progress(f"{offer.name}: {reasons[-1]}")
            except ProvisionError as error:
                reasons.append(str(error))
    raise ProvisionError(f"no image of {offer.name}: {'; '.join(dict.fromkeys(reasons)) or _nowhere(offer)}")


def _nowhere(offer: Offer) -> str:
    suites = ", ".join(origin.suite for origin in offer.origins)
    return (
        f"it is in {suites}, and the apt sources of this system name no mirror of that; "
        "DBCLUSTER_MIRROR=URL names a Debian mirror"
    )


def _make(
    offer: Offer, candidate: Candidate, entries: Sequence[AptEntry], staging: Path, progress: Report
) -> RootFileSystem:
    where, remarks = candidate.where, []
    left_out = ", ".join(entry.suite for entry in candidate.optional if entry not in entries)
    if left_out:
        remarks.append(f"without {left_out}, which the mirror does not have whole")
    progress(f"{offer.name}: making an image from {where} with {PROGRAM}")
    try:
        _run(command(offer, candidate, entries, staging), offer.name, staging, progress)
    except CommandFailed as error:
        stale = apt.OUT_OF_DATE.findall(error.stderr)
        if not stale:
            raise
        for file, how in stale:
            remarks.append(f"the mirror's file {file} is {how}; its signature is good, going on")
            progress(f"{offer.name}: {remarks[-1]}")
        _run(command(offer, candidate, entries, staging, stale=True), offer.name, staging, progress)
    packages = dict(map(_package, (staging / "packages").read_text().split()))
    exact = layout.exact_version((staging / "version").read_text())
    if not f"{exact}.".startswith(f"{offer.version}."):
        raise ProvisionError(f"{where} has {offer.product} {exact}, not {offer.version}")
    return RootFileSystem(exact, packages, candidate.origin.suite, "; ".join([where, *remarks]))


def mode() -> str:
    """The way of mmdebstrap that this user has: ``root``, or ``unshare`` with ids of a namespace."""
    return "root" if os.getuid() == 0 else "unshare"


def command(
    offer: Offer, candidate: Candidate, entries: Sequence[AptEntry], staging: Path, *, stale: bool = False
) -> list[str]:
    """The call of mmdebstrap; the sources that it names are written beside the tar.

    ``stale``: go on with Release files that are out of date; signatures are checked all the same.
    """
    native = apt.architecture()
    sources = staging / "mirror.sources"
    sources.write_text("\n".join(map(_stanza, entries)))
    names = list(dict.fromkeys([*candidate.origin.packages, *HOST_PACKAGES]))
    installed = "".join(apt.installed(name, native) for name in NOT_FETCHED if name not in names)
    before = _BEFORE.format(preferences=apt.PREFERENCES, installed=installed)
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
        # Nothing runs in there that needs them, and nothing of this machine is mounted where files are removed.
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
        str(sources),
    ]


def _apt_settings(stale: bool) -> list[str]:
    """How this host reaches its mirrors, and the same patience as when a release is fetched."""
    ours = {"Acquire::http::Timeout": "30", "Acquire::https::Timeout": "30", "Acquire::Retries": "1"}
    ours["APT::Sandbox::User"] = "root"
    if stale:
        ours |= {"Acquire::Check-Valid-Until": "false", "Acquire::Check-Date": "false"}
    return [*apt.host_settings(), *(f'{key} "{value}";' for key, value in ours.items())]


def _stanza(entry: AptEntry) -> str:
    """An apt source; files of a mirror on this machine are copied, because apt would look for them in the image."""
    return str(dataclasses.replace(entry, uri=re.sub("^file:", "copy:", entry.uri)))


def _package(path: str) -> tuple[str, str]:
    """Name and version in the path of a package's file."""
    name, version, *_ = unquote(Path(path).name).split("_")
    return name, version


def _run(line: Sequence[str], name: str, staging: Path, progress: Report) -> None:
    """Run mmdebstrap and tell of its stages. Raises CommandFailed; it has ended when this does."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    # Another user's ids work in there in mode unshare, which may not be able to enter the cache.
    environment |= {"TMPDIR": str(staging)} if os.getuid() == 0 else {}
    said: list[str] = []
    waiting = dict(STAGES)
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        env=environment,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            for text in process.stderr:
                said.append(text)
                stage = next((stage for stage in waiting if stage in text), None)
                if stage:
                    progress(f"{name}: .. {waiting.pop(stage)}")
            status = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()  # it cleans up
                process.wait()
    if status:
        raise CommandFailed(line[:1], status, "", "".join(said))


def reason(offer: Offer, candidate: Candidate, error: CommandFailed) -> str:
    """Why it failed, in the words of apt and mmdebstrap; for a user who may not, the one command to run."""
    words = [
        line for text in error.stderr.splitlines() if _WORDS.match(line := text.strip()) and not _ECHO.search(line)
    ]
    text = "; ".join(dict.fromkeys(words))[:800] or str(error)
    if os.getuid() != 0 and _NO_NAMESPACES.search(text):
        again = f"sudo {shlex.quote(sys.argv[0])} image build {offer.name}"
        return f"{PROGRAM} needs user namespaces, which this user may not have ({text}); as root it works:  {again}"
    return f"{PROGRAM} could not make it from {candidate.where}: {text}"
