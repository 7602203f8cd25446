"""Shims: which programs get one, and how it starts them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.releases import shims

NATIVE = {"x86_64": "amd64", "aarch64": "arm64"}[shims.machine()]


@pytest.fixture
def entry(tmp_path):
    """An unpacked release with a loader, an ELF program, scripts and links, as packages have them."""
    root = tmp_path / "root"
    libraries = root / "usr/lib" / shims.TRIPLETS[NATIVE]
    for directory in (libraries, root / "usr/bin", root / "usr/sbin", root / "etc/alternatives"):
        directory.mkdir(parents=True)
    (libraries / "ld-linux-own.so.2").write_text('#!/bin/sh\necho loader: "$@"\n')
    (libraries / "ld-linux-own.so.2").chmod(0o755)
    for name in ("sbin/mariadbd", "bin/mariadb-slap", "bin/unwanted", "bin/socat1"):
        (root / "usr" / name).write_bytes(b"\x7fELF...")
    (root / "usr/sbin/mysqld").symlink_to("mariadbd")
    (root / "usr/bin/socat").symlink_to("/etc/alternatives/socat")
    (root / "etc/alternatives/socat").symlink_to("/usr/bin/socat1")
    (root / "usr/bin/mariadb-install-db").write_text("#!/bin/sh\n")
    (root / "usr/bin/mariadb-report").write_text("#!/usr/bin/perl\n")
    (root / "usr/bin/wsrep_sst_common").write_text("# read by others\n")
    return tmp_path


def made(entry, **options):
    """The bin/ of the release."""
    patterns = ("mariadb*", "mysqld", "socat", "wsrep_sst_*")
    return shims.make(entry, patterns, NATIVE, **options)


def test_programs_run_through_the_releases_own_loader(entry):
    """A shim execs the loader under the program's name, with the release's libraries and nothing of the environment."""
    text = (made(entry) / "mariadbd").read_text()

    assert f'exec "$home/loader/mariadbd" --inhibit-cache --library-path "$home/{shims.ROOT}/usr/lib/' in text
    assert f'"$home/{shims.ROOT}/usr/sbin/mariadbd" "$@"' in text
    assert str(entry) not in text
    assert (entry / "loader/mariadbd").resolve().name == "ld-linux-own.so.2"


def test_libraries_of_one_package_are_found(entry):
    """The router's plugins need libraries beside those that every program finds; they come last."""
    (entry / "root/usr/lib/mysql-router").mkdir()
    text = (made(entry) / "mariadbd").read_text()

    assert f'{shims.TRIPLETS[NATIVE]}:$home/{shims.ROOT}/usr/lib/mysql-router" ' in text


def test_scripts_are_copied_and_perl_is_not(entry):
    """Shell scripts lie beside the programs that they call; what needs perl is left out, perl is not fetched."""
    names = {path.name for path in made(entry).iterdir()}

    assert {"mariadb-install-db", "wsrep_sst_common", "mariadb-slap", "mysqld"} <= names
    assert not {"mariadb-report", "unwanted"} & names


def test_a_product_has_both_of_its_names(entry):
    """Suites differ in which of MariaDB's names they have; a link that is there is kept."""
    bin_ = made(entry)
    before = (bin_ / "mysqld").read_text()
    shims.add_other_names(bin_, "mariadb")

    assert {path.name: path.readlink().name for path in bin_.iterdir() if path.is_symlink()} == {
        "mysqlslap": "mariadb-slap",
        "mysql_install_db": "mariadb-install-db",
    }
    assert (bin_ / "mysqld").read_text() == before


def test_one_products_names_are_not_given_to_another(tmp_path):
    """MySQL has one name for each program; a link named mariadb would lead to the wrong server."""
    for name in ("mysqld", "mysqlslap"):
        (tmp_path / name).touch()
    shims.add_other_names(tmp_path, "mysql")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["mysqld", "mysqlslap"]


def test_absolute_links_stay_inside_the_release(entry):
    """A link to /etc/alternatives means that of the release, not that of the host."""
    assert f'"$home/{shims.ROOT}/usr/bin/socat1" "$@"' in (made(entry) / "socat").read_text()


def test_other_programs_are_removed(entry):
    """What got no shim takes no space; what a shim starts is kept, through its links."""
    made(entry)

    kept = {path.name for part in ("usr/bin", "usr/sbin") for path in (entry / "root" / part).iterdir()}
    assert kept == {
        "mariadbd",
        "mysqld",
        "mariadb-slap",
        "mariadb-install-db",
        "mariadb-report",
        "wsrep_sst_common",
        "socat1",
    }


def test_other_programs_of_a_users_directory_are_kept(entry):
    """In a directory that the user named nothing is removed."""
    made(entry, remove_others=False)

    assert (entry / "root/usr/bin/unwanted").exists()


def test_a_release_without_a_loader_is_refused(entry):
    """The error names the directory and the architecture."""
    shutil.rmtree(entry / "root/usr/lib")

    with pytest.raises(ProvisionError, match=f"root has no dynamic loader for {NATIVE}"):
        made(entry)


def test_a_loader_is_told_from_none(entry):
    """Unpacked packages without libc run with the host's."""
    assert shims.has_loader(entry / "root")
    assert not shims.has_loader(Path("/nonexistent"))


def test_the_architecture_is_known_without_dpkg(monkeypatch):
    """The kernel's name stands for dpkg's; on others no release runs."""
    monkeypatch.setenv("PATH", "/nonexistent")
    assert shims.architecture() == NATIVE

    monkeypatch.setattr(shims, "machine", lambda: "riscv64")
    with pytest.raises(Unsupported, match=r"^releases run on x86_64 and aarch64, not on riscv64$"):
        shims.architecture()


def test_xtrabackup_is_where_the_script_of_a_transfer_looks(entry):
    """Percona XtraDB Cluster has it beside the script; each of its programs also runs through the loader."""
    for version in ("pxb-8.0", "pxb-8.4"):
        place = entry / f"root/usr/bin/pxc_extra/{version}/bin"
        place.mkdir(parents=True)
        (place / "xtrabackup").write_bytes(b"\x7fELF...")
    bin_ = made(entry)

    for version in ("pxb-8.0", "pxb-8.4"):
        program = entry.joinpath("root", "usr", "bin", "pxc_extra", version, "bin", "xtrabackup")
        output = subprocess.check_output([bin_ / f"pxc_extra/{version}/bin/xtrabackup", "--x"], text=True)
        assert f"{program} --x\n" in output


def test_the_program_of_a_server_is_not_its_loader(entry):
    """A transfer starts the program in /proc/PID/exe, or the server in PATH where that has no answer."""
    (entry / "root/usr/bin/pxc_extra/pxb-8.4/bin").mkdir(parents=True)
    (entry / "root/usr/bin/pxc_extra/pxb-8.4/bin/xbstream").write_bytes(b"\x7fELF...")
    readlink = made(entry) / "readlink"
    (entry / "link").symlink_to("root")

    def read(path):
        environment = {"PATH": f"{readlink.parent}:/usr/bin:/bin"}
        command = ["sh", "-c", 'readlink -f "$1"', "sh", str(path)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert read(f"/proc/{os.getpid()}/exe") == ""
    assert read(entry / "link") == f"{entry}/root\n"


def test_other_products_have_no_readlink(entry):
    """Only the scripts of Percona XtraDB Cluster ask for the program of a server."""
    assert not (made(entry) / "readlink").exists()
