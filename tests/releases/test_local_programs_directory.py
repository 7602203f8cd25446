"""Releases in directories that the user names, laid out as vendors and packages lay them out."""

from __future__ import annotations

import os
import re

import pytest

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ReleaseName

VERSION = "Ver 11.4.5-MariaDB for Linux on x86_64 (MariaDB Server)"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own: bin/ directories are made in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def program(path, prints=VERSION, code=0):
    """An executable that prints its path's name and what it is told."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{path}  {prints}'\nexit {code}\n")
    path.chmod(0o755)


def share(directory):
    """A directory of error messages and character sets."""
    for part in ("english", "charsets"):
        (directory / part).mkdir(parents=True)


@pytest.fixture
def tarball(tmp_path):
    """A vendor's tarball, with its older names and its installer apart."""
    root = tmp_path / "mariadb-11.4.5"
    for name in ("bin/mariadbd", "bin/mariadb", "bin/mariadb-slap", "bin/my_print_defaults", "bin/unrelated"):
        program(root / name)
    program(root / "scripts/mariadb-install-db")
    (root / "lib/plugin").mkdir(parents=True)
    (root / "lib/libgalera_smm.so").touch()
    share(root / "share")
    return root


@pytest.fixture
def unpacked(tmp_path):
    """Packages of a distribution, unpacked without the libraries that they need."""
    root = tmp_path / "unpacked"
    for name in (
        "usr/sbin/mariadbd",
        "usr/bin/mariadb",
        "usr/bin/mariadb-backup",
        "usr/bin/wsrep_sst_common",
        "bin/ss",
    ):
        program(root / name)
    (root / "usr/lib/mysql/plugin").mkdir(parents=True)
    (root / "usr/lib/galera").mkdir(parents=True)
    (root / "usr/lib/galera/libgalera_smm.so").touch()
    share(root / "usr/share/mysql")
    return root


def test_a_vendors_tarball_is_taken_as_it_is(tarball):
    """Its programs come together in one bin/, and the server is told where its files are."""
    found = find.find(f"mariadb:11.4={tarball}")

    assert (found.name, found.version, found.source) == ("mariadb:11.4", "11.4.5", str(tarball))
    assert found.server_options == {
        "basedir": str(tarball),
        "plugin-dir": f"{tarball}/lib/plugin",
        "lc-messages-dir": f"{tarball}/share",
        "character-sets-dir": f"{tarball}/share/charsets",
    }
    assert found.client_options == {"plugin-dir": f"{tarball}/lib/plugin"}
    assert found.wsrep_provider == tarball / "lib/libgalera_smm.so"
    assert found.program("mariadb-install-db").resolve() == tarball / "scripts/mariadb-install-db"


@pytest.fixture
def mysql_tarball(tmp_path):
    """A tarball of MySQL: libraries of its own beside the plugins, no Galera, one name for each program."""
    root = tmp_path / "mysql-8.4.3-linux-glibc2.28-x86_64"
    for name in ("bin/mysqld", "bin/mysql", "bin/mysqlslap", "bin/mysqlrouter", "bin/mysqlsh", "bin/mysql_upgrade"):
        program(root / name, "Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)")
    for part in ("lib/plugin", "lib/private", "lib/mysqlrouter"):
        (root / part).mkdir(parents=True)
    share(root / "share")
    return root


def test_a_tarball_of_mysql_is_taken_with_its_router(mysql_tarball):
    """Server, clients, and router and shell where they lie beside them; nothing of it is called mariadb."""
    found = find.find(f"mysql:8.4={mysql_tarball}")

    assert (found.name, found.version, found.wsrep_provider) == ("mysql:8.4", "8.4.3", None)
    assert found.server_options == {
        "basedir": str(mysql_tarball),
        "plugin-dir": f"{mysql_tarball}/lib/plugin",
        "lc-messages-dir": f"{mysql_tarball}/share",
        "character-sets-dir": f"{mysql_tarball}/share/charsets",
    }
    assert found.client_options == {"plugin-dir": f"{mysql_tarball}/lib/plugin"}
    assert {path.name for path in found.bin.iterdir()} == {"mysqld", "mysql", "mysqlslap", "mysqlrouter", "mysqlsh"}


def test_a_directory_goes_to_other_machines_with_the_links_to_it(tarball, tmp_path):
    """The directory as it was named, where it is, and our own with its programs."""
    (tmp_path / "latest").symlink_to(tarball)
    found = find.find(f"mariadb:11.4={tmp_path / 'latest'}")

    assert found.trees == (found.bin.parent, tarball, tmp_path / "latest")


def test_a_directory_with_programs_of_the_system_goes_to_no_other_machine(tarball):
    """Another machine does not have what its links lead to."""
    (tarball / "bin/mariadb").unlink()
    (tarball / "bin/mariadb").symlink_to("/bin/true")

    assert find.find(f"mariadb:11.4={tarball}").trees == ()


def test_both_names_of_a_program_are_there(tarball):
    """What the vendor calls mariadb-slap is mysqlslap too."""
    found = find.find(f"mariadb:11.4={tarball}")

    assert found.program("mysqlslap").resolve() == found.program("mariadb-slap").resolve()


def test_unpacked_packages_are_found_below_usr(unpacked):
    """Programs of sbin and bin come together, and options lead below usr."""
    found = find.find(f"mariadb:11.4={unpacked}")

    assert found.server_options["basedir"] == f"{unpacked}/usr"
    assert found.server_options["plugin-dir"] == f"{unpacked}/usr/lib/mysql/plugin"
    assert found.server_options["lc-messages-dir"] == f"{unpacked}/usr/share/mysql"
    assert found.wsrep_provider == unpacked / "usr/lib/galera/libgalera_smm.so"
    for name in ("mariadbd", "mariadb-backup", "wsrep_sst_common", "ss"):
        assert found.program(name).exists()


def test_an_unchanged_directory_keeps_its_bin(tarball):
    """Servers may be running out of bin/, so it is made anew only when the programs have changed."""
    first = find.find(f"mariadb:11.4={tarball}").bin.stat().st_ino
    second = find.find(f"mariadb:11.4={tarball}").bin.stat().st_ino
    program(tarball / "bin/mariadb-backup")

    third = find.find(f"mariadb:11.4={tarball}")

    assert first == second
    assert third.program("mariadb-backup").exists()


def test_a_relative_directory_is_made_absolute(tarball, monkeypatch):
    """The user may name a directory from where they are."""
    monkeypatch.chdir(tarball.parent)

    assert find.find(f"mariadb:11.4={tarball.name}").source == str(tarball)


def test_a_directory_that_is_missing_is_named():
    """The error has the release as it was written."""
    with pytest.raises(ConfigError, match=r"^mariadb:11\.4=/none: there is no directory /none$"):
        find.find("mariadb:11.4=/none")


def test_a_directory_without_a_server_says_where_was_looked(tmp_path):
    """The error names the programs and the places."""
    with pytest.raises(ConfigError, match=r"has no mariadbd or mysqld in bin/, sbin/, .* usr/"):
        find.find(f"mariadb:11.4={tmp_path}")


@pytest.mark.parametrize(
    ("asked", "prints", "is_"),
    [
        ("mariadb:11.4", "Ver 10.11.19-MariaDB for Linux", "mariadb 10.11.19"),
        ("mariadb:11.4", "Ver 11.45.1-MariaDB for Linux", "mariadb 11.45.1"),
        ("mariadb:8.4", "Ver 8.4.3 for Linux on x86_64 (MySQL Community Server)", "mysql 8.4.3"),
    ],
)
def test_another_version_than_named_is_refused(tarball, asked, prints, is_):
    """Both versions are in the error; 11.45 is not 11.4."""
    program(tarball / "bin/mariadbd", prints)
    where = re.escape(str(tarball))

    with pytest.raises(ConfigError, match=f"^{asked}: the server of {where} is {is_}$"):
        find.find(f"{asked}={tarball}")


def test_a_server_that_does_not_run_gives_its_own_words(tarball):
    """A tarball for another system fails with what its loader says."""
    program(tarball / "bin/mariadbd", "libaio.so.1: cannot open shared object file", 127)

    with pytest.raises(ProvisionError, match=r"does not run on this system: .* ended with 127: .*libaio.so.1"):
        find.find(f"mariadb:11.4={tarball}")


def test_the_version_names_the_directory_only_for_its_test_id(tarball):
    """The release's name, which goes into test ids, has no directory."""
    assert find.find(ReleaseName("mariadb", "11.4", str(tarball))).name == "mariadb:11.4"


def test_an_unreadable_cache_does_not_matter_to_the_error(tmp_path):
    """A directory with a foreign manifest is looked into like any other."""
    (tmp_path / "manifest.json").write_text("{}")

    with pytest.raises(ConfigError, match="has no mariadbd"):
        find.find(f"mariadb:11.4={tmp_path}")


def test_nothing_is_written_into_the_users_directory(tarball):
    """Links are made in the cache."""
    before = sorted(os.walk(tarball))

    find.find(f"mariadb:11.4={tarball}")

    assert sorted(os.walk(tarball)) == before
