"""Sources for apt: the entries of this machine, other suites of the same mirrors, and repositories of vendors."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases.catalogue import (
    ALIASES,
    DEBIAN,
    UBUNTU,
    WITHOUT_SECURITY,
    Offer,
    Origin,
    is_exact,
)
from pytest_dbcluster.releases.vendors import signing_key
from pytest_dbcluster.releases.vendors.repository import Repository

APT = Path("/etc/apt")
KEYRINGS = Path("/usr/share/keyrings")
_FAMILIES = {"Debian": (*DEBIAN, *ALIASES), "Ubuntu": UBUNTU}
_ARCHIVE = re.compile(r"/(debian|ubuntu|ubuntu-ports)/?$|^mirror\+file:")
_SNAPSHOT_URL = "https://snapshot.debian.org/archive/debian"
_COMPONENTS = {"Debian": ("main",), "Ubuntu": ("main", "universe")}


@dataclasses.dataclass(frozen=True)
class AptEntry:
    """One suite of one mirror."""

    uri: str
    """The address of the mirror."""

    suite: str
    """The suite, such as bookworm-security."""

    components: tuple[str, ...]
    """The components, such as main; empty for a flat repository."""

    options: tuple[tuple[str, str], ...] = ()
    """Names in deb822 format, such as Signed-By, and their values."""

    repository: Repository | None = None
    """The vendor's repository that it is an entry of; None for a distribution."""

    @property
    def place(self) -> str:
        """The suite and its mirror, as text for messages; for a repository of a vendor with its title."""
        return f"{self.suite} of {f'{self.repository.title}, ' if self.repository else ''}{self.uri}"

    @property
    def base(self) -> str:
        """The main suite of this suite: ``bookworm`` for ``bookworm-security`` and for ``bookworm``."""
        return re.sub(r"-(updates|security)$", "", self.suite)

    def __str__(self) -> str:
        """The entry as a deb822 stanza."""
        lines = ["Types: deb", f"URIs: {self.uri}", f"Suites: {self.suite}"]
        lines += [f"Components: {' '.join(self.components)}"] if self.components else []
        return "\n".join([*lines, *(f"{key}: {_field(key, value)}" for key, value in self.options)]) + "\n"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """An origin and the entries to fetch it from."""

    origin: Origin
    """The suite and its packages."""

    entries: tuple[AptEntry, ...]
    """Entries that must be complete on the mirror."""

    optional: tuple[AptEntry, ...] = ()
    """Entries that may be missing on the mirror."""

    where: str = ""
    """The source, as text for messages."""

    @property
    def title(self) -> str:
        """The title of the vendor's repository; empty for a distribution."""
        return self.origin.repository.title if self.origin.repository else ""

    def refusal(self, architecture: str) -> str:
        """Why a machine of this architecture cannot use it; empty if it can, or if we do not know."""
        repository = self.origin.repository
        return repository.refusal(family(self.origin.suite), architecture) if repository else ""


def _field(key: str, value: str) -> str:
    """The value of a field. It separates files by blanks, so a file of keys whose path has some becomes their text."""
    if key != "Signed-By" or "\n" in value or len(value.split()) == 1 or not Path(value).is_file():
        return value  # a key itself, one file, or several
    lines = Path(value).read_text(encoding="ascii").strip().splitlines()
    return "".join(f"\n {line or '.'}" for line in lines)


def host_entries(apt: Path = APT) -> list[AptEntry]:
    """The enabled entries of this machine's apt configuration, in both formats (one-line and deb822)."""
    known: list[AptEntry] = []
    parts = sorted((apt / "sources.list.d").glob("*")) if (apt / "sources.list.d").is_dir() else []
    for path in [apt / "sources.list", *parts]:
        if path.suffix in (".list", ".sources") and path.is_file():
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:  # it may hold a password, and only root may read it
                continue
            known += _one_line(text) if path.suffix == ".list" else _deb822(text)
    return [entry for entry in known if not entry.uri.startswith("cdrom:")]


def _one_line(text: str) -> Iterable[AptEntry]:
    for line in text.splitlines():
        match = re.fullmatch(r"deb(?:\s+\[(.*?)\])?\s+(\S+)\s+(\S+)((?:\s+[^\s#]+)*)\s*(?:#.*)?", line.strip())
        if match:
            options = [pair.split("=", 1) for pair in (match[1] or "").split() if "=" in pair]
            named = tuple((key.title(), value.replace(",", " ")) for key, value in options)
            yield AptEntry(match[2], match[3], tuple(match[4].split()), _signature_options(named))


def _deb822(text: str) -> Iterable[AptEntry]:
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        joined = re.sub(r"\n(?=[ \t])", "\0", "\n".join(lines))
        pairs = [line.split(":", 1) for line in joined.splitlines() if ":" in line]
        fields = {key.strip().title(): value.replace("\0", "\n").strip(" \t") for key, value in pairs}
        if "deb" not in fields.get("Types", "").split() or fields.get("Enabled", "yes").lower() in (
            "no",
            "false",
        ):
            continue
        components, options = tuple(fields.get("Components", "").split()), _signature_options(tuple(fields.items()))
        for uri in fields.get("Uris", "").split():
            for suite in fields.get("Suites", "").split():
                yield AptEntry(uri, suite, components, options)


def _signature_options(options: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in options if key in ("Signed-By", "Trusted"))


def family(suite: str) -> str:
    """``Debian`` or ``Ubuntu``; empty for other suites."""
    return next((name for name, suites in _FAMILIES.items() if suite in suites), "")


def candidates(
    offer: Offer, entries: list[AptEntry], mirror: str | None = None, keyrings: Path = KEYRINGS
) -> list[Candidate]:
    """The sources of an offer, best first: one supplier after the other, in the order of the offer's origins.

    Of a supplier, the suite of this machine comes first, then other suites of its mirrors. ``mirror``: a URL that
    replaces the Debian mirror of this machine. Raises ConfigError if it is not a URL.
    """
    if mirror and not re.fullmatch(r"[a-z+]+:/\S+", mirror):
        raise ConfigError(f"the mirror {mirror!r} is not a URL of a Debian archive, such as http://HOST/debian")
    found: list[Candidate] = []
    for repository, snapshot in dict.fromkeys((origin.repository, origin.snapshot) for origin in offer.origins):
        if repository and repository.is_archive and not is_exact(offer.version):
            continue
        own: list[Candidate] = []
        further: list[Candidate] = []
        for origin in (one for one in offer.origins if (one.repository, one.snapshot) == (repository, snapshot)):
            mine, made = _of_distribution(origin, entries, mirror, keyrings)
            (own if mine else further).extend(made)
        found += own + further
    found = [_with_vendor(candidate, offer.version, entries) for candidate in found]
    return sorted(found, key=lambda candidate: offer.origins.index(candidate.origin)) if offer.in_order else found


def _of_distribution(
    origin: Origin, entries: Sequence[AptEntry], mirror: str | None, keyrings: Path
) -> tuple[bool, list[Candidate]]:
    """Whether this machine has the suite of the origin, and the sources of the distribution for this suite."""
    home = family(origin.suite)
    if origin.snapshot:
        archive = AptEntry(f"{_SNAPSHOT_URL}/{origin.snapshot}", origin.suite, ("main",))
        entry = _other_suite(archive, origin.suite, home, keyrings)
        return False, [Candidate(origin, (entry,), (), f"{origin.suite} of Debian's snapshot archive, {entry.uri}")]
    named = mirror if home == "Debian" else None
    known = [entry for entry in entries if set(_COMPONENTS.get(home, ())) & set(entry.components)]
    if origin.repository:
        known = [entry for entry in known if not _is_of_vendor(origin.repository, entry)]
    mine = [entry for entry in known if entry.base == origin.suite]
    if mine and not named:
        return True, [_own_candidate(origin, mine)]
    # The suite of this machine comes first, also on a named mirror.
    others = [entry for entry in known if family(entry.base) == home]
    return bool(mine), _other_candidates(origin, others, home, named, keyrings)


def _with_vendor(candidate: Candidate, version: str, entries: Sequence[AptEntry]) -> Candidate:
    """The candidate with the vendor's entry in front. Its dependencies come from the distribution.

    A line of this machine's apt sources is used as it is, with the key that it names.
    """
    repository, suite = candidate.origin.repository, candidate.origin.suite
    if repository is None:
        return candidate
    line = next((one for one in entries if one.suite == suite and _is_line_of(repository, one)), None)
    components = tuple(filter(None, (repository.component, repository.tools)))
    if line:
        chosen = tuple(one for one in components if one in line.components)
        entry = dataclasses.replace(line, components=chosen, repository=repository)
    else:
        address = repository.address_for(family(suite), version)
        signed_by = ("Signed-By", str(repository.key))
        entry = AptEntry(address, suite, components, (signed_by,), repository)
    where = f"{entry.place}{' of this system' if line else ''}"
    return dataclasses.replace(candidate, entries=(entry, *candidate.entries), where=where)


def _is_line_of(repository: Repository, entry: AptEntry) -> bool:
    """Whether an entry is one of this repository, at the vendor's address or on a mirror."""
    text = f"{entry.uri.rstrip('/')}/ {' '.join(entry.components)} "
    return not repository.is_archive and _is_of_vendor(repository, entry) and repository.mark in text


def _is_of_vendor(repository: Repository, entry: AptEntry) -> bool:
    return repository.vendor.lower() in entry.uri.lower()


def has_our_key(entry: AptEntry) -> bool:
    """Whether an entry of a vendor is checked with the key that we ship, not with one of this system."""
    return entry.repository is not None and dict(entry.options).get("Signed-By") == str(entry.repository.key)


def check_keys(candidate: Candidate) -> None:
    """Raise ProvisionError if a key that we ship is not the pinned one."""
    for entry in candidate.entries:
        if entry.repository and has_our_key(entry):
            signing_key.check(entry.repository)


def _own_candidate(origin: Origin, entries: Sequence[AptEntry]) -> Candidate:
    """The machine's entries for its own suite. Entries for updates and for vendors' archives are optional."""
    suite = [entry for entry in entries if entry.suite == origin.suite] or list(entries)
    first = [entry for entry in suite if _ARCHIVE.search(entry.uri)] or suite
    rest = tuple(entry for entry in entries if entry not in first)
    return Candidate(origin, tuple(first), rest, f"{origin.suite} of this system's apt sources")


def _other_candidates(
    origin: Origin, known: Sequence[AptEntry], home: str, named: str | None, keyrings: Path
) -> list[Candidate]:
    """Another suite, on the named mirror or on the mirror of this machine."""
    if named:
        mains, securities = [AptEntry(named, origin.suite, ("main",))], []
    else:
        mains = [entry for entry in known if entry.suite == entry.base]
        has = origin.suite not in WITHOUT_SECURITY
        securities = [entry for entry in known if has and entry.suite.endswith("-security")]
    mains.sort(key=lambda entry: not _ARCHIVE.search(entry.uri))
    if not mains:
        return []
    first, *rest = [_other_suite(entry, origin.suite, home, keyrings) for entry in (*mains[:1], *securities[:1])]
    where = f"{origin.suite} of {'the mirror ' + named if named else 'the same mirror as this system'}"
    return [Candidate(origin, (first,), tuple(rest), where)]


def _other_suite(entry: AptEntry, suite: str, home: str, keyrings: Path) -> AptEntry:
    """The entry of another suite on the same mirror. Other keys signed this suite, so we add all known keyrings."""
    options = dict(entry.options)
    given = options.get("Signed-By", "").strip()
    known = sorted(str(path) for path in keyrings.glob(f"{home.lower()}-archive-keyring.[gp]*[gp]"))
    files = dict.fromkeys([*(given.split() if given.startswith("/") else []), *known])
    if files:
        options["Signed-By"] = " ".join(files)
    wanted = f"{suite}-security" if entry.suite.endswith("-security") else suite
    return AptEntry(entry.uri, wanted, _COMPONENTS[home], tuple(options.items()))
