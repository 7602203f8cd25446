"""Where apt may fetch a vendor's release from: the vendor, its archive, and lines of this system's apt sources."""

from __future__ import annotations

import pytest

from pytest_dbcluster.releases import catalogue, sources
from pytest_dbcluster.releases.sources import AptEntry
from pytest_dbcluster.releases.vendors.repository import ARCHIVES, REPOSITORIES
from tests.support.facts import missing

MIRROR = "http://mirror.example/debian"
BOOKWORM = [AptEntry(MIRROR, "bookworm", ("main",)), AptEntry(MIRROR, "bookworm-security", ("main",))]
NOBLE = [AptEntry("http://mirror.example/ubuntu", "noble", ("main", "universe"))]


def candidates(name, entries):
    """The candidates of a release, such as mysql:8.4."""
    return sources.candidates(catalogue.offer(*name.split(":")), entries)


def places(candidate):
    """Suite and address of each entry."""
    return [(entry.suite, entry.uri) for entry in (*candidate.entries, *candidate.optional)]


def test_a_vendors_release_comes_with_the_suite_of_this_system():
    """The vendor's entry is checked with its key; dependencies come from the distribution."""
    first = candidates("mysql:8.4", BOOKWORM)[0]

    assert places(first) == [
        ("bookworm", "http://repo.mysql.com/apt/debian"),
        ("bookworm", MIRROR),
        ("bookworm-security", MIRROR),
    ]
    assert first.entries[0].components == ("mysql-8.4-lts", "mysql-tools")
    assert first.origin.extras == ("mysql-router-community",)
    assert dict(first.entries[0].options) == {"Signed-By": str(REPOSITORIES["mysql", "8.4"].key)}
    assert missing(first.where, "bookworm", "MySQL's repository mysql-8.4-lts", "repo.mysql.com") == []


def test_another_suite_of_the_vendor_comes_with_the_same_suite_of_the_distribution():
    """Percona has no trixie, so a system with trixie gets bookworm from both."""
    entries = [AptEntry(MIRROR, "trixie", ("main",))]

    first = candidates("percona:8.4", entries)[0]

    assert places(first) == [("bookworm", "http://repo.percona.com/ps-84-lts/apt"), ("bookworm", MIRROR)]


def test_ubuntu_gets_the_vendors_packages_for_ubuntu():
    """The address has the family in it; a system without a Debian mirror asks for no suite of Debian."""
    found = candidates("mariadb:11.4", NOBLE)

    assert {candidate.origin.suite for candidate in found} == {"noble", "jammy"}
    assert places(found[0])[0] == ("noble", "https://deb.mariadb.org/11.4/ubuntu")


def test_ubuntu_has_mysql_8_0_itself():
    """Its own suite is asked before the vendor; Debian has no MySQL 8."""
    first, *_ = candidates("mysql:8.0", NOBLE)

    assert (first.title, first.origin.packages[0], first.entries[0].suite) == ("", "mysql-server-8.0", "noble")
    assert {one.title for one in candidates("mysql:8.0", BOOKWORM)} == {"MySQL's repository mysql-8.0"}


def test_a_vendor_is_asked_after_the_distributions():
    """A distribution has its version for years; what a suite has no more is looked for at the vendor."""
    titles = [candidate.title for candidate in candidates("mariadb:11.8", BOOKWORM)]

    assert titles == ["", *["MariaDB's repository 11.8"] * 2]


def test_an_exact_version_comes_from_the_archive_first():
    """Then from the sources of its series, which may have this version."""
    found = candidates("mariadb:10.11.6", BOOKWORM)

    assert list(dict.fromkeys(candidate.title for candidate in found)) == [
        "MariaDB's archive",
        "",
        "MariaDB's repository 10.11",
    ]
    assert places(found[0])[0] == ("bookworm", "https://archive.mariadb.org/mariadb-10.11.6/repo/debian")


def test_an_archive_has_versions_of_series_without_a_row():
    """MariaDB 10.7 is in no row; its patch releases are in the archive. MySQL's archive has no packages for apt."""
    assert {candidate.title for candidate in candidates("mariadb:10.7.3", BOOKWORM)} == {"MariaDB's archive"}
    assert candidates("mysql:8.2.0", BOOKWORM) == []
    assert catalogue.offer("percona", "8.1.0") is None
    assert catalogue.offer("mariadb", "10.7") is None


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("mysql:8.4", AptEntry("http://repo.mysql.com/apt/debian/", "bookworm", ("mysql-8.4-lts", "mysql-tools"))),
        ("mysql:8.4", AptEntry("http://corp.example/mysql/debian", "bookworm", ("mysql-8.4-lts",))),
        ("mariadb:11.4", AptEntry("https://corp.example/mariadb/repo/11.4/debian", "bookworm", ("main",))),
        ("percona:8.4", AptEntry("http://repo.percona.com/ps-84-lts/apt", "bookworm", ("main",))),
    ],
)
def test_a_line_of_this_systems_sources_is_used_as_it_is(name, line):
    """Its address and its key are the user's; our key is not needed, and the line is no source of dependencies."""
    options = (("Signed-By", "/usr/share/keyrings/own.gpg"),)
    entries = [*BOOKWORM, AptEntry(line.uri, line.suite, line.components, options)]

    first = candidates(name, entries)[0]

    assert [entry.uri for entry in first.entries] == [line.uri, MIRROR]
    assert first.entries[0].components == line.components
    assert first.entries[0].options == options
    assert line.uri not in [entry.uri for entry in first.optional]
    assert not sources.has_our_key(first.entries[0])
    assert first.where.endswith(f"{line.uri} of this system")


@pytest.mark.parametrize(
    "line",
    [
        AptEntry("http://repo.mysql.com/apt/debian", "bookworm", ("mysql-8.0",)),
        AptEntry("http://repo.mysql.com/apt/debian", "trixie", ("mysql-8.4-lts",)),
        AptEntry("http://mirror.example/debian", "bookworm", ("mysql-8.4-lts",)),
    ],
)
def test_a_line_of_another_series_suite_or_vendor_is_not_used(line):
    """The vendor's own address is asked then."""
    first = candidates("mysql:8.4", [*BOOKWORM, line])[0]

    assert first.entries[0].uri == "http://repo.mysql.com/apt/debian"
    assert first.entries[0].suite == "bookworm"
    assert sources.has_our_key(first.entries[0])


def test_a_line_is_no_line_of_the_archive():
    """It may have another version than the exact one that was asked for."""
    line = AptEntry("https://archive.mariadb.org/mariadb-11.4.4/repo/debian", "bookworm", ("main",))

    first = candidates("mariadb:11.4.5", [*BOOKWORM, line])[0]

    assert first.entries[0].uri == ARCHIVES["mariadb"].address_for("Debian", "11.4.5")
    assert line.uri not in [uri for _, uri in places(first)]


def test_only_sources_of_debian_were_tried():
    """Every source of a vendor, every suite of Ubuntu and the snapshot archive are untried."""
    tried = {(offer.name, origin.suite) for offer in catalogue.OFFERS for origin in offer.origins if origin.is_tried}

    assert {suite for _, suite in tried} == {"bullseye", "bookworm", "trixie", "sid"}
    assert {name for name, _ in tried if ":" in name} == {"mariadb:10.5", "mariadb:10.11", "mariadb:11.8", "mysql:9.7"}


@pytest.mark.parametrize("offer", catalogue.OFFERS, ids=lambda offer: offer.name)
def test_a_row_of_a_server_is_complete(offer):
    """Packages, programs and suppliers for each; a licence for each server."""
    assert all(origin.packages for origin in offer.origins)
    assert offer.programs
    assert offer.suppliers
    assert bool(offer.version) == (offer.product in catalogue.LICENCES)
