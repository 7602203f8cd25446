"""Making an entry of the cache: what a fetch that went wrong says, and what it leaves."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.releases import apt, catalogue, fetched, shims
from pytest_dbcluster.releases.catalogue import Origin
from pytest_dbcluster.releases.sources import Candidate
from pytest_dbcluster.system import cache

OFFER = catalogue.offer("mariadb", "10.11")
FIRST, SECOND = (
    Candidate(Origin(suite, ("mariadb-server",)), (), where=f"{suite} of this system's apt sources")
    for suite in ("bookworm", "noble")
)


@pytest.fixture
def fetches(tmp_path, monkeypatch):
    """A fetch whose server prints what the test says, or that raises it; by suite."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outcomes = {}

    def fetch(name, candidate, staging, into, progress):
        outcome = outcomes[candidate.origin.suite]
        if isinstance(outcome, Exception):
            raise outcome
        into.mkdir()
        (into / "mariadbd").write_text(f"#!/bin/sh\n{outcome}\n")
        return apt.Fetched(
            (apt.Package("mariadb-server", "1", "x.deb", 7),), candidate.origin.suite, candidate.where, ()
        )

    def make(entry, patterns, architecture):
        (entry / "bin").mkdir()
        for program in (entry / shims.ROOT).iterdir():
            program.chmod(0o755)
            (entry / "bin" / program.name).symlink_to(f"../{shims.ROOT}/{program.name}")

    monkeypatch.setattr(apt, "fetch", fetch)
    monkeypatch.setattr(shims, "make", make)
    return outcomes


def test_the_manifest_tells_what_was_fetched(fetches):
    """Exact version, suite, packages and sizes are kept with the entry."""
    fetches["bookworm"] = "echo 'mariadbd Ver 10.11.19-MariaDB'"

    found = fetched.fetch(OFFER, [FIRST], print)

    manifest = cache.read(found.bin.parent)
    assert (found.version, manifest.exact, manifest.suite) == ("10.11.19", "10.11.19", "bookworm")
    assert (manifest.packages, manifest.downloaded) == ({"mariadb-server": "1"}, 7)
    assert manifest.size > 0


def test_the_next_place_is_tried_when_one_fails(fetches):
    """A suite that cannot be read does not end the search."""
    fetches |= {"bookworm": ProvisionError("no answer"), "noble": "echo 'mariadbd Ver 10.11.8-MariaDB'"}

    assert fetched.fetch(OFFER, [FIRST, SECOND], print).version == "10.11.8"


def test_every_place_has_its_reason_in_the_error(fetches):
    """The user reads why each of them failed."""
    fetches |= {"bookworm": ProvisionError("no answer"), "noble": OSError(28, "No space left on device")}

    with pytest.raises(ProvisionError, match=r"^no answer; \[Errno 28\] No space left on device$"):
        fetched.fetch(OFFER, [FIRST, SECOND], print)


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (
            "echo 'mariadbd Ver 11.4.2-MariaDB'",
            r"bookworm of this system's apt sources has mariadb 11\.4\.2, not 10\.11",
        ),
        (
            "echo no such library >&2; exit 127",
            r"the fetched mariadb:10\.11 does not run on this system: .*no such library",
        ),
    ],
)
def test_a_server_that_will_not_do_is_no_entry(fetches, server, text):
    """Before an entry appears its server has run, and is the version that was asked for."""
    fetches["bookworm"] = server

    with pytest.raises(ProvisionError, match=text):
        fetched.fetch(OFFER, [FIRST], print)
    assert not cache.releases().exists()


def test_packages_without_a_server_are_no_entry(fetches, monkeypatch):
    """The error names the programs that were looked for."""
    fetches["bookworm"] = "true"
    monkeypatch.setattr(shims, "make", lambda entry, *_: (entry / "bin").mkdir())

    with pytest.raises(ProvisionError, match=r"^the packages of mariadb:10\.11 contain no mariadbd or mysqld$"):
        fetched.fetch(OFFER, [FIRST], print)


def test_an_entry_that_vanishes_at_once_is_named(fetches, monkeypatch):
    """Somebody who empties the cache meanwhile gets an error, not a half release."""
    fetches["bookworm"] = "echo 'mariadbd Ver 10.11.19-MariaDB'"
    monkeypatch.setattr(fetched, "lookup", lambda product, version: None)

    with pytest.raises(ProvisionError, match=r"^mariadb:10.11 disappeared from /"):
        fetched.fetch(OFFER, [FIRST], print)


@pytest.mark.parametrize("what", ["the server", "the manifest"])
def test_a_damaged_release_is_fetched_again(fetches, what):
    """A truncated program or an empty manifest is named; the damaged entry is set aside, and the new one runs."""
    fetches["bookworm"] = "echo 'mariadbd Ver 10.11.19-MariaDB'"
    told = []
    entry = fetched.fetch(OFFER, [FIRST], told.append).bin.parent
    server = entry / shims.ROOT / "mariadbd"
    size = server.stat().st_size
    (server if what == "the server" else entry / cache.MANIFEST).write_bytes(b"")

    assert fetched.lookup("mariadb", "10.11", told.append) is None
    found = fetched.fetch(OFFER, [FIRST], told.append)

    assert (found.bin.parent, server.stat().st_size) == (entry, size)
    [aside] = entry.parent.glob(".damaged-*")
    reason = (
        f"{shims.ROOT}/mariadbd has 0 bytes instead of {size}" if what == "the server" else "manifest.json is empty"
    )
    [line] = [line for line in told if "damaged" in line]
    assert line.startswith(f"{entry} is damaged: {reason}.")
    assert aside.name in line
    assert [path for path, _ in cache.entries()] == [entry]


def test_a_release_of_an_older_version_is_compared_with_its_size(fetches):
    """Such an entry has no list of its files; from its first use on it has one."""
    fetches["bookworm"] = "echo 'mariadbd Ver 10.11.19-MariaDB'"
    entry = fetched.fetch(OFFER, [FIRST], print).bin.parent

    def forget():
        for file in (".files.json", ".compared.json"):
            (entry / file).unlink()

    forget()
    assert fetched.lookup("mariadb", "10.11") is not None
    assert (entry / ".files.json").exists()
    forget()
    (entry / shims.ROOT / "mariadbd").write_bytes(b"")
    assert fetched.lookup("mariadb", "10.11") is None
