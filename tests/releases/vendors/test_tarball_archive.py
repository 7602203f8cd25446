"""The addresses of tarballs in the archives of vendors."""

from __future__ import annotations

import pytest

from pytest_dbcluster.releases.vendors.tarball_archive import TARBALLS

MYSQL = TARBALLS["mysql"]


def test_a_tarball_is_looked_for_in_the_archive_and_among_the_newest():
    """The newest patch release is not in the archive yet."""
    name = "mysql-8.4.6-linux-glibc2.28-x86_64-minimal.tar.xz"

    assert MYSQL.files("8.4.6", "amd64")[:2] == [
        f"https://cdn.mysql.com/archives/mysql-8.4/{name}",
        f"https://cdn.mysql.com/Downloads/MySQL-8.4/{name}",
    ]


@pytest.mark.parametrize(
    ("version", "architecture", "name"),
    [
        ("8.0.29", "amd64", "mysql-8.0.29-linux-glibc2.12-x86_64.tar.xz"),
        ("8.0.34", "amd64", "mysql-8.0.34-linux-glibc2.17-x86_64-minimal.tar.xz"),
        ("8.0.34", "arm64", "mysql-8.0.34-linux-glibc2.17-aarch64.tar.gz"),
        ("8.4.8", "arm64", "mysql-8.4.8-linux-glibc2.28-aarch64.tar.xz"),
    ],
)
def test_names_that_public_scripts_download_are_among_them(version, architecture, name):
    """The oldest glibc differs between versions and architectures."""
    assert name in [address.rpartition("/")[2] for address in MYSQL.files(version, architecture)]


def test_an_architecture_without_tarballs_has_no_address():
    """MySQL builds for two."""
    assert MYSQL.files("8.4.6", "riscv64") == []
