"""A release from the suites of an apt mirror, fetched and unpacked without root.

apt works with a private state directory and a private dpkg status, and changes nothing on the machine. It resolves,
verifies and downloads the packages with all their dependencies. It checks signatures with the machine's keyrings.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import CommandFailed, ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.releases import sources
from pytest_dbcluster.releases.catalogue import NOT_FETCHED, Origin, is_exact
from pytest_dbcluster.releases.sources import AptEntry, Candidate, family
from pytest_dbcluster.releases.vendors import preferences
from pytest_dbcluster.releases.vendors.repository import Repository

# Settings of the machine that we keep: how to reach the mirrors. We drop hooks, languages and index targets.
_HOST_SETTINGS = re.compile(r"^Acquire::(https?|ftp|socks\w*|Proxy)\S* ", re.IGNORECASE)
_OUT_OF_DATE = re.compile(
    r"Release file for (\S+) is (expired|not valid yet)(?: \(invalid (?:since|for another) ([^)]*))?"
)
_UNITS = {"d": 1.0, "h": 1 / 24, "min": 1 / 1440, "s": 1 / 86400}  # units of apt's durations, in days
# How long a Release file may be out of date. Some mirrors lag by weeks (one of Debian's sid was 16 days behind), and
# archived suites are never renewed. We set a limit, because an attacker in the network can replay an old signed file.
MAX_AGE_VARIABLE, MAX_AGE_DAYS = "DBCLUSTER_MAX_AGE", 365.0
_MINUTES = 60
PROGRAMS = ("apt-get", "apt-config", "dpkg-deb", "dpkg")


@dataclasses.dataclass(frozen=True)
class Package:
    """One package file that apt would download."""

    name: str
    """The name of the package."""

    version: str
    """The version of the package."""

    file: str
    """The name of the file in apt's archive directory."""

    size: int
    """Size in bytes."""

    uri: str = ""
    """Where apt downloads it from."""

    def path(self, archives: Path) -> Path:
        """The path after the download. For a ``file:`` mirror it is in the mirror, because apt copies nothing."""
        return Path(unquote(self.uri[5:])) if self.uri.startswith("file:") else archives / self.file


@dataclasses.dataclass(frozen=True)
class Fetched:
    """The result of a download."""

    packages: tuple[Package, ...]
    """The unpacked packages."""

    suite: str
    """The suite of the packages, such as bookworm."""

    where: str
    """The source, as text for messages."""

    remarks: tuple[str, ...]
    """Remarks about the mirror for the user: a clause each."""

    @property
    def downloaded(self) -> int:
        """The size of all packages, in bytes."""
        return sum(package.size for package in self.packages)


def fetch(name: str, candidate: Candidate, staging: Path, into: Path, progress: Report) -> Fetched:
    """Unpack the candidate's packages with all dependencies into ``into``. ``staging``: for temporary files of apt.

    Raises ProvisionError with the reason of apt, Unsupported on a machine without apt.
    """
    directory = staging / "apt"
    sources.check_keys(candidate)
    progress(f"reading {candidate.where}")
    private = PrivateApt(directory, architecture(), candidate.origin.packages)
    try:
        return _fetch_any(private, name, candidate, into, progress)
    except ProvisionError as error:
        if candidate.title in str(error):  # also if it is empty: a distribution
            raise
        raise ProvisionError(f"{candidate.where}: {error}") from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _fetch_any(private: PrivateApt, name: str, candidate: Candidate, into: Path, progress: Report) -> Fetched:
    """Fetch with the optional entries, otherwise without them. A fault of the vendor's repository is final."""
    try:
        return _fetch(private, name, candidate, (*candidate.entries, *candidate.optional), into, progress)
    except ProvisionError as error:
        if not candidate.optional or (candidate.title and candidate.title in str(error)):
            raise
        left_out = ", ".join(entry.suite for entry in candidate.optional)
        remark = f"without {left_out}, which is incomplete on the mirror"
        progress(f"continuing {remark} ({error})")
    fetched = _fetch(private, name, candidate, candidate.entries, into, progress)
    return dataclasses.replace(fetched, remarks=(*fetched.remarks, remark))


def _fetch(
    private: PrivateApt,
    name: str,
    candidate: Candidate,
    entries: Sequence[AptEntry],
    into: Path,
    progress: Report,
) -> Fetched:
    suite, remarks = candidate.origin.suite, private.update(entries)
    _prefer(private, name, candidate)
    wanted, packages, missing = _plan(private, candidate.origin)
    remarks += missing
    for remark in remarks:
        progress(remark)
    _check_version(name, candidate, packages)
    size = sum(package.size for package in packages)
    progress(
        f"fetching {name} from {suite}: {formatting.size(size)} in {formatting.quantity(len(packages), 'package')}"
    )
    start = time.monotonic()
    unpack(private.download(wanted, packages, progress), into)
    progress(f"{name}: unpacked, {time.monotonic() - start:.1f} s")
    return Fetched(tuple(packages), suite, candidate.where, tuple(remarks))


def _plan(private: PrivateApt, origin: Origin) -> tuple[Sequence[str], list[Package], list[str]]:
    """The names to install, their packages with all dependencies, and a remark for each extra that is missing."""
    wanted, remarks = list(origin.packages), []
    packages = private.plan(wanted)
    for extra in origin.extras:
        try:
            packages = private.plan([*wanted, extra])
            wanted.append(extra)
        except ProvisionError as error:
            remarks.append(f"without {extra} ({error})")
    return wanted, packages, remarks


def _prefer(private: PrivateApt, name: str, candidate: Candidate) -> None:
    """Make apt choose the vendor's packages, and the version of ``name``: the newest of a series, or the exact one."""
    version, repository = name.partition(":")[2], candidate.origin.repository
    if repository is None and not is_exact(version):
        return
    first, *_ = candidate.origin.packages
    known = private.versions(first)
    wanted = next((one for one in known if _is_of(version, one)), "")
    if not wanted and known:
        raise ProvisionError(f"{candidate.where} has {first} {known[0]}, not {version}")
    own = repository.own if repository else (first.partition("-")[0] + "-*",)
    text = preferences.of_version(own, wanted) if wanted and wanted != known[0] else ""
    private.prefer(text + (preferences.of_vendor(own, repository.label) if repository else ""))


def _is_of(version: str, package_version: str) -> bool:
    """Whether the version of a package, with epoch and revision, is of a series, or is an exact version."""
    return bool(re.match(rf"{re.escape(version)}\b", package_version.rpartition(":")[2]))


def _check_version(name: str, candidate: Candidate, packages: Sequence[Package]) -> None:
    """Raise ProvisionError, before any download, if the suite has another version now."""
    version = name.partition(":")[2] or candidate.origin.exact
    for package in packages:
        if package.name == candidate.origin.packages[0] and not _is_of(version, package.version):
            raise ProvisionError(f"{candidate.where} has {package.name} {package.version}, not {version}")


def architecture() -> str:
    """The architecture of this machine as dpkg names it, ``amd64`` or ``arm64``. Raises Unsupported."""
    if program := missing_program():
        raise Unsupported(f"this system has no {program}; packages can be fetched only on Debian and Ubuntu")
    native = run(["dpkg", "--print-architecture"]).strip()
    if native not in ("amd64", "arm64"):
        raise Unsupported(f"releases can be fetched for amd64 and arm64, not for {native}")
    return native


def missing_program() -> str:
    """The first program of apt and dpkg that this system lacks; empty if it can fetch packages."""
    return next((program for program in PROGRAMS if not shutil.which(program)), "")


def without_packages(name: str) -> str:
    """What to do about a release on a system that cannot fetch packages: use a tarball or an image."""
    return (
        f"use a vendor's tarball with --db-release {name}=TARBALL, or an image with --db-provisioner container "
        f"--db-image {name}=IMAGE"
    )


def install(package: str, elsewhere: str) -> str:
    """How to install a package of Debian and Ubuntu. elsewhere: its name on systems without apt."""
    return f"install the package {elsewhere}" if missing_program() else f"apt-get install {package}"


def run(command: Sequence[str], *, seconds: float = 10 * _MINUTES, **environment: str) -> str:
    """The standard output of a command, run in the C locale. ``seconds``: its timeout. Raises CommandFailed."""
    variables = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        begun = subprocess.Popen(
            command, stdin=nothing, stdout=pipe, stderr=pipe, text=True, errors="replace", env=variables,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:  # a program of another architecture, or in a directory without the right to execute
        raise CommandFailed(command, 127, stderr=f"{error.strerror}: {error.filename}") from None
    with begun as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException as error:
            # Otherwise programs of apt would keep writing into directories that we remove.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise CommandFailed(command, None, seconds=seconds) from error
            raise
    if process.returncode:
        raise CommandFailed(command, process.returncode, output, errors)
    return output


class PrivateApt:
    """apt with its own lists, cache, sources and dpkg status. wanted: packages that it fetches in any case."""

    def __init__(self, directory: Path, native: str, wanted: Sequence[str] = ()) -> None:
        self.directory = directory
        self._native = native
        self._settings = directory / "apt.conf"
        for part in ("lists/partial", "archives/partial", "none/partial", "sources", "temporary"):
            (directory / part).mkdir(parents=True)
        installed = [name for name in NOT_FETCHED if name not in wanted]
        (directory / "status").write_text("".join(status_stanza(name, native) for name in installed))
        (directory / "preferences").write_text(preferences.DISTRIBUTIONS)
        self._settings.write_text("\n".join([*host_settings(), *self._own_settings(native)]) + "\n")

    def _own_settings(self, native: str) -> list[str]:
        paths = {
            "Dir::State": ".", "Dir::State::status": "status", "Dir::State::lists": "lists", "Dir::Cache": ".",
            "Dir::Cache::archives": "archives", "Dir::Etc::sourceparts": "sources",
            "Dir::Etc::preferences": "preferences",
        }  # fmt: skip
        values = {
            "Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::parts": "/dev/null", "Dir::Etc::main": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null", "Acquire::GzipIndexes": "true",
            "APT::Architecture": native, "APT::Architectures": native, "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root", "APT::Update::Error-Mode": "any", "Acquire::Languages": "none",
            "Acquire::http::Timeout": "30", "Acquire::https::Timeout": "30", "Acquire::Retries": "1",
            "Debug::NoLocking": "true",
        }  # fmt: skip
        absolute = {key: str((self.directory / part).resolve()) for key, part in paths.items()}
        return [f'{key} "{value}";' for key, value in {**absolute, **values}.items()]

    def _apt(self, *arguments: str) -> str:
        return self._run("apt-get", "-q", *arguments)

    def _run(self, *command: str) -> str:
        """The output of a program of apt. Killed, apt leaves files and key rings in TMPDIR, so this is ours too."""
        return run(command, APT_CONFIG=str(self._settings), TMPDIR=str((self.directory / "temporary").resolve()))

    def update(self, entries: Sequence[AptEntry]) -> list[str]:
        """Read the package lists of the entries. Returns remarks for the user. Raises ProvisionError.

        If a Release file is out of date but not too old, we use the mirror and add a remark.
        """
        stanzas = "\n".join(str(entry) for entry in entries)
        (self.directory / "sources" / "own.sources").write_text(stanzas)
        try:
            self._apt("update")
        except CommandFailed as error:
            remarks = out_of_date(error.stderr)
            if not remarks:
                raise update_error(error, entries) from error
        else:
            self._check_architectures(entries)
            return []
        try:
            self._apt("update", "-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Check-Date=false")
        except CommandFailed as error:
            raise update_error(error, entries) from error
        self._check_architectures(entries)
        return remarks

    def prefer(self, text: str) -> None:
        """Put stanzas of preferences before the others; of several that match, apt uses the first."""
        file = self.directory / "preferences"
        file.write_text(text + file.read_text())

    def versions(self, package: str) -> list[str]:
        """The versions of a package in the lists that were read, newest first; empty without the package."""
        text = self._run("apt-cache", "madison", package)
        return list(dict.fromkeys(re.findall(rf"^\s*{re.escape(package)} \|\s+(\S+) \|", text, re.MULTILINE)))

    def _check_architectures(self, entries: Sequence[AptEntry]) -> None:
        """Raise ProvisionError for a repository of a vendor without packages for this machine."""
        for entry in entries:
            name = f"{re.sub(r'^[a-z+]+:/*', '', entry.uri).strip('/').replace('/', '_')}_dists_{entry.suite}_"
            files = [
                path
                for path in (self.directory / "lists").glob("*Release")
                if unquote(path.name).strip("_").startswith(name)
            ]
            listed = [re.search(r"^Architectures: (.*)$", path.read_text(), re.MULTILINE) for path in files]
            known = {one for match in listed if match for one in match[1].split()}
            if entry.repository and known and not known & {self._native, "all"}:
                raise ProvisionError(
                    f"{entry.place} has packages for {' and '.join(sorted(known))}, and this machine is {self._native}"
                )

    def plan(self, packages: Sequence[str]) -> list[Package]:
        """The packages with all their dependencies. Raises ProvisionError if the suite lacks one of them."""
        try:
            # With an empty archive directory, because apt does not list packages that it has already downloaded.
            empty = f"Dir::Cache::archives={self.directory.resolve() / 'none'}"
            text = self._apt("install", "--yes", "--print-uris", "-o", empty, *packages)
        except CommandFailed as error:
            raise ProvisionError(f"apt cannot resolve {' '.join(packages)}: {_reason(error)}") from error
        return parse_packages(text)

    def download(self, names: Sequence[str], packages: Sequence[Package], progress: Report) -> list[Path]:
        """Download the packages; apt verifies them. Returns their files. Reports each quarter to ``progress``."""
        archives = self.directory / "archives"
        total = sum(package.size for package in packages)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            work = pool.submit(self._apt, "install", "--yes", "--download-only", *names)
            quarters = 0
            while not concurrent.futures.wait([work], timeout=0.2).done:
                arrived = sum(_bytes_on_disk(archives, package) for package in packages)
                if total and arrived * 4 // total > quarters:
                    quarters = arrived * 4 // total
                    progress(f".. {formatting.size(arrived)} of {formatting.size(total)}")
        try:
            work.result()
        except CommandFailed as error:
            raise ProvisionError(f"apt cannot download {' '.join(names)}: {_reason(error)}") from error
        return [package.path(archives) for package in packages]


def parse_packages(text: str) -> list[Package]:
    """The packages in the output of ``apt-get install --print-uris``."""
    lines = re.findall(r"^'(\S+)' (\S+?)_(\S+?)_(\S+\.deb) (\d+)", text, re.MULTILINE)
    return [
        Package(name, unquote(version), f"{name}_{version}_{rest}", int(size), uri)
        for uri, name, version, rest, size in lines
    ]


def unpack(files: Sequence[Path], into: Path) -> None:
    """Unpack packages in parallel, without their maintainer scripts and their documentation."""
    into.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda file: run(["dpkg-deb", "-x", str(file), str(into)]), files))
    for part in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "var"):
        shutil.rmtree(into / part, ignore_errors=True)


def _bytes_on_disk(archives: Path, package: Package) -> int:
    for path in (package.path(archives), archives / "partial" / package.file):
        with contextlib.suppress(FileNotFoundError):
            return path.stat().st_size
    return 0


def status_stanza(name: str, native: str) -> str:
    """A dpkg status stanza that marks a package as installed, so that apt does not fetch it."""
    return (
        f"Package: {name}\nStatus: install ok installed\nPriority: optional\nSection: misc\nMaintainer: none\n"
        f"Architecture: {native}\nMulti-Arch: allowed\nVersion: 999:0\nDescription: not fetched\n\n"
    )


def host_settings() -> list[str]:
    """The lines of this machine's apt configuration with proxies and other settings for its mirrors."""
    return [line for line in run(["apt-config", "dump"]).splitlines() if _HOST_SETTINGS.match(line)]


def out_of_date(output: str) -> list[str]:
    """A remark for each Release file that ``output`` of apt reports as out of date.

    Raises ProvisionError for a file that is older than the user allows, and ConfigError if the limit is no number.
    """
    remarks, limit = [], max_age()
    for file, how, duration in dict.fromkeys(_OUT_OF_DATE.findall(output)):
        age = sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)(d|h|min|s)", duration))
        days = formatting.quantity(round(age), "day")
        if age > limit:
            allowed = formatting.quantity(limit, "day")
            raise ProvisionError(
                f"the mirror's file {file} has been {how} for {days}, and {MAX_AGE_VARIABLE} allows {allowed}: an "
                f"old file may hide newer packages. Choose another mirror with DBCLUSTER_MIRROR=URL, or accept this "
                f"one with {MAX_AGE_VARIABLE}={int(age) + 1}"
            )
        aged = f"{file} (out of date for {days})"
        remarks.append(f"the mirror's file {aged} is {how}; its signature is valid, so we use it")
    return remarks


def max_age() -> float:
    """How many days a Release file may be out of date: DBCLUSTER_MAX_AGE. Raises ConfigError if it is not a number."""
    text = os.environ.get(MAX_AGE_VARIABLE, "")
    try:
        days = float(text) if text else MAX_AGE_DAYS
    except ValueError:
        days = -1.0
    if not days >= 0:
        raise ConfigError(f"{MAX_AGE_VARIABLE}={text}: must be a number of days, 0 or more; default {MAX_AGE_DAYS:g}")
    return days


# Messages of gpgv, or of sqv in newer versions of apt, about a signature.
_CHANGED = re.compile(r"BADSIG|has been manipulated|[Bb]ad signature")
_UNKNOWN_KEY = re.compile(r"NO_PUBKEY|Missing key")
_EXPIRED_KEY = re.compile(r"EXPKEYSIG|REVKEYSIG|KEYEXPIRED|EXPSIG")


def update_error(error: CommandFailed, entries: Sequence[AptEntry]) -> ProvisionError:
    """The error for package lists that apt could not read, with the fault of a signature and the remedy."""
    entry = failed_entry(error.stderr, entries)
    if fault := signature_fault(error.stderr, entry):
        return ProvisionError(f"{fault}. apt says: {_reason(error)}")
    return ProvisionError(f"cannot read {entry.place}: {_reason(error)}")


def failed_entry(output: str, entries: Sequence[AptEntry]) -> AptEntry:
    """The first entry that an error in ``output`` of apt names; the first entry if it names none."""
    text = "\n".join(line for line in output.splitlines() if line.startswith(("E:", "W:", "Err:")))
    named = (
        one for one in entries if f"{one.uri.rstrip('/')} {one.suite} " in text or f"{one.uri.rstrip('/')}/" in text
    )
    return next(named, entries[0])


def signature_fault(output: str, entry: AptEntry) -> str:
    """What is wrong with the signature of a suite, and what to do; empty if ``output`` names no such fault."""
    place = entry.place
    if entry.repository:
        return _vendor_fault(output, entry, entry.repository)
    package = {"Debian": "debian-archive-keyring", "Ubuntu": "ubuntu-keyring"}.get(
        family(entry.base), "the keyring package of that mirror"
    )
    if _CHANGED.search(output):
        return (
            f"the signature of {place} is bad: the file was changed after it was signed, so we fetch nothing from this "
            "mirror; choose another one with DBCLUSTER_MIRROR=URL"
        )
    if _UNKNOWN_KEY.search(output):
        return (
            f"the key that signed {place} is not on this system, or not trusted for it; if you trust the mirror, "
            f"install {package} (apt-get install {package})"
        )
    if _EXPIRED_KEY.search(output):
        return (
            f"the key that signed {place} has expired or was revoked; a newer {package} may have its successor "
            f"(apt-get install {package})"
        )
    return f"{place} is not signed, so we fetch nothing from this mirror" if "is not signed" in output else ""


def _vendor_fault(output: str, entry: AptEntry, repository: Repository) -> str:
    """The fault of a vendor's signature. The key is ours, or that of a line in the apt sources of this system."""
    place, vendor, ours = entry.place, repository.vendor, sources.has_our_key(entry)
    key = f"our key of {vendor}, {repository.fingerprint}" if ours else "the key that its line names"
    other = f"add a line with the present key of {vendor} to the apt sources of this system"
    help_ = f"update pytest-dbcluster, or {other}" if ours else f"{other}, in place of the present line"
    if _CHANGED.search(output):
        return f"the signature of {place} is bad: the file was changed after {vendor} signed it, so we fetch nothing"
    if _EXPIRED_KEY.search(output):
        return f"the key that signed {place} has expired or was revoked; {help_}"
    if _UNKNOWN_KEY.search(output):
        return f"{place} is not signed with {key}; {help_}"
    return f"{place} is not signed, so we fetch nothing from it" if "is not signed" in output else ""


def _reason(error: CommandFailed) -> str:
    """The messages of apt, errors before warnings, each line once."""
    lines = [line.strip() for line in error.stderr.splitlines() if line.startswith(("E:", "W:", "Err:"))]
    text = "; ".join(dict.fromkeys(sorted(lines, key=lambda line: line[:2] != "E:")))
    return (text or str(error))[:600]
