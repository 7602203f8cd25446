"""Sources for apt: the entries of this machine, and other suites of the same mirrors."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases.catalogue import ALIASES, DEBIAN, UBUNTU, WITHOUT_SECURITY, Offer, Origin

APT = Path("/etc/apt")
KEYRINGS = Path("/usr/share/keyrings")
_FAMILIES = {"Debian": (*DEBIAN, *ALIASES), "Ubuntu": UBUNTU}
_ARCHIVE = re.compile(r"/(debian|ubuntu|ubuntu-ports)/?$|^mirror\+file:")
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

    @property
    def base(self) -> str:
        """The main suite of this suite: ``bookworm`` for ``bookworm-security`` and for ``bookworm``."""
        return re.sub(r"-(updates|security)$", "", self.suite)

    def __str__(self) -> str:
        """The entry as a deb822 stanza."""
        lines = ["Types: deb", f"URIs: {self.uri}", f"Suites: {self.suite}"]
        lines += [f"Components: {' '.join(self.components)}"] if self.components else []
        return "\n".join([*lines, *(f"{key}: {value}" for key, value in self.options)]) + "\n"


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


def host_entries(apt: Path = APT) -> list[AptEntry]:
    """The enabled entries of this machine's apt configuration, in both formats (one-line and deb822)."""
    known: list[AptEntry] = []
    parts = sorted((apt / "sources.list.d").glob("*")) if (apt / "sources.list.d").is_dir() else []
    for path in [apt / "sources.list", *parts]:
        if path.suffix in (".list", ".sources") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
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
    """The sources of an offer, best first: suites of this machine, then other suites of its mirrors.

    ``mirror``: a URL that replaces the Debian mirror of this machine. Raises ConfigError if it is not a URL.
    """
    if mirror and not re.fullmatch(r"[a-z+]+:/\S+", mirror):
        raise ConfigError(f"the mirror {mirror!r} is not a URL of a Debian archive, such as http://HOST/debian")
    own: list[Candidate] = []
    further: list[Candidate] = []
    for origin in offer.origins:
        home = family(origin.suite)
        named = mirror if home == "Debian" else None
        known = [entry for entry in entries if set(_COMPONENTS.get(home, ())) & set(entry.components)]
        mine = [entry for entry in known if entry.base == origin.suite]
        if mine and not named:
            own.append(_own_candidate(origin, mine))
        else:
            # The suite of this machine comes first, also on a named mirror.
            (own if mine else further).extend(
                _other_candidates(
                    origin, [entry for entry in known if family(entry.base) == home], home, named, keyrings
                )
            )
    found = own + further
    return sorted(found, key=lambda candidate: offer.origins.index(candidate.origin)) if offer.in_order else found


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
