"""Root file systems by mmdebstrap, tried on an archive that is a directory of this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.container import root_file_system
from pytest_dbcluster.releases import apt, sources
from pytest_dbcluster.releases.catalogue import MARIADB_PROGRAMS, OFFERS, Offer, Origin
from pytest_dbcluster.releases.sources import AptEntry, Candidate
from tests.releases.test_apt import Archive, expired
from tests.support.facts import missing
from tests.support.vendor_repository import SigningKey, VendorRepository

OFFER = Offer("mariadb", "10.11", (Origin("bookworm", ("mariadb-server",)),), MARIADB_PROGRAMS)


def cannot_bootstrap():
    """Why mmdebstrap cannot work here; empty when it can."""
    if not shutil.which("mmdebstrap"):
        return "mmdebstrap is not installed"
    if root_file_system.mode() == "root":
        return ""
    done = subprocess.run(
        ["unshare", "--map-auto", "--map-root-user", "true"], capture_output=True, text=True, check=False
    )
    return done.stderr.strip()


needs_mmdebstrap = pytest.mark.skipif(bool(cannot_bootstrap()), reason=cannot_bootstrap() or "it works here")


def files_of_host(tree, program, name):
    """Put a program of this machine, with its libraries, into the tree of a package."""
    libraries = re.findall(r"(/\S+) \(0x", subprocess.check_output(["ldd", program], text=True))
    for source, target in [(program, name), *((path, f"usr{path}".replace("usr/usr", "usr")) for path in libraries)]:
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(source).resolve(), tree / target)


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A server that is a script, and the packages that every image has."""
    made = Archive(tmp_path_factory.mktemp("packages"), "bookworm")
    tree = made.directory / "bookworm-mariadb-server"
    files_of_host(tree, "/bin/sh", "usr/sbin/shell")
    server = tree / "usr/sbin/mariadbd"
    server.write_text("#!/usr/sbin/shell\necho 'mariadbd  Ver 10.11.19-MariaDB for Linux'\n")
    server.chmod(0o755)
    made.add("mariadb-server", "1:10.11.19-0+deb12u1", "perl, adduser, mariadb-client")
    (made.directory / "bookworm-mariadb-client/usr/sbin").mkdir(parents=True)
    (made.directory / "bookworm-mariadb-client/usr/sbin/mariadb-slap").touch()
    made.add("mariadb-client", "1:10.11.19-0+deb12u1")
    passwords = made.directory / "bookworm-base-passwd/usr/share/base-passwd"
    passwords.mkdir(parents=True)
    for name in ("passwd", "group"):
        (passwords / f"{name}.master").write_text("root:x:0:\n")
    for name in root_file_system.HOST_PACKAGES:
        made.add(name, "1")
    return made


@pytest.fixture
def archive(packages):
    """A suite with these packages, to be published where all may read: an ordinary user's mmdebstrap is another one."""
    with tempfile.TemporaryDirectory(prefix="dbcluster-archive-") as place:
        Path(place).chmod(0o755)
        made = Archive(Path(place), "bookworm")
        shutil.copytree(packages.pool, made.pool, dirs_exist_ok=True)
        made.packages = packages.packages
        yield made


def make(tmp_path, *entries, optional=(), offer=OFFER):
    """What was made of the archive, and the lines of progress."""
    lines = []
    candidate = Candidate(offer.origins[0], entries, optional, "bookworm of a directory")
    staging = tmp_path / "staging"
    staging.mkdir()
    return root_file_system.make(offer, [candidate], staging, lines.append), lines


@needs_mmdebstrap
def test_an_image_is_what_a_server_and_its_host_need(tmp_path, archive):
    """Users, a shell and both names of each program are there; apt, the state of dpkg and documentation are not."""
    archive.publish()

    made, lines = make(tmp_path, archive.entry())
    with tarfile.open(tmp_path / "staging/image.tar") as tar:
        names = {name.removeprefix("./").rstrip("/") for name in tar.getnames()}
        users = tar.extractfile("./etc/passwd").read().decode()
        links = {name: tar.getmember(f"./{name}").linkname for name in ("bin", "usr/bin/sh", "usr/sbin/mysqlslap")}

    assert (made.exact, made.suite, made.source) == ("10.11.19", "bookworm", "bookworm of a directory")
    assert made.packages["mariadb-server"] == "1:10.11.19-0+deb12u1"
    assert set(made.packages) == {"mariadb-server", "mariadb-client", *root_file_system.HOST_PACKAGES}
    assert [line.partition(":")[0] for line in users.splitlines()] == ["root", "mysql"]
    assert links == {"bin": "usr/bin", "usr/bin/sh": "dash", "usr/sbin/mysqlslap": "mariadb-slap"}
    assert "usr/sbin/mariadbd" in names
    assert {name for name in names if re.match("etc/apt|var/lib/(apt|dpkg)|usr/share/doc|dev/", name)} == set()
    assert missing(lines[0], "mariadb:10.11: ", "an image", "from bookworm of a directory", "mmdebstrap") == []
    assert lines[1:] == [f"mariadb:10.11: .. {stage}" for stage in root_file_system.STAGES.values()]


@needs_mmdebstrap
@pytest.mark.thorough
def test_a_mirror_that_is_out_of_date_is_used_and_named(tmp_path, archive):
    """An expired Release file is a remark, not an error; a suite that is missing and optional is left out."""
    archive.publish(expired(days=30))

    made, lines = make(tmp_path, archive.entry(), optional=(archive.entry("bookworm-security"),))

    assert made.source.startswith(
        "bookworm of a directory; without bookworm-security, which is incomplete on the mirror"
    )
    assert made.source.endswith(" (out of date for 30 days) is expired; its signature is valid, so we use it")
    assert any("bookworm-security" in line for line in lines)


@needs_mmdebstrap
def test_an_image_of_a_vendors_packages_is_made_of_its_signed_repository(tmp_path, archive):
    """The server is the vendor's, although the distribution has one too; the rest is the distribution's."""
    archive.publish()
    with tempfile.TemporaryDirectory(prefix="dbcluster-vendor-") as place:
        Path(place).chmod(0o755)
        key = SigningKey(Path(place, "private", "key"))
        vendor = VendorRepository(Path(place, "mariadb"), key, "main")
        vendor.label = "MariaDB"
        tree = archive.directory / "unpacked"
        package = next(archive.pool.glob("mariadb-server_*"))
        subprocess.run(["dpkg-deb", "--extract", str(package), str(tree)], check=True)
        server = tree / "usr/sbin/mariadbd"
        server.write_text(server.read_text().replace("10.11.19", "11.4.5"))
        vendor.add("mariadb-server", "1:10.1+maria~deb12", "mariadb-client", {"usr": tree / "usr"})
        vendor.publish()
        key.end()
        public = shutil.copy(key.public, Path(place) / "mariadb.asc")
        row = {"vendor": "MariaDB", "title": "MariaDB's repository", "label": "MariaDB", "own": ("mariadb-*",)}
        repository = vendor.repository(**row, address=f"file:{place}/mariadb", key=Path(public))
        offer = Offer("mariadb", "11.4", (Origin("bookworm", ("mariadb-server",), repository=repository),), ())
        found = sources.candidates(offer, [archive.entry()])
        staging = tmp_path / "staging"
        staging.mkdir()

        made = root_file_system.make(offer, found, staging, print)

    assert (made.exact, made.packages["mariadb-server"]) == ("11.4.5", "1:10.1+maria~deb12")
    assert made.packages["mariadb-client"] == "1:10.11.19-0+deb12u1"
    assert made.source.startswith("bookworm of MariaDB's repository, file:")


@needs_mmdebstrap
def test_a_suite_that_lacks_the_release_is_an_error_with_the_words_of_apt(tmp_path, archive):
    """The package, the suite and the mirror are in it."""
    archive.publish()
    offer = Offer("mariadb", "10.11", (Origin("bookworm", ("mariadb-server-10.11",)),), ())

    message = r"mmdebstrap could not make the image from bookworm of a directory: .*package mariadb-server-10\.11"
    with pytest.raises(ProvisionError, match=message):
        make(tmp_path, archive.entry(), offer=offer)


@needs_mmdebstrap
def test_a_suite_that_has_moved_on_is_refused(tmp_path, archive):
    """What the server says about itself counts."""
    archive.publish()
    offer = Offer("mariadb", "10.6", (Origin("bookworm", ("mariadb-server",)),), ())

    with pytest.raises(
        ProvisionError, match=r"^no image of mariadb:10\.6: bookworm of a directory has mariadb 10\.11\.19, not 10\.6$"
    ):
        make(tmp_path, archive.entry(), offer=offer)


@pytest.mark.parametrize("offer", [each for each in OFFERS if each.version], ids=lambda offer: offer.name)
def test_the_call_names_the_packages_of_the_catalogue(tmp_path, offer):
    """Those that a fetched release has, and what a host needs; sources are written beside the tar."""
    entries = (
        AptEntry("http://mirror/debian", "sid", ("main",), (("Signed-By", "/keys"),)),
        AptEntry("file:/m", "sid", ()),
    )
    call = root_file_system.command(offer, Candidate(offer.origins[0], entries), entries, tmp_path)
    (include,) = (word for word in call if word.startswith("--include="))

    assert set(include.removeprefix("--include=").split(",")) == {
        *offer.origins[0].packages,
        *root_file_system.HOST_PACKAGES,
    }
    assert call[-3:] == [offer.origins[0].suite, f"{tmp_path}/image.tar", f"{tmp_path}/mirror.sources"]
    assert "Signed-By: /keys" in (tmp_path / "mirror.sources").read_text()
    assert "URIs: copy:/m\n" in (tmp_path / "mirror.sources").read_text()


def test_a_host_without_mmdebstrap_is_told_its_package(tmp_path, monkeypatch):
    """The sentence is a command to be copied."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for program in apt.PROGRAMS:
        (tmp_path / program).touch(mode=0o755)

    with pytest.raises(Unsupported, match=r"mmdebstrap, which is not installed: apt-get install mmdebstrap$"):
        root_file_system.make(OFFER, [], tmp_path, print)


def test_a_release_without_a_mirror_is_an_error(tmp_path, monkeypatch):
    """It says which suites have it."""
    monkeypatch.setattr(root_file_system.shutil, "which", lambda name: name)

    with pytest.raises(ProvisionError, match="it is in bookworm, but the apt sources of this system name no mirror"):
        root_file_system.make(OFFER, [], tmp_path, print)


def test_a_user_without_namespaces_is_told_what_works(monkeypatch):
    """As root it works: the one command to run is in the error."""
    monkeypatch.setattr(root_file_system.os, "getuid", lambda: 1000)
    monkeypatch.setattr(root_file_system.sys, "argv", ["/x/bin/dbcluster"])
    error = CommandFailed(["mmdebstrap"], 1, "", "I: x\nE: newuidmap 7 0 1000 failed\n")

    reason = root_file_system.reason(OFFER, Candidate(OFFER.origins[0], ()), error)
    why = ("mmdebstrap needs user namespaces", "this user cannot make", "(E: newuidmap 7 0 1000 failed)")
    assert missing(reason, *why, "as root:  sudo /x/bin/dbcluster image build mariadb:10.11") == []
