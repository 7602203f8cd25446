"""Exact versions from a vendor's archive of tarballs: what is taken from it, and what is refused."""

from __future__ import annotations

import dataclasses
import functools
import http.server
import shutil
import tarfile
import threading

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.releases import apt, find, local_programs, shims, sources
from pytest_dbcluster.releases.vendors import tarball_archive
from pytest_dbcluster.releases.vendors.tarball_archive import Signer, TarballArchive
from pytest_dbcluster.system import cache
from tests.releases.test_layout import LAYOUTS, lay_out
from tests.support.facts import missing
from tests.support.vendor_repository import SigningKey

TITLE = "the archive of a test"
SHORT, LONG = "mysql-{version}-minimal.tar.gz", "mysql-{version}.tar.gz"


@pytest.fixture
def key(tmp_path):
    """A signing key; its agent is gone afterwards."""
    if not shutil.which("gpg"):
        pytest.skip("no gpg to sign with")
    made = SigningKey(tmp_path / "keys")
    yield made
    made.end()


@pytest.fixture
def archive(tmp_path, key, monkeypatch):
    """A directory that is MySQL's archive, beside one for the newest; the system has no apt, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "host_entries", list)
    monkeypatch.setattr(local_programs, "_SBIN", ())
    (tmp_path / "bin").mkdir()
    for name in ("tar", "gzip", "gpgv"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    made = TarballArchive(
        TITLE,
        [f"file:{tmp_path}/archives/{{series}}", f"file:{tmp_path}/newest/{{series}}"],
        {shims.architecture(): [SHORT, LONG]},
        [Signer("MySQL", TITLE, key.fingerprint, key.public)],
    )
    monkeypatch.setitem(tarball_archive.TARBALLS, "mysql", made)
    return made


@pytest.fixture
def put(tmp_path, key):
    """``put(directory, name)``: a signed tarball of MySQL 8.4.8 in a directory of the archive."""
    lay_out(LAYOUTS["MySQL's tarball"], tmp_path / "mysql-8.4.8")

    def put(directory="archives/8.4", name=SHORT, version="8.4.8"):
        file = tmp_path / directory / name.format(version=version)
        file.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(file, "w:gz") as tar:
            tar.add(tmp_path / "mysql-8.4.8", "mysql-8.4.8")
        key.sign_beside(file)
        return file

    return put


@pytest.mark.parametrize(("directory", "name"), [("archives/8.4", SHORT), ("archives/8.4", LONG), ("newest/8.4", LONG)])
def test_a_system_without_apt_gets_an_exact_version(archive, put, directory, name):
    """The archive is asked first, then the directory of the newest patch release; the cache then has it."""
    file = put(directory, name)
    told = []

    found = find.find("mysql:8.4.8", progress=told.append)

    assert (found.name, found.version) == ("mysql:8.4.8", "8.4.8")
    assert found.bin.parent == cache.releases() / f"mysql-8.4.8-{shims.architecture()}"
    assert found.server_options["plugin-dir"] == str(found.bin.parent / "lib/plugin")
    assert found.source == f"file:{file} (in {found.bin.parent})"
    (line,) = (line for line in told if "looking in" in line)
    assert missing(line, "mysql:8.4.8: this system has no apt-get; ", f"; looking in {TITLE}") == []
    assert {path.name for path in found.bin.parent.iterdir()} >= {"bin", "lib", "share"}
    file.unlink()
    assert find.find("mysql:8.4.8").bin == found.bin
    rows = {row.name: row for row in find.list_releases()}
    assert (rows["mysql:8.4.8"].state, rows["mysql:8.4.8"].supplier) == ("cached", TITLE)
    assert (rows["mysql:X.Y.Z"].state, rows["mysql:X.Y.Z"].supplier) == ("untried", TITLE)


def test_a_version_of_no_row_is_only_in_the_archive(archive, put):
    """MySQL 8.3 is in no row. This tarball holds another version than its name says."""
    put("archives/8.3", version="8.3.0")

    with pytest.raises(ProvisionError, match=r"mysql-8\.3\.0-minimal\.tar\.gz has mysql 8\.4\.8, not 8\.3\.0\. What"):
        find.find("mysql:8.3.0")
    assert [path for path in cache.releases().glob("*") if path.is_dir()] == []


def test_a_version_that_the_archive_lacks_names_both_reasons(archive):
    """Those of apt and of the archive, and the places where it was looked for."""
    with pytest.raises(ProvisionError) as caught:
        find.find("mysql:8.4.5")
    facts = (
        "no apt-get",
        f"{TITLE} has no tarball of 8.4.5 for {shims.architecture()}",
        "/archives/8.4 and ",
        "TARBALL",
    )
    assert missing(caught.value, *facts) == []


def changed(file, key, tmp_path):
    """The tarball after a change."""
    file.write_bytes(file.read_bytes()[:-1] + b"x")


def signed_by_another(file, key, tmp_path):
    """The tarball with a good signature of a stranger."""
    other = SigningKey(tmp_path / "stranger")
    try:
        other.sign_beside(file)
    finally:
        other.end()


def unsigned(file, key, tmp_path):
    """The tarball with something else in place of its signature."""
    file.with_name(f"{file.name}.asc").write_text("<html>404</html>")


@pytest.mark.parametrize("damage", [changed, signed_by_another, unsigned])
def test_a_tarball_without_a_valid_signature_is_refused(archive, put, key, tmp_path, damage):
    """The error has the address and the fingerprint that we trust; the cache has nothing of it."""
    file = put()
    damage(file, key, tmp_path)

    with pytest.raises(ProvisionError) as caught:
        find.find("mysql:8.4.8")
    facts = (f"file:{file} has no valid signature of a key that we know", key.fingerprint, "gpgv")
    assert missing(caught.value, *facts) == []
    assert [path for path in cache.releases().glob("*") if path.is_dir()] == []


def test_a_key_that_expired_after_its_signature_is_enough(archive, put, tmp_path, monkeypatch):
    """MySQL signed old patch releases with a key that has expired."""
    file = put()
    expired = SigningKey(tmp_path / "expired", expired=True)
    try:
        expired.sign_beside(file)
    finally:
        expired.end()
    old = Signer("MySQL", TITLE, expired.fingerprint, expired.public)
    monkeypatch.setitem(
        tarball_archive.TARBALLS, "mysql", dataclasses.replace(archive, signers=[*archive.signers, old])
    )

    assert find.find("mysql:8.4.8").version == "8.4.8"


def test_without_a_program_that_checks_signatures_nothing_is_used(archive, put, tmp_path):
    """The message says what to install."""
    put()
    (tmp_path / "bin" / "gpgv").unlink()

    with pytest.raises(ProvisionError, match=r"there is neither gpgv nor sqv on PATH; install gpgv, or check"):
        find.find("mysql:8.4.8")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files of a directory, and prints nothing."""

    def log_message(self, *_):
        """Print nothing."""


def test_an_archive_is_read_over_http(archive, put, tmp_path, monkeypatch):
    """Names that the server does not have are passed over; progress has address and size."""
    file = put("newest/8.4", LONG)
    serve = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        places = [f"http://127.0.0.1:{server.server_port}/{place}/{{series}}" for place in ("archives", "newest")]
        monkeypatch.setitem(tarball_archive.TARBALLS, "mysql", dataclasses.replace(archive, addresses=places))
        told = []
        found = find.find("mysql:8.4.8", progress=told.append)
        server.shutdown()

    address = f"{places[1].format(series='8.4')}/{file.name}"
    assert found.source.startswith(address)
    assert [line for line in told if line.startswith(f"downloading {address}: ")]


def test_an_archive_that_does_not_answer_is_said(archive, monkeypatch):
    """With its address and the reason."""
    silent = dataclasses.replace(archive, addresses=["http://127.0.0.1:9/{series}"])
    monkeypatch.setitem(tarball_archive.TARBALLS, "mysql", silent)

    with pytest.raises(ProvisionError, match=r"cannot download http://127\.0\.0\.1:9/8\.4/\S+: .*refused"):
        find.find("mysql:8.4.8")


def test_a_series_is_never_looked_for_in_the_archive(archive, put, tmp_path):
    """Nobody knows its newest patch release there."""
    put()

    with pytest.raises(Exception, match=r"^mysql:8\.4 cannot be fetched: this system has no apt-get") as caught:
        find.find("mysql:8.4")
    assert TITLE not in str(caught.value)
    assert apt.missing_program() == "apt-get"
