"""apt on a private state, tried on archives that are directories of this machine."""

from __future__ import annotations

import datetime
import hashlib
import shutil
import subprocess

import pytest

from pytest_dbcluster.errors import CommandFailed, ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.releases import apt
from pytest_dbcluster.releases.catalogue import Origin
from pytest_dbcluster.releases.sources import AptEntry, Candidate
from tests.support.facts import missing
from tests.support.vendor_repository import SigningKey

CONTROL = """\
Package: {name}
Version: {version}
Architecture: {native}
Maintainer: nobody <nobody@example.org>
Depends: {depends}
Description: a package
"""


class Archive:
    """A directory that apt reads as one suite of a mirror."""

    def __init__(self, directory, suite, trusted=True):
        self.directory = directory / "mirror"
        self.suite, self.native = suite, apt.architecture()
        self.pool = self.directory / "pool"
        self.pool.mkdir(parents=True, exist_ok=True)
        self.packages = ""
        self.options = (("Trusted", "yes"),) if trusted else ()

    def add(self, name, version, depends="perl, adduser"):
        """Put a package into the pool and the index, depending on what is never fetched."""
        tree = self.directory / f"{self.suite}-{name}"
        (tree / "DEBIAN").mkdir(parents=True)
        control = CONTROL.format(name=name, version=version, native=self.native, depends=depends)
        (tree / "DEBIAN" / "control").write_text(control)
        for path in ("usr/bin", "usr/share/doc"):
            (tree / path).mkdir(parents=True)
            (tree / path / name).write_text(f"{name} {version}\n")
        file = self.pool / f"{name}_{version.partition(':')[2] or version}_{self.native}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, file], check=True, capture_output=True)
        data = file.read_bytes()
        sums = f"Filename: pool/{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}"
        self.packages += f"{control}{sums}\n\n"
        return file

    def publish(self, extra=""):
        """Write the index and the Release file."""
        suite = self.directory / "dists" / self.suite
        index = suite / "main" / f"binary-{self.native}" / "Packages"
        index.parent.mkdir(parents=True)
        index.write_text(self.packages)
        data = index.read_bytes()
        (suite / "Release").write_text(
            f"Origin: Debian\nSuite: {self.suite}\nCodename: {self.suite}\nDate: Mon, 01 Jan 2024 00:00:00 UTC\n{extra}"
            f"Architectures: {self.native}\nComponents: main\nSHA256:\n"
            f" {hashlib.sha256(data).hexdigest()} {len(data)} main/binary-{self.native}/Packages\n"
        )

    def entry(self, suite=""):
        """The archive as an apt source."""
        return AptEntry(f"file:{self.directory}", suite or self.suite, ("main",), self.options)


def expired(*, days):
    """The line of a Release file that was valid until so many days ago; a minute more, so that it is surely past."""
    until = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days, minutes=1)
    return f"Valid-Until: {until:%a, %d %b %Y %H:%M:%S} UTC\n"


@pytest.fixture
def archive(tmp_path):
    """A suite with one program that needs one library."""
    made = Archive(tmp_path, "bookworm")
    made.add("server", "1:10.11.19-0+deb12u1", "library (>= 2)")
    made.add("library", "2.0")
    return made


def fetch(tmp_path, *entries, optional=(), packages=("server",)):
    """What was fetched, and the lines of progress."""
    lines = []
    candidate = Candidate(Origin("bookworm", packages), entries, optional, "bookworm of a directory")
    found = apt.fetch("mariadb:10.11", candidate, tmp_path / "staging", tmp_path / "root", lines.append)
    return found, lines


def test_the_closure_is_downloaded_and_unpacked(tmp_path, archive):
    """What the packages need comes with them; maintainer scripts, perl and documentation do not."""
    archive.publish()

    found, lines = fetch(tmp_path, archive.entry())

    assert {package.name: package.version for package in found.packages} == {
        "server": "1:10.11.19-0+deb12u1",
        "library": "2.0",
    }
    assert sorted(path.name for path in (tmp_path / "root/usr/bin").iterdir()) == ["library", "server"]
    assert not (tmp_path / "root/usr/share/doc").exists()
    assert lines[0] == "reading bookworm of a directory"
    assert missing(lines[1], "fetching mariadb:10.11", "bookworm", "0 MB in 2 packages") == []
    assert lines[-1].startswith("mariadb:10.11: unpacked, ")


def test_a_suite_that_has_moved_on_is_refused_before_the_download(tmp_path):
    """A suite that gets new versions may have another one than the one it is known for; both are in the error."""
    archive = Archive(tmp_path, "sid")
    archive.add("mysql-server", "9.70.1-1")
    archive.publish()
    lines = []
    candidate = Candidate(Origin("sid", ("mysql-server",)), (archive.entry(),), (), "sid of a directory")

    with pytest.raises(ProvisionError, match=r"^sid of a directory has mysql-server 9\.70\.1-1, not 9\.7$"):
        apt.fetch("mysql:9.7", candidate, tmp_path / "staging", tmp_path / "root", lines.append)
    assert lines == ["reading sid of a directory"]


def test_apts_own_files_are_gone_afterwards(tmp_path, archive):
    """The state directory with its lists and archives is removed, after errors too."""
    with pytest.raises(ProvisionError):
        fetch(tmp_path, archive.entry())

    assert list((tmp_path / "staging").iterdir()) == []


def test_apts_temporary_files_are_in_its_own_directory(tmp_path, archive):
    """After a SIGKILL apt cannot remove them; the directory of the download is removed with them."""
    archive.publish()
    private, seen = apt.PrivateApt(tmp_path / "apt", apt.architecture()), tmp_path / "seen"
    with (tmp_path / "apt" / "apt.conf").open("a") as settings:
        settings.write(f'APT::Update::Pre-Invoke {{"echo $TMPDIR > {seen}";}};\n')

    private.update([archive.entry()])

    assert seen.read_text().strip() == str(tmp_path / "apt" / "temporary")


def test_a_mirror_that_is_out_of_date_is_used_and_named(tmp_path, archive):
    """An expired Release file is a remark with its age, not an error."""
    archive.publish(expired(days=30))

    found, lines = fetch(tmp_path, archive.entry())

    (remark,) = found.remarks
    assert remark in lines
    assert remark.startswith("the mirror's file file:")
    assert remark.endswith(" (out of date for 30 days) is expired; its signature is valid, so we use it")


@pytest.mark.parametrize(("allowed", "used"), [("", False), ("399", False), ("401", True), ("0", False)])
def test_a_mirror_that_is_too_old_is_refused(tmp_path, archive, monkeypatch, allowed, used):
    """The limit is a year, or what DBCLUSTER_MAX_AGE says; the error has the age, the limit and the ways out."""
    monkeypatch.setenv("DBCLUSTER_MAX_AGE", allowed)
    archive.publish(expired(days=400))

    if used:
        assert fetch(tmp_path, archive.entry())[0].packages
        return
    with pytest.raises(ProvisionError) as caught:
        fetch(tmp_path, archive.entry())
    assert str(caught.value).startswith(f"the mirror's file {archive.entry().uri}/dists/bookworm/Release has been ")
    for fact in (
        "expired for 400 days",
        f"allows {allowed or 365} days",
        "DBCLUSTER_MIRROR=URL",
        "DBCLUSTER_MAX_AGE=401",
    ):
        assert fact in str(caught.value)


@pytest.mark.parametrize("text", ["soon", "-1", "nan"])
def test_a_limit_of_age_is_a_number_of_days(monkeypatch, text):
    """Anything else is refused with the default."""
    monkeypatch.setenv("DBCLUSTER_MAX_AGE", text)

    with pytest.raises(
        ConfigError, match=f"^DBCLUSTER_MAX_AGE={text}: must be a number of days, 0 or more; default 365"
    ):
        apt.max_age()


def test_a_security_suite_that_is_missing_is_left_out(tmp_path, archive):
    """An optional suite that cannot be read is named, and the fetch goes on."""
    archive.publish()

    found, _ = fetch(tmp_path, archive.entry(), optional=(archive.entry("bookworm-security"),))

    (remark,) = found.remarks
    assert missing(remark, "without bookworm-security", "incomplete on the mirror") == []


def test_a_security_suite_that_lacks_its_packages_is_left_out(tmp_path, archive):
    """A mirror may list newer packages that it does not hold; the older ones are taken then."""
    archive.publish()
    security = Archive(tmp_path, "bookworm-security")
    security.add("server", "1:10.11.20-0+deb12u1", "library (>= 2)").unlink()
    security.publish()

    found, _ = fetch(tmp_path, archive.entry(), optional=(security.entry(),))

    assert "1:10.11.19-0+deb12u1" in {package.version for package in found.packages}
    assert (tmp_path / "root/usr/bin/server").read_text() == "server 1:10.11.19-0+deb12u1\n"


def test_an_archive_without_a_signature_is_refused(tmp_path, archive):
    """Signatures are checked: nothing is fetched from an archive that has none."""
    archive.publish()
    entry = AptEntry(archive.entry().uri, "bookworm", ("main",))

    with pytest.raises(ProvisionError, match="is not signed"):
        fetch(tmp_path, entry)


def test_a_missing_key_names_the_package_that_brings_it():
    """Debian's keys come with debian-archive-keyring, Ubuntu's with ubuntu-keyring."""
    said = "W: GPG error: http://x trixie InRelease: signatures couldn't be verified: NO_PUBKEY 0123456789ABCDEF\n"
    error = CommandFailed(["apt-get", "update"], 100, "", said)

    texts = [str(apt.update_error(error, [AptEntry("http://x", suite, ())])) for suite in ("trixie", "noble", "own")]

    assert "the key that signed trixie of http://x is not on this system, or not trusted for it" in texts[0]
    assert "install debian-archive-keyring (apt-get install debian-archive-keyring)" in texts[0]
    assert "install ubuntu-keyring (apt-get install ubuntu-keyring)" in texts[1]
    assert "install the keyring package of that mirror" in texts[2]
    assert "NO_PUBKEY 0123456789ABCDEF" in texts[0]


@pytest.fixture
def keys(tmp_path):
    """``keys("mirror")``: a key of a made-up mirror; its agent is gone afterwards."""
    if not shutil.which("gpg"):
        pytest.skip("no gpg to sign with")
    made = []

    def key(name):
        made.append(SigningKey(tmp_path / "keys" / name))
        return made[-1]

    yield key
    for one in made:
        one.end()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nothing", ""),
        ("the file", "is bad: the file was changed after it was signed, so we fetch nothing from this mirror; choose"),
        ("the keyring", "is not on this system, or not trusted for it; if you trust the mirror, install debian-arch"),
    ],
)
def test_what_is_wrong_with_a_signature_is_said(tmp_path, archive, keys, what, words):
    """A file that was changed and a key that nobody trusts are told apart, and apt's own words follow."""
    archive.publish()
    release, key = archive.directory / "dists" / "bookworm" / "Release", keys("mirror")
    key.sign(release)
    signed = release.with_name("InRelease")
    if what == "the file":
        signed.write_text(signed.read_text().replace("Origin: Debian", "Origin: debian"))
    trusted = keys("another").public if what == "the keyring" else key.public
    entry = AptEntry(archive.entry().uri, "bookworm", ("main",), (("Signed-By", str(trusted)),))

    if not words:
        assert fetch(tmp_path, entry)[0].packages
        return
    with pytest.raises(ProvisionError) as caught:
        fetch(tmp_path, entry)
    assert words in str(caught.value)
    assert f"bookworm of {entry.uri}" in str(caught.value)
    assert "apt says: " in str(caught.value)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("W: GPG error: x: The following signatures were invalid: BADSIG 01 Debian <x>", "the signature of"),
        ("E: Sub-process sqv: Verifying signature: Message has been manipulated", "is bad: the file was changed"),
        ("E: Sub-process sqv: Missing key 05AB, which is needed to verify signature", "is not on this system"),
        ("W: GPG error: x: The following signatures were invalid: EXPKEYSIG 01 Debian", "has expired or was revoked"),
        ("E: The repository 'x' is not signed.", "trixie of http://x is not signed, so we fetch nothing"),
        ("E: Unable to connect", "cannot read trixie of http://x: E: Unable to connect"),
    ],
)
def test_each_trouble_with_a_signature_has_its_words(said, words):
    """Those of gpgv and of sqv, which newer versions of apt use."""
    error = CommandFailed(["apt-get", "update"], 100, "", f"{said}\nE: The repository 'x' is not signed.\n")
    if "connect" in said:
        error = CommandFailed(["apt-get", "update"], 100, "", f"{said}\n")

    assert words in str(apt.update_error(error, [AptEntry("http://x", "trixie", ())]))


def test_a_package_that_the_suite_lacks_is_named(tmp_path, archive):
    """The error has the package and apt's own words."""
    archive.publish()

    with pytest.raises(ProvisionError, match="apt cannot resolve haproxy: E: Unable to locate package haproxy"):
        fetch(tmp_path, archive.entry(), packages=("haproxy",))


def test_a_package_that_was_tampered_with_is_refused(tmp_path, archive):
    """A file whose checksum is not the listed one is never unpacked."""
    archive.publish()
    file = next(archive.pool.glob("library*"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")

    with pytest.raises(ProvisionError, match=r"apt cannot download server: E: .*Hash Sum mismatch"):
        fetch(tmp_path, archive.entry())
    assert not (tmp_path / "root").exists()


def test_a_mirror_that_does_not_answer_is_named(tmp_path):
    """The error has the suite, the mirror and apt's reason."""
    entry = AptEntry("http://127.0.0.1:9/debian", "bookworm", ("main",))

    with pytest.raises(ProvisionError, match=r"cannot read bookworm of http://127.0.0.1:9/debian: .*connect"):
        fetch(tmp_path, entry)


def test_a_host_without_apt_is_unsupported(monkeypatch):
    """On other distributions the error says where fetching works."""
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(Unsupported, match=r"this system has no apt-get; .* only on Debian and Ubuntu"):
        apt.architecture()


def test_another_architecture_is_unsupported(monkeypatch):
    """Loaders and suites are known for two architectures."""
    monkeypatch.setattr(apt, "run", lambda command: "riscv64\n")

    with pytest.raises(Unsupported, match="for amd64 and arm64, not for riscv64"):
        apt.architecture()


def test_a_program_that_cannot_be_started_is_a_failed_command(tmp_path):
    """One of another architecture, and one that is missing, as its interpreter may be."""
    other = tmp_path / "server"
    other.write_bytes(b"\x7fELF of another machine")
    other.chmod(0o755)

    with pytest.raises(CommandFailed, match=r"server on localhost ended with 127: Exec format error"):
        apt.run([str(other)])
    with pytest.raises(CommandFailed, match=r"ended with 127: No such file or directory"):
        apt.run([str(tmp_path / "none")])


def test_a_command_that_does_not_end_is_stopped():
    """The time limit is in the error."""
    with pytest.raises(CommandFailed, match=r"did not end within 0.1 s"):
        apt.run(["sleep", "10"], seconds=0.1)
