"""Releases out of the programs on PATH."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases import apt, find, local_programs
from tests.support.facts import missing


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own, and a PATH without servers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(local_programs, "_SBIN", ())


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A server below one prefix, on PATH."""
    for part in ("bin", "sbin", "lib/mysql/plugin", "share/mysql/english", "share/mysql/charsets"):
        (tmp_path / part).mkdir(parents=True)
    for name, prints in (("sbin/mariadbd", "Ver 10.11.19-MariaDB"), ("bin/mariadb", ""), ("bin/socat", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{prints}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"/usr/bin:/bin:{tmp_path}/sbin")
    return tmp_path


def test_the_server_on_path_is_taken_with_what_lies_beside_it(installed):
    """Its clients come out of bin/ beside sbin/, its files from below the same prefix."""
    found = find.find("mariadb:path")

    assert (found.name, found.version) == ("mariadb:path", "10.11.19")
    assert found.source == f"PATH ({installed}/sbin/mariadbd)"
    assert found.program("mariadb").resolve() == installed / "bin/mariadb"
    assert found.server_options["plugin-dir"] == f"{installed}/lib/mysql/plugin"
    assert found.server_options["character-sets-dir"] == f"{installed}/share/mysql/charsets"


def test_a_server_in_sbin_is_found_without_its_being_on_path(installed, monkeypatch):
    """An ordinary user's PATH has no /usr/sbin, where packages put the server."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(local_programs, "_SBIN", (f"{installed}/sbin",))

    assert find.find("mariadb:path").version == "10.11.19"


@pytest.mark.parametrize(
    ("name", "servers", "fetched"),
    [
        ("mariadb:path", "mariadbd or mysqld", r"mariadb:10\.5, mariadb:10\.6, .*, mariadb:12\.3"),
        ("mysql:path", "mysqld", r"mysql:8\.0, mysql:8\.4, mysql:9\.7"),
    ],
)
def test_no_server_on_path_says_where_was_looked(monkeypatch, name, servers, fetched):
    """The error has the PATH, and the versions of the same vendor that can be fetched."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(apt, "missing_program", lambda: "")
    ways_out = f"install a server, or name a version that can be fetched: {fetched}"
    text = rf"^{name}: no {servers} on PATH \(/nonexistent\); {ways_out}$"

    with pytest.raises(ConfigError, match=text):
        find.find(name)


def test_another_product_on_path_is_refused(installed):
    """A MariaDB server is not taken for MySQL because it has a program named mysqld."""
    (installed / "sbin/mysqld").symlink_to("mariadbd")

    with pytest.raises(ConfigError, match=r"^mysql:path: the server of PATH .* is mariadb 10\.11\.19"):
        find.find("mysql:path")


@pytest.mark.parametrize("readable", [True, False], ids=["as root", "as an ordinary user"])
def test_a_server_that_apparmor_confines_is_marked(installed, monkeypatch, readable):
    """The remark says why such a server may not reach its data directory."""
    server = str((installed / "sbin/mariadbd").resolve())
    security, profiles = installed / "security", installed / "apparmor.d"
    security.mkdir()
    profiles.mkdir()
    if readable:
        (security / "profiles").write_text(f"other (complain)\n{server} (enforce)\n")
    (profiles / server.strip("/").replace("/", ".")).write_text(f"# a profile\n{server} {{\n}}\n")
    monkeypatch.setattr(local_programs, "APPARMOR", security / "profiles")
    monkeypatch.setattr(local_programs, "PROFILES", profiles)

    assert "; AppArmor confines it" in find.find("mariadb:path").source


def test_an_empty_apparmor_profile_confines_nothing(installed, monkeypatch):
    """Debian ships a profile for mariadbd that holds comments alone."""
    server = str((installed / "sbin/mariadbd").resolve())
    (installed / "security").mkdir()
    (installed / server.strip("/").replace("/", ".")).write_text("# This file is intentionally empty\n")
    monkeypatch.setattr(local_programs, "APPARMOR", installed / "security" / "profiles")
    monkeypatch.setattr(local_programs, "PROFILES", installed)

    assert "AppArmor" not in find.find("mariadb:path").source


def test_a_tool_on_path_says_why_it_was_taken(installed):
    """Release.source has the reason that fetching failed."""
    (installed / "sbin/haproxy").write_text("#!/bin/sh\necho 'HAProxy version 2.6.12-1+deb12u3 2026/01/01'\n")
    (installed / "sbin/haproxy").chmod(0o755)

    found = local_programs.tool_on_path("haproxy", "no network")

    assert found.version == "2.6.12"
    assert missing(found.source, f"PATH ({installed}/sbin/haproxy)", "could not be fetched: no network") == []


def test_a_tool_that_is_missing_is_none(monkeypatch):
    """Without the tool there is no last way out."""
    monkeypatch.setenv("PATH", "/nonexistent")

    assert local_programs.tool_on_path("haproxy", "no network") is None
