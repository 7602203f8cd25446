"""Where apt may fetch from, read from the configurations of the systems that are supported."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases import catalogue, sources
from pytest_dbcluster.releases.sources import AptEntry
from tests.support.facts import missing

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

DEBIAN_12 = """\
# the installer wrote this
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main non-free-firmware
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""

UBUNTU_24 = """\
Types: deb
URIs: http://mirror.example/ubuntu/
Suites: noble noble-updates noble-backports
Components: main restricted universe multiverse
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg
"""

UBUNTU_22 = """\
deb http://mirror.example/ubuntu jammy main restricted
# deb-src http://mirror.example/ubuntu jammy main restricted
deb http://mirror.example/ubuntu jammy universe
deb http://mirror.example/ubuntu jammy-security main universe # late
"""


@pytest.fixture
def apt(tmp_path):
    """A host's /etc/apt, with one function that writes a file of it."""
    (tmp_path / "sources.list.d").mkdir()

    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path

    return write


@pytest.fixture
def keyrings(tmp_path):
    """A host's /usr/share/keyrings with Debian's keys."""
    directory = tmp_path / "keyrings"
    directory.mkdir()
    (directory / "debian-archive-keyring.gpg").touch()
    (directory / "debian-archive-removed-keys.gpg").touch()
    return directory


def of_distributions(*arguments):
    """The candidates of an offer without those of vendors."""
    return [found for found in sources.candidates(*arguments) if not found.title]


def suites(candidate):
    """The suites that a candidate needs, and those that may be missing."""
    return [entry.suite for entry in candidate.entries], [entry.suite for entry in candidate.optional]


def entries(apt, text, name="sources.list.d/own.sources"):
    """The entries of a host whose configuration is this text."""
    return sources.host_entries(apt(name, text))


def test_deb822_sources_give_an_entry_for_each_suite(apt):
    """Debian 12 writes several suites into one stanza, and keeps the key's path in it."""
    found = entries(apt, DEBIAN_12)

    assert [entry.suite for entry in found] == ["bookworm", "bookworm-updates", "bookworm-security"]
    assert found[0] == AptEntry(
        "http://mirror.example/debian", "bookworm", ("main", "non-free-firmware"), (("Signed-By", KEYRING),)
    )


def test_one_line_sources_are_read_with_their_options(apt):
    """The old format carries options in brackets, and separates keyrings with commas."""
    text = "deb [arch=amd64 signed-by=/a.gpg,/b.gpg trusted=yes] https://mirror.example/debian trixie main contrib\n"

    (entry,) = entries(apt, text, "sources.list")

    assert entry.options == (("Signed-By", "/a.gpg /b.gpg"), ("Trusted", "yes"))
    assert (entry.suite, entry.components) == ("trixie", ("main", "contrib"))


def test_an_embedded_key_is_kept_whole(apt):
    """A key in the stanza itself keeps its lines, so apt can read it back."""
    key = "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----"
    key = key.replace("abc", "abc\n " + "\n ".join(["a" * 64] * 90))  # longer than a path may be
    text = f"Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n{key}\n"

    (entry,) = entries(apt, text)

    assert "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n" in str(entry)


def test_a_file_that_only_root_may_read_is_left_out(apt, monkeypatch):
    """It may hold the password of a mirror."""
    read = Path.read_text

    def refused(path, **given):
        if path.name == "secret.list":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, **given)

    monkeypatch.setattr(Path, "read_text", refused)
    place = apt("sources.list.d/own.sources", DEBIAN_12)
    (place / "sources.list.d" / "secret.list").touch()

    assert [entry.suite for entry in sources.host_entries(place)] == [
        "bookworm",
        "bookworm-updates",
        "bookworm-security",
    ]


def test_a_key_below_a_path_with_blanks_stands_in_the_entry(tmp_path):
    """The field separates files by blanks."""
    key = tmp_path / "my projects" / "key.asc"
    key.parent.mkdir()
    key.write_text("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----\n")
    entry = AptEntry("http://mirror.example", "bookworm", ("main",), (("Signed-By", str(key)),))

    assert str(entry).endswith(
        "\nSigned-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----\n"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list.d/off.sources", DEBIAN_12.replace("Suites:", "Enabled: no\nSuites:")),
        ("sources.list.d/src.sources", DEBIAN_12.replace("deb deb-src", "deb-src").partition("\n\n")[0]),
        ("sources.list.d/x.sources.disabled", DEBIAN_12),
        ("sources.list", "#deb http://mirror.example/debian bookworm main\n"),
        ("sources.list", "deb cdrom:[Debian]/ bookworm main\n"),
    ],
)  # fmt: skip
def test_what_is_switched_off_is_left_out(apt, name, text):
    """Disabled stanzas, source packages, other file names, comments and CDs are no sources."""
    assert entries(apt, text, name) == []


def test_debian_12_has_mariadb_10_11_itself(apt, keyrings):
    """The own suite comes first; its updates may fail without harm."""
    (found,) = of_distributions(catalogue.offer("mariadb", "10.11"), entries(apt, DEBIAN_12), None, keyrings)

    assert suites(found) == (["bookworm"], ["bookworm-updates", "bookworm-security"])
    assert missing(found.where, "bookworm", "this system's apt sources") == []


def test_debian_12_gets_mariadb_11_8_from_trixie_of_its_mirror(apt, keyrings):
    """A further suite comes from the same mirrors, and is checked against all of Debian's current keys."""
    (found,) = of_distributions(catalogue.offer("mariadb", "11.8"), entries(apt, DEBIAN_12), None, keyrings)

    assert suites(found) == (["trixie"], ["trixie-security"])
    assert found.entries[0].uri == "http://mirror.example/debian"
    assert found.optional[0].uri == "http://mirror.example/debian-security"
    assert dict(found.entries[0].options)["Signed-By"] == f"{KEYRING} {keyrings}/debian-archive-keyring.gpg"


def test_sid_is_not_asked_for_security_updates(apt, keyrings):
    """Debian's unstable suite has none of its own, so nothing is missing where a mirror has no sid-security."""
    found, archived = of_distributions(catalogue.offer("mysql", "9.7"), entries(apt, DEBIAN_12), None, keyrings)

    assert suites(found) == suites(archived) == (["sid"], [])


def test_what_sid_has_no_more_is_in_debians_snapshot_archive(apt, keyrings):
    """It is asked after the mirror, at a dated address and with Debian's keys; without a mirror it is asked too."""
    _, archived = of_distributions(catalogue.offer("mysql", "9.7"), entries(apt, DEBIAN_12), None, keyrings)
    (alone,) = of_distributions(catalogue.offer("mysql", "9.7"), [], None, keyrings)

    (entry,) = archived.entries
    assert entry.uri.startswith("https://snapshot.debian.org/archive/debian/2026")
    assert dict(entry.options) == {"Signed-By": f"{keyrings}/debian-archive-keyring.gpg"}
    assert missing(archived.where, "sid", "Debian's snapshot archive", entry.uri) == []
    assert alone == archived


def test_debian_13_has_mariadb_11_8_itself(apt, keyrings):
    """The table is read for whichever suite the host has."""
    text = DEBIAN_12.replace("bookworm", "trixie")

    (found,) = of_distributions(catalogue.offer("mariadb", "11.8"), entries(apt, text), None, keyrings)

    assert suites(found) == (["trixie"], ["trixie-updates", "trixie-security"])


@pytest.mark.parametrize(("text", "name"), [(UBUNTU_24, "sources.list.d/ubuntu.sources"), (UBUNTU_22, "sources.list")])
def test_ubuntu_has_its_own_versions(apt, keyrings, text, name):
    """Ubuntu 24.04 has 10.11, 22.04 has 10.6, and backports are not asked."""
    version = "10.11" if "noble" in text else "10.6"

    first = sources.candidates(catalogue.offer("mariadb", version), entries(apt, text, name), None, keyrings)[0]

    assert {entry.base for entry in (*first.entries, *first.optional)} == {"noble" if version == "10.11" else "jammy"}
    assert "universe" in {part for entry in first.entries for part in entry.components}


def test_ubuntu_without_a_debian_mirror_has_no_11_8(apt, keyrings):
    """Nothing is guessed: without a Debian mirror in the configuration only the vendor has it, for the host's suite."""
    found = sources.candidates(catalogue.offer("mariadb", "11.8"), entries(apt, UBUNTU_24), None, keyrings)

    assert {one.title for one in found} == {"MariaDB's repository 11.8"}
    assert found[0].origin.suite == "noble"


def test_a_named_mirror_gives_ubuntu_the_debian_suites(apt, keyrings):
    """The mirror that the user names has Debian's suites, signed with Debian's keys."""
    offer = catalogue.offer("mariadb", "11.8")

    (found,) = of_distributions(offer, entries(apt, UBUNTU_24), "http://other.example/debian", keyrings)

    assert missing(found.where, "trixie", "mirror http://other.example/debian") == []
    assert str(found.entries[0]) == (
        "Types: deb\nURIs: http://other.example/debian\nSuites: trixie\nComponents: main\n"
        f"Signed-By: {keyrings}/debian-archive-keyring.gpg\n"
    )


def test_a_named_mirror_stands_in_for_the_hosts_own(apt, keyrings):
    """On Debian the named mirror is used for the host's own suite too."""
    offer = catalogue.offer("mariadb", "10.11")

    (found,) = of_distributions(offer, entries(apt, DEBIAN_12), "http://other.example/debian", keyrings)

    assert [entry.uri for entry in found.entries] == ["http://other.example/debian"]
    assert found.optional == ()


def test_a_vendors_archive_for_the_same_suite_may_fail(apt, keyrings):
    """Somebody else's archive that uses Debian's suite names is not what a fetch depends on."""
    text = f"Types: deb\nURIs: http://vendor.example/repo\nSuites: bookworm\nComponents: main\n\n{DEBIAN_12}"

    (found,) = of_distributions(catalogue.offer("mariadb", "10.11"), entries(apt, text), None, keyrings)

    assert [entry.uri for entry in found.entries] == ["http://mirror.example/debian"]


def test_a_mirror_file_leads_to_further_suites(apt, keyrings):
    """Cloud images name their mirrors in a file, which serves every suite."""
    text = DEBIAN_12.replace("http://mirror.example/debian\n", "mirror+file:/etc/apt/mirrors/debian.list\n")

    (found,) = of_distributions(catalogue.offer("mariadb", "11.8"), entries(apt, text), None, keyrings)

    assert found.entries[0].uri == "mirror+file:/etc/apt/mirrors/debian.list"


@pytest.mark.parametrize("mirror", ["mirror.example", "http://a b/debian", "http:"])
def test_a_mirror_that_is_no_url_is_refused(mirror):
    """The user hears what a mirror looks like."""
    with pytest.raises(ConfigError, match="is not a URL of a Debian archive, such as http://HOST/debian"):
        sources.candidates(catalogue.offer("mariadb", "11.8"), [], mirror)


def test_tools_come_from_the_hosts_own_suite_first(apt, keyrings):
    """Every suite has sysbench; the host's own runs best on it."""
    found = sources.candidates(catalogue.offer("sysbench", ""), entries(apt, DEBIAN_12), None, keyrings)

    assert [candidate.origin.suite for candidate in found] == ["bookworm", "trixie", "bullseye"]


def test_a_named_mirror_keeps_the_hosts_suite_first(apt, keyrings):
    """With a mirror of the user's, a tool still comes from the suite that the host has."""
    offer = catalogue.offer("sysbench", "")

    found = sources.candidates(offer, entries(apt, DEBIAN_12), "http://other.example/debian", keyrings)

    assert [candidate.origin.suite for candidate in found] == ["bookworm", "trixie", "bullseye"]
