"""Finding a release: the order of the sources, what is known, and the ways out."""

from __future__ import annotations

import dataclasses
import os
import shutil

import pytest

from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.releases import apt, catalogue, fetched, find, local_programs, sources
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.system import cache
from tests.support.facts import missing

DEAD = "http://127.0.0.1:9/debian"
ENTRY = sources.AptEntry(DEAD, "bookworm", ("main",))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """An empty cache, and a system whose only mirror does not answer."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DBCLUSTER_MIRROR", raising=False)
    monkeypatch.setattr(sources, "host_entries", lambda: [ENTRY])
    monkeypatch.setattr(local_programs, "_SBIN", ())


def fake_entry(product="mariadb", version="10.11", exact="10.11.19"):
    """An entry of the cache that holds no programs."""
    with cache.stage(f"{product}-{version}") as staging:
        (staging / "bin").mkdir()
        manifest = cache.Manifest(
            product=product,
            version=version,
            exact=exact,
            architecture="amd64" if os.uname().machine == "x86_64" else "arm64",
            suite="bookworm",
            source="bookworm of this system's apt sources",
            packages={},
            downloaded=1,
            size=5,
            fetched="2026-01-01T00:00:00+00:00",
        )
        cache.write(staging, manifest)
    return cache.releases() / f"{product}-{version}"


@pytest.mark.parametrize("name", ["mysql:8.4=/opt/mysql", "mariadb:path", "mariadb:10.11"])
def test_a_cache_that_others_can_write_is_not_used(monkeypatch, name):
    """Also for a directory, a tarball and programs on PATH, of which it has shims and unpacked files."""
    monkeypatch.setattr(cache.owned_files, "distrust_reason", lambda directory: "it belongs to mallory")

    with pytest.raises(ProvisionError, match="is not used, because another user could have changed its programs"):
        find.find(name)


def test_a_cached_release_is_taken_without_asking_anyone(monkeypatch):
    """With the release in the cache no mirror is read and no server started."""
    entry = fake_entry()
    monkeypatch.setattr(sources, "host_entries", lambda: pytest.fail("the apt sources were read"))

    found = find.find(ReleaseName("mariadb", "10.11"))

    assert (found.name, found.version, found.bin) == ("mariadb:10.11", "10.11.19", entry / "bin")
    assert missing(found.source, "bookworm", "this system's apt sources", f"(in {entry})") == []


def test_an_exact_version_is_the_cached_release_that_has_it():
    """The name of the release is the one that was asked for; another patch release is not in the cache."""
    entry = fake_entry()

    found = find.find("mariadb:10.11.19")

    assert (found.name, found.version, found.bin) == ("mariadb:10.11.19", "10.11.19", entry / "bin")
    assert fetched.lookup("mariadb", "10.11.18") is None


def test_a_cached_release_may_be_named_by_its_directory():
    """An entry that was copied from another machine is taken from wherever it lies."""
    entry = fake_entry()

    assert find.find(f"mariadb:10.11={entry}").bin == entry / "bin"
    with pytest.raises(ConfigError, match=f"^mariadb:11.8: {entry} holds mariadb 10.11$"):
        find.find(f"mariadb:11.8={entry}")


def test_an_entry_for_another_machine_is_not_taken(monkeypatch):
    """A cache that is shared between architectures keeps their programs apart."""
    entry = fake_entry()
    manifest = dataclasses.replace(cache.read(entry), architecture="riscv64")
    cache.write(entry, manifest)

    with pytest.raises(ProvisionError):
        find.find("mariadb:10.11")


def test_an_unknown_version_lists_the_known_ones():
    """The error has every version of the product with its sources, and the other products."""
    with pytest.raises(
        ConfigError,
        match=r"^unknown release mariadb:12\.9; known: mariadb:10\.5 \(Debian\), .*, "
        r"mariadb:11\.8 \(Debian or MariaDB's repository 11\.8\), .*, mariadb:X\.Y\.Z \(MariaDB's archive\); "
        r"others as mariadb:12\.9=DIRECTORY or mariadb:12\.9=TARBALL; `dbcluster releases` also lists mysql, ",
    ):
        find.find("mariadb:12.9")


@pytest.mark.parametrize("name", ["mysql:5.7", "mysql:8.0.28", "mariadb:10.4", "mysql:5.7=/opt/mysql-5.7"])
def test_a_server_that_is_too_old_says_which_are_not(name):
    """A directory would not help, so the error offers none; the same versions are named everywhere."""
    for look in (find.check,) if "=" in name else (find.check, find.find):
        with pytest.raises(ConfigError) as caught:
            look(ReleaseName.parse(name))
        for fact in (f"{name.partition('=')[0].replace(':', ' ')} is too old", "mariadb 10.5 and mysql 8.0.29"):
            assert fact in str(caught.value)


def test_a_release_is_checked_without_a_download(tmp_path):
    """What can be fetched, was fetched, or lies in a directory that exists."""
    for name in ("mariadb:10.11", "mysql:path", f"mysql:8.4={tmp_path}"):
        find.check(ReleaseName.parse(name))

    find.check(ReleaseName.parse("mysql:8.4.6"))
    for name, words in {
        "mysql:8.2": r"^unknown release mysql:8\.2; known: .*; others as mysql:8\.2=DIRECTORY or ",
        "mysql:8.4=/none": r"^mysql:8\.4=/none: there is no directory /none$",
    }.items():
        with pytest.raises(ConfigError, match=words):
            find.check(ReleaseName.parse(name))


def test_without_network_the_error_says_the_ways_out(tmp_path):
    """Directory, PATH, mirror and a cache from elsewhere are named, after apt's reason."""
    with pytest.raises(ProvisionError) as caught:
        find.find("mariadb:11.8")

    text = str(caught.value)
    assert text.startswith(f"mariadb:11.8 cannot be fetched: cannot read trixie of {DEAD}: E: ")
    for fact in (
        "--db-release mariadb:11.8=TARBALL or mariadb:11.8=DIRECTORY",
        "--db-image mariadb:11.8=IMAGE",
        "mariadb:path",
        "DBCLUSTER_MIRROR=URL",
        "`dbcluster fetch mariadb:11.8`",
        f"{tmp_path}/pytest-dbcluster",
    ):
        assert fact in text


@pytest.mark.parametrize(
    ("name", "place", "ways", "no_ways"),
    [
        (
            "mysql:8.4",
            "bookworm of MySQL's repository mysql-8.4-lts, http://repo.mysql.com/apt/debian",
            "add a mirror of MySQL's repository mysql-8.4-lts to the apt sources",
            "DBCLUSTER_MIRROR",
        ),
        ("mysql:8.4", f"bookworm of {DEAD}", "DBCLUSTER_MIRROR=URL", "add a mirror"),
        (
            "mariadb:10.11.6",
            "bookworm of MariaDB's archive, https://archive.mariadb.org/mariadb-10.11.6/repo/debian",
            "--db-release mariadb:10.11.6=TARBALL",
            "DBCLUSTER_MIRROR",
        ),
    ],
    ids=["vendor", "dependencies", "archive"],
)
def test_a_vendors_host_that_does_not_answer_has_its_own_way_out(monkeypatch, name, place, ways, no_ways):
    """DBCLUSTER_MIRROR replaces Debian's mirror only; a mirror of a vendor is a line of the apt sources."""

    def fail(*_):
        raise ProvisionError(f"cannot read {place}: E: could not connect")

    monkeypatch.setattr(fetched, "fetch", fail)
    with pytest.raises(ProvisionError) as caught:
        find.find(name)

    assert missing(caught.value, ways) == []
    assert no_ways not in str(caught.value)


def test_the_environment_names_a_mirror(monkeypatch):
    """DBCLUSTER_MIRROR stands in for the host's own mirror; the argument wins over it."""
    monkeypatch.setenv("DBCLUSTER_MIRROR", "http://127.0.0.1:10/debian")

    with pytest.raises(ProvisionError, match=r"cannot read bookworm of http://127\.0\.0\.1:10/debian"):
        find.find("mariadb:10.11")
    with pytest.raises(ProvisionError, match=r"cannot read bookworm of http://127\.0\.0\.1:11/debian"):
        find.find("mariadb:10.11", mirror="http://127.0.0.1:11/debian")


def test_a_version_without_a_mirror_names_its_suites(monkeypatch):
    """Without a mirror of a suite that has it there is nowhere to ask, so the error names the suites."""
    monkeypatch.setattr(sources, "host_entries", list)

    with pytest.raises(ProvisionError, match="it is in jammy, bullseye, but the apt sources of this system name no "):
        find.find("mariadb:10.6")


def test_a_host_without_apt_stays_unsupported(monkeypatch):
    """The kind of error is kept; the ways out are a tarball and an image, and no mirror that nobody could read."""
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(Unsupported, match=r"^mariadb:10.11 cannot be fetched: .* no apt-get") as caught:
        find.find("mariadb:10.11")
    assert missing(str(caught.value), "=TARBALL", "--db-image", "on a Debian or Ubuntu machine") == []
    assert "DBCLUSTER_MIRROR" not in str(caught.value)


def test_without_apt_no_row_can_be_fetched(monkeypatch):
    """Each row that is not cached says what to use in its place, even if apt has sources. Tarballs need no apt."""
    fake_entry()
    monkeypatch.setenv("PATH", "/nonexistent")

    rows = [row for row in find.list_releases() if not row.name.endswith(":path")]

    assert [row.name for row in rows if row.state == "cached"] == ["mariadb:10.11"]
    assert [row.name for row in rows if row.state == "untried"] == ["mysql:X.Y.Z"]
    others = {(row.state, row.source) for row in rows if row.state not in ("cached", "untried")}
    assert others == {
        ("not found", "no packages here; use a tarball or an image"),
        ("not found", "no packages here; install it"),
    }
    with pytest.raises(ConfigError, match=r"mysql:8\.2; this system fetches no packages: use a vendor's tarball with"):
        find.find("mysql:8.2")


def test_a_tool_that_cannot_be_fetched_is_taken_from_path(tmp_path, monkeypatch):
    """PATH is the tools' last way out, and progress says so."""
    program = tmp_path / "bin" / "haproxy"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'HAProxy version 2.6.12-1 2026/01/01'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    lines = []

    found = find.find("haproxy", progress=lines.append)

    assert found.source.startswith(f"PATH ({program}), because it could not be fetched: cannot read bookworm of ")
    assert lines[-1] == f"haproxy: using {found.source}"


def test_a_server_that_cannot_be_fetched_is_taken_from_make_servers(tmp_path):
    """The newest fitting version wins, and progress says why it is used."""
    for version in ("11.4.5", "11.4.10", "11.40.1"):
        program = cache.root() / "tools" / f"mariadb-{version}" / "bin" / "mariadbd"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho 'mariadbd  Ver {version}-MariaDB for Linux on x86_64'\n")
        program.chmod(0o755)
    lines = []

    found = find.find("mariadb:11.4", progress=lines.append)

    assert (found.name, found.version) == ("mariadb:11.4", "11.4.10")
    assert missing(lines[-1], "mariadb:11.4: using ", "tools/mariadb-11.4.10", "because ") == []


def test_a_tool_that_is_nowhere_says_install(monkeypatch):
    """For a tool there is no DIRECTORY to name."""
    monkeypatch.setattr(local_programs, "tool_on_path", lambda name, reason: None)

    with pytest.raises(ProvisionError, match=r"What you can do: install sysbench; .*DBCLUSTER_MIRROR"):
        find.find("sysbench")


def test_every_offer_is_known_with_its_state(tmp_path, monkeypatch):
    """A row for each source: cached, tried here, untried, not found; and what is on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for program in apt.PROGRAMS:
        (tmp_path / program).touch(mode=0o755)
    entry = fake_entry()

    rows = {(row.name, row.supplier): row for row in find.list_releases()}
    states = {key: row.state for key, row in rows.items()}

    assert rows["mariadb:10.11", "Debian"] == find.Known("mariadb:10.11", "cached", "10.11.19", 5, str(entry), "Debian")
    assert states["mariadb:10.11", "MariaDB's repository 10.11"] == "untried"
    assert states["mariadb:11.8", "Debian"] == "tried here"
    assert missing(rows["mariadb:11.8", "Debian"].source, "trixie", "the same mirror") == []
    assert states["mariadb:10.6", "Ubuntu"] == "not found"
    assert states["mysql:9.7", "Debian"] == "tried here"
    assert states["mysql:8.4", "MySQL's repository mysql-8.4-lts"] == "untried"
    assert states["mariadb:X.Y.Z", "MariaDB's archive"] == "untried"
    assert states["mariadb:path", ""] == "not found"
    assert {(offer.name, supplier) for offer in catalogue.OFFERS for supplier in offer.suppliers} <= set(rows)
    assert set(states.values()) <= set(find.STATES)


def test_cached_lists_what_the_cache_holds():
    """An empty cache has no rows."""
    assert find.cached_releases() == []

    fake_entry()

    assert [row.name for row in find.cached_releases()] == ["mariadb:10.11"]


def test_a_missing_program_lists_those_that_there_are():
    """The error has the release, where it was found, and its programs."""
    entry = fake_entry()
    (entry / "bin" / "mariadb").touch()

    with pytest.raises(ConfigError, match=r"^mariadb:10.11 \(.*\) has no program 'garbd' in .*/bin; it has: mariadb$"):
        find.find("mariadb:10.11").program("garbd")


def test_an_entry_is_gone_when_its_directory_is():
    """Removing an entry by hand is all it takes."""
    shutil.rmtree(fake_entry())

    assert find.cached_releases() == []


def test_programs_of_a_cache_that_others_can_write_are_not_run(tmp_path, monkeypatch):
    """The error names the cache, its owner and mode, and what to do; nothing is looked for or fetched."""
    (tmp_path / "pytest-dbcluster" / "releases").mkdir(parents=True)
    (tmp_path / "pytest-dbcluster").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    with pytest.raises(ProvisionError, match=r"mode 0777; set XDG_CACHE_HOME to a directory that only you can write"):
        find.find("mariadb:10.11")
