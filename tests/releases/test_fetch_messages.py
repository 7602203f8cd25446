"""Messages on releases that cannot be had, as users read them."""

from __future__ import annotations

from pytest_dbcluster.errors import CommandFailed
from pytest_dbcluster.releases import apt, fetched, find, local_programs, shims
from pytest_dbcluster.releases.catalogue import OFFERS
from pytest_dbcluster.releases.sources import AptEntry
from pytest_dbcluster.spec import ReleaseName
from tests.support import golden

SIGNATURES = {
    "a file was changed": "W: GPG error: x: The following signatures were invalid: BADSIG 01 Debian <x>",
    "a key is unknown": "E: Sub-process sqv: Missing key 05AB, which is needed to verify signature",
    "a key has expired": "W: GPG error: x: The following signatures were invalid: EXPKEYSIG 01 Debian",
    "a suite is not signed": "E: The repository 'x' is not signed.",
    "a mirror does not answer": "E: Unable to connect",
}
OLD = "E: Release file for http://x/dists/sid/Release is expired (invalid since 400d 2h 3min 4s)"


def _of_path():
    """The message about a server that is not on PATH."""
    looked = ":".join(map(str, local_programs.path_directories()))
    return golden.message_of(local_programs.on_path, ReleaseName.parse("mysql:path")).replace(looked, "PATH")


def test_messages_on_releases_that_cannot_be_had(tmp_path, monkeypatch):
    """They say what was tried, where, what was seen and what to do next."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entry = AptEntry("http://x", "trixie", ())
    seen = {
        title: str(apt.update_error(CommandFailed(["apt-get", "update"], 100, "", f"{line}\n"), [entry]))
        for title, line in SIGNATURES.items()
    }
    seen["a Release file is too old"] = golden.message_of(apt.out_of_date, OLD)
    monkeypatch.setenv("DBCLUSTER_MAX_AGE", "450")
    seen["a Release file is old"] = "\n".join(apt.out_of_date(OLD))
    monkeypatch.setenv("DBCLUSTER_MAX_AGE", "long")
    seen["the limit is not a number"] = golden.message_of(apt.max_age)
    seen["a release is unknown"] = golden.message_of(find.check, ReleaseName.parse("mysql:8.2"))
    seen["a release is too old"] = golden.message_of(find.check, ReleaseName.parse("mysql:5.7"))
    seen["a directory is missing"] = golden.message_of(find.check, ReleaseName.parse("mysql:8.4=/none"))
    seen["a directory has no server"] = golden.message_of(
        local_programs.in_directory, ReleaseName.parse(f"mariadb:11.8={tmp_path}")
    )
    seen["there is no loader"] = golden.message_of(shims.make, tmp_path, (), "amd64")
    seen["no mirror has a suite"] = golden.message_of(fetched.fetch, OFFERS[0], [], print)
    monkeypatch.setenv("PATH", "/nonexistent")
    seen["there is no apt"] = golden.message_of(find.find, "mariadb:10.11")
    seen["a release is unknown, and there is no apt"] = golden.message_of(find.check, ReleaseName.parse("mysql:8.2"))
    seen["a tool cannot be fetched"] = golden.message_of(find.find, "sysbench")
    seen["there is neither a server on PATH nor apt"] = _of_path()
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in apt.PROGRAMS:
        (programs / program).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(programs))
    seen["no server is on PATH"] = _of_path()

    golden.compare("fetch_errors", seen, {tmp_path: "TMP"})
