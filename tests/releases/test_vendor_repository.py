"""Fetching from a signed repository in a vendor's layout: what apt takes from it, and what we refuse."""

from __future__ import annotations

import copy
import dataclasses
import re
import shutil

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.releases import apt, fetched, sources
from pytest_dbcluster.releases.catalogue import Offer, Origin
from pytest_dbcluster.releases.sources import AptEntry
from pytest_dbcluster.releases.vendors.repository import REPOSITORIES
from tests.releases.test_apt import Archive
from tests.support.facts import missing
from tests.support.vendor_repository import SigningKey, VendorRepository

SERVER, CLIENT = PACKAGES = ("mysql-community-server-core", "mysql-community-client")
ROUTER, TOOLS = "mysql-router-community", "mysql-tools"
TITLE = "MySQL's repository mysql-8.4-lts"


@pytest.fixture(scope="module")
def gpg():
    """The program that signs."""
    return shutil.which("gpg") or pytest.skip("no gpg to sign with")


@pytest.fixture
def keys(tmp_path, gpg):
    """``keys(name)``: a signing key; all agents of gpg are gone afterwards."""
    made = []

    def key(name, **how):
        made.append(SigningKey(tmp_path / "keys" / name, **how))
        return made[-1]

    yield key
    for one in made:
        one.end()


@pytest.fixture(scope="module")
def originals(tmp_path_factory, gpg):
    """A vendor's repository and a distribution, each built once; tests get copies."""
    place = tmp_path_factory.mktemp("originals")
    vendor, debian = VendorRepository(place / "mysql", SigningKey(place / "key")), Archive(place / "debian", "bookworm")
    for version in ("8.4.6-1debian12", "8.4.8-1debian12"):
        vendor.add("mysql-common", version)
        vendor.add(SERVER, version, f"library (>= 2), mysql-common (= {version}), perl")
        vendor.add(CLIENT, version, f"mysql-common (= {version})")
    debian.add("library", "2.0")
    debian.add("mysql-common", "9.9.9")
    debian.publish()
    yield vendor, debian
    vendor.key.end()


def copy_to(original, directory):
    """The same repository in a directory of the test's own."""
    made = copy.deepcopy(original)
    made.directory, made.pool = directory, directory / "pool"
    shutil.copytree(original.directory, directory)
    return made


@pytest.fixture
def vendor(tmp_path, originals):
    """A repository of MySQL with two patch releases, not published."""
    return copy_to(originals[0], tmp_path / "mysql")


@pytest.fixture
def debian(tmp_path, originals):
    """The distribution, with a library and with another mysql-common."""
    return copy_to(originals[1], tmp_path / "debian" / "mirror")


def offer_of(repository, version="8.4"):
    """The offer of a version that only this repository has."""
    extras = (ROUTER,) if repository.tools else ()
    return Offer("mysql", version, (Origin("bookworm", PACKAGES, repository=repository, extras=extras),), ("mysqld",))


@pytest.fixture
def fetch(tmp_path, vendor, debian):
    """``fetch(version)``: what was fetched, and the lines of progress."""

    def fetch(version="8.4", lines=(), repository=None):
        told = []
        offer = offer_of(repository or vendor.repository(), version)
        (candidate,) = sources.candidates(offer, [debian.entry(), *lines])
        found = apt.fetch(offer.name, candidate, tmp_path / "staging", tmp_path / "root", told.append)
        return {package.name: package.version for package in found.packages}, told

    return fetch


def test_a_series_is_its_newest_patch_release(vendor, fetch):
    """The server and its kin are the vendor's; the library is the distribution's."""
    vendor.publish()

    packages, told = fetch()

    newest = "8.4.8-1debian12"
    assert packages == {SERVER: newest, CLIENT: newest, "mysql-common": newest, "library": "2.0"}
    assert told[0] == f"reading bookworm of {TITLE}, file:{vendor.directory}"


def test_a_router_of_the_tools_comes_with_a_server_of_any_series(vendor, fetch):
    """It has a version of its own, and dependencies of the distribution."""
    vendor.add(ROUTER, "9.7.1-1debian12", "library", component=TOOLS)
    vendor.publish()
    tools = vendor.repository(tools=TOOLS)

    series, _ = fetch(repository=tools)
    exact, _ = fetch("8.4.6", repository=tools)

    assert (series[SERVER], series[ROUTER]) == ("8.4.8-1debian12", "9.7.1-1debian12")
    assert (exact[SERVER], exact[ROUTER]) == ("8.4.6-1debian12", "9.7.1-1debian12")


@pytest.mark.parametrize("what", ["no component", "no package", "a dependency"])
def test_a_server_is_fetched_without_a_router(vendor, fetch, what):
    """The line of progress has the reason; the server needs no router."""
    if what == "no package":
        vendor.add("mysql-shell", "9.7.1-1debian12", component=TOOLS)
    if what == "a dependency":
        vendor.add(ROUTER, "9.7.1-1debian12", "nowhere", component=TOOLS)
    vendor.publish()

    packages, told = fetch(repository=vendor.repository(tools=TOOLS))

    assert packages[SERVER] == "8.4.8-1debian12"
    assert ROUTER not in packages
    (line,) = (line for line in told if line.startswith("without"))
    assert missing(line, f"without {ROUTER} (apt cannot resolve", "E: ") == []


def test_an_exact_version_is_taken_from_the_same_repository(vendor, fetch):
    """All packages of the vendor have it, although newer ones are there."""
    vendor.publish()

    packages, _ = fetch("8.4.6")

    assert {name: packages[name].partition("-")[0] for name in packages if name != "library"} == dict.fromkeys(
        [SERVER, CLIENT, "mysql-common"], "8.4.6"
    )


def test_a_version_that_the_repository_lacks_is_an_error_before_the_download(vendor, fetch):
    """Both versions are in it: 8.4.60 is not 8.4.6."""
    vendor.publish()

    with pytest.raises(ProvisionError, match=rf"{TITLE}, file:\S+ has {SERVER} 8\.4\.8-1debian12, not 8\.4\.60$"):
        fetch("8.4.60")


def test_a_vendor_wins_for_its_own_packages_only(vendor, debian, fetch):
    """A newer library of the vendor is left alone, because it is not one of the packages that the vendor is for."""
    vendor.add("library", "3.0")
    vendor.publish()

    packages, _ = fetch()

    assert packages["library"] == "2.0"
    assert packages["mysql-common"] == "8.4.8-1debian12"


def test_a_security_suite_that_lacks_its_packages_is_left_out_for_a_vendor_too(tmp_path, vendor, debian):
    """The vendor's packages come with the older library of the distribution; a fault of the vendor would be final."""
    vendor.publish()
    security = Archive(tmp_path / "debian", "bookworm-security")
    security.add("library", "2.1").unlink()
    security.publish()
    offer, told = offer_of(vendor.repository()), []
    (candidate,) = sources.candidates(offer, [debian.entry(), security.entry()])

    found = apt.fetch(offer.name, candidate, tmp_path / "staging", tmp_path / "root", told.append)

    assert {package.name: package.version for package in found.packages}["library"] == "2.0"
    assert found.remarks == ("without bookworm-security, which is incomplete on the mirror",)


def test_a_line_of_this_system_needs_no_key_of_ours(vendor, fetch, keys, tmp_path):
    """The user's line names the key of its mirror; the repository in the catalogue has another one, and no address."""
    vendor.publish()
    line = AptEntry(
        f"file:{vendor.directory}", "bookworm", (vendor.component,), (("Signed-By", str(vendor.key.public)),)
    )
    other = keys("other")
    elsewhere = vendor.repository(address="file:/nowhere", key=other.public, fingerprint=other.fingerprint)

    packages, _ = fetch(lines=[line], repository=elsewhere)

    assert packages[SERVER] == "8.4.8-1debian12"


def damage(vendor, keys, what):
    """Publish the repository with a fault."""
    if what == "expired":
        vendor.key = keys("expired", expired=True)
    file = vendor.publish(signed=what != "unsigned", architecture="riscv64" if what == "architecture" else "")
    if what == "changed":
        file.write_text(file.read_text().replace("Origin: MySQL", "Origin: mysql"))
    if what == "package":
        package = next(vendor.pool.glob(f"{SERVER}_8.4.8*"))
        package.write_bytes(package.read_bytes()[:-1] + b"x")


@pytest.mark.parametrize(
    ("what", "facts"),
    [
        ("changed", ("the signature of", "is bad: the file was changed after MySQL signed it")),
        ("expired", ("the key that signed", "has expired or was revoked; update pytest-dbcluster, or add a line")),
        ("unsigned", ("is not signed, so we fetch nothing from it",)),
        ("architecture", ("has packages for riscv64, and this machine is",)),
        ("package", ("cannot download", "Hash Sum mismatch")),
    ],
)
def test_a_fault_of_a_repository_is_refused_with_the_vendors_name(tmp_path, vendor, keys, fetch, what, facts):
    """Nothing is unpacked, and the error names the repository, its suite and what is wrong with it."""
    damage(vendor, keys, what)

    with pytest.raises(ProvisionError) as caught:
        fetch()
    assert missing(str(caught.value), f"bookworm of {TITLE}", *facts) == []
    assert not (tmp_path / "root").exists()


def test_a_repository_that_another_key_signed_is_refused(vendor, keys, fetch):
    """The message has the fingerprint that we trust."""
    vendor.publish()
    other = keys("other")

    with pytest.raises(ProvisionError) as caught:
        fetch(repository=vendor.repository(key=other.public, fingerprint=other.fingerprint))
    facts = ("is not signed with our key of MySQL", other.fingerprint, "add a line", "apt says: ")
    assert missing(str(caught.value), f"bookworm of {TITLE}", *facts) == []


def test_a_key_with_a_wrong_fingerprint_is_refused_before_anything_is_read(vendor, keys, fetch):
    """A key file that was replaced is not the vendor's, whatever it signs."""
    vendor.publish()
    pinned = REPOSITORIES["mysql", "8.4"].fingerprint

    with pytest.raises(ProvisionError) as caught:
        fetch(repository=vendor.repository(fingerprint=pinned))
    assert missing(str(caught.value), vendor.key.fingerprint, pinned, "MySQL signs with", TITLE) == []


def test_a_fault_of_the_distribution_is_not_the_vendors(tmp_path, vendor, debian, fetch):
    """The mirror of the distribution is named, and the way to another one."""
    vendor.publish()
    signed = dataclasses.replace(debian.entry(), options=())
    offer = offer_of(vendor.repository())
    (candidate,) = sources.candidates(offer, [signed])

    with pytest.raises(ProvisionError) as caught:
        apt.fetch(offer.name, candidate, tmp_path / "staging", tmp_path / "root", print)
    assert missing(str(caught.value), f"bookworm of {signed.uri} is not signed") == []
    assert "MySQL signed" not in str(caught.value)


def test_an_archive_has_each_version_at_its_own_address(tmp_path, keys, debian):
    """Exactly the version that was asked for is there; another one has no address."""
    archive = VendorRepository(tmp_path / "mariadb-11.4.5", keys("mariadb"), "main")
    archive.label = "MariaDB"
    archive.add("mariadb-server", "1:11.4.5+maria~deb12", "galera-4")
    archive.add("galera-4", "26.4.21-deb12")
    archive.publish()
    row = {"vendor": "MariaDB", "title": "MariaDB's archive", "label": "MariaDB", "own": ("mariadb-*", "galera-*")}
    repository = archive.repository(**row, address=f"file:{tmp_path}/mariadb-{{version}}", is_archive=True)
    origin = Origin("bookworm", ("mariadb-server",), repository=repository)

    def fetch(version):
        offer = Offer("mariadb", version, (origin,), ())
        found = sources.candidates(offer, [debian.entry()])
        return [apt.fetch(offer.name, one, tmp_path / "staging", tmp_path / "root", print) for one in found]

    (fetched_one,) = fetch("11.4.5")
    assert {package.version for package in fetched_one.packages} == {"1:11.4.5+maria~deb12", "26.4.21-deb12"}
    assert fetch("11.4") == []
    with pytest.raises(ProvisionError, match=rf"bookworm of MariaDB's archive, file:{tmp_path}/mariadb-11\.4\.6"):
        fetch("11.4.6")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_an_architecture_that_a_vendor_lacks_is_refused_without_asking(vendor, debian, own_cache, monkeypatch):
    """The error names vendor, architecture and family; nothing is read."""
    monkeypatch.setattr(apt, "architecture", lambda: "arm64")
    offer = offer_of(vendor.repository(lacks=(("Debian", "arm64"),)))
    told = []

    with pytest.raises(ProvisionError, match=f"^{TITLE} has no packages for arm64 on Debian$"):
        fetched.fetch(offer, sources.candidates(offer, [debian.entry()]), told.append)
    assert told == []


def test_the_next_source_is_asked_with_a_line_that_says_so(vendor, debian, own_cache):
    """The line has the reason of the first source and the place of the next one."""
    vendor.publish()
    gone = Origin("bookworm", ("mysql-server",))
    offer = dataclasses.replace(offer_of(vendor.repository()), origins=(gone, *offer_of(vendor.repository()).origins))
    told = []

    with pytest.raises(ProvisionError, match="has no dynamic loader"):
        fetched.fetch(offer, sources.candidates(offer, [debian.entry()]), told.append)
    (line,) = (line for line in told if "; looking in " in line)
    assert missing(line, "mysql:8.4: apt cannot resolve mysql-server", f"looking in bookworm of {TITLE}") == []


def test_a_host_that_does_not_answer_is_asked_once(debian, own_cache, vendor):
    """Its other suites are left out; the error has one reason for it."""
    silent = vendor.repository(address="http://127.0.0.1:9/apt")
    suites = ("bookworm", "trixie")
    offer = dataclasses.replace(
        offer_of(silent), origins=tuple(Origin(one, PACKAGES, repository=silent) for one in suites)
    )
    told = []

    with pytest.raises(ProvisionError) as caught:
        fetched.fetch(offer, sources.candidates(offer, [debian.entry()]), told.append)
    assert [line for line in told if line.startswith("reading")] == [f"reading bookworm of {TITLE}, {silent.address}"]
    assert re.search(r"^cannot read bookworm of .*Could not connect to 127\.0\.0\.1:9", str(caught.value))
