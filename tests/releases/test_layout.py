"""The paths of programs and files in each vendor's layout.

The lists of files are from mysql/mysql-server (packaging/deb-in at 04aa84ee and 023b3a2a, install_layout.cmake for
tarballs and RPMs) and percona/percona-xtradb-cluster (build-ps/debian at 0e283e56).
"""

from __future__ import annotations

import pytest

from pytest_dbcluster.releases import catalogue, find, layout
from pytest_dbcluster.spec import ReleaseName

MYSQL = "Ver 8.4.8 for Linux on x86_64 (MySQL Community Server - GPL)"
PERCONA = "Ver 8.4.6-6 for Linux on x86_64 (Percona Server (GPL), Release 6, Revision 0)"
PXC = "Ver 8.4.6-6.1 for Linux on x86_64 (Percona XtraDB Cluster (GPL), Release rel6, Revision 0, WSREP version 26.1)"
MARIADB = "Ver 11.4.10-MariaDB for Linux on x86_64 (MariaDB Server)"

# Layout -> (version, release, files). Programs are those in bin/ and sbin/.
LAYOUTS = {
    "MySQL's tarball": (
        MYSQL,
        "mysql:8.4",
        "bin/mysqld bin/mysql bin/mysqladmin bin/mysqlslap bin/mysqlbinlog bin/my_print_defaults "
        "lib/plugin/group_replication.so lib/private/libprotobuf-lite.so.3.19.4 share/english/errmsg.sys "
        "share/charsets/README",
    ),
    "MySQL's packages": (
        MYSQL,
        "mysql:8.4",
        "usr/sbin/mysqld usr/bin/mysql usr/bin/mysqladmin usr/bin/mysqlslap usr/bin/mysqlbinlog "
        "usr/bin/my_print_defaults usr/lib/mysql/plugin/group_replication.so "
        "usr/lib/mysql/private/libprotobuf-lite.so.3.19.4 usr/share/mysql-8.4/english/errmsg.sys "
        "usr/share/mysql-8.4/charsets/README",
    ),
    "MySQL's packages, charsets apart": (
        MYSQL,
        "mysql:8.4",
        "usr/sbin/mysqld usr/bin/mysql usr/lib/mysql/plugin/mysql_clone.so usr/share/mysql-8.4/english/errmsg.sys "
        "usr/share/mysql/charsets/README",
    ),
    "MySQL's RPMs": (
        MYSQL,
        "mysql:8.4",
        "usr/sbin/mysqld usr/bin/mysql usr/lib64/mysql/plugin/group_replication.so "
        "usr/share/mysql-8.4/english/errmsg.sys usr/share/mysql-8.4/charsets/README",
    ),
    "Percona's tarball": (
        PERCONA,
        "percona:8.4",
        "bin/mysqld bin/mysql bin/mysqlslap lib/plugin/group_replication.so share/english/errmsg.sys "
        "share/charsets/README",
    ),
    "PXC's packages": (
        PXC,
        "pxc:8.4",
        "usr/sbin/mysqld usr/bin/mysql usr/bin/mysqldump usr/bin/wsrep_sst_common usr/bin/wsrep_sst_xtrabackup-v2 "
        "usr/bin/pxc_extra/README usr/lib/mysql/plugin/mysql_clone.so usr/lib/galera4/libgalera_smm.so "
        "usr/share/mysql/english/errmsg.sys usr/share/mysql/charsets/README",
    ),
    "MariaDB's tarball": (
        MARIADB,
        "mariadb:11.4",
        "bin/mariadbd bin/mariadb bin/mariadb-slap scripts/mariadb-install-db lib/plugin/auth_gssapi_client.so "
        "lib/galera/libgalera_smm.so share/english/errmsg.sys share/charsets/README",
    ),
}
# Layout -> (plugin-dir, lc-messages-dir, character-sets-dir, Galera library), below the directory.
PATHS = {
    "MySQL's tarball": ("lib/plugin", "share", "share/charsets", ""),
    "MySQL's packages": ("usr/lib/mysql/plugin", "usr/share/mysql-8.4", "usr/share/mysql-8.4/charsets", ""),
    "MySQL's packages, charsets apart": (
        "usr/lib/mysql/plugin", "usr/share/mysql-8.4", "usr/share/mysql/charsets", "",
    ),
    "MySQL's RPMs": ("usr/lib64/mysql/plugin", "usr/share/mysql-8.4", "usr/share/mysql-8.4/charsets", ""),
    "Percona's tarball": ("lib/plugin", "share", "share/charsets", ""),
    "PXC's packages": (
        "usr/lib/mysql/plugin", "usr/share/mysql", "usr/share/mysql/charsets", "usr/lib/galera4/libgalera_smm.so",
    ),
    "MariaDB's tarball": ("lib/plugin", "share", "share/charsets", "lib/galera/libgalera_smm.so"),
}  # fmt: skip


def lay_out(made, root):
    """Make the files of a layout below a directory; the programs print its version."""
    version, _, files = made
    for name in files.split():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{path}  {version}'\n" if path.parent.name in ("bin", "sbin") else "")
        path.chmod(0o755)


@pytest.mark.parametrize("name", LAYOUTS)
def test_everything_is_found_in_a_vendors_layout(name, tmp_path, monkeypatch):
    """Programs, plugins, messages, character sets and the Galera library, wherever the vendor has them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "server"
    lay_out(LAYOUTS[name], root)
    _, release, files = LAYOUTS[name]
    plugins, messages, charsets, galera = (str(root / path) if path else None for path in PATHS[name])

    found = find.find(ReleaseName.parse(f"{release}={root}"))

    assert found.server_options | {"basedir": ""} == layout.privacy_options(found.product) | {
        "basedir": "",
        "plugin-dir": plugins,
        "lc-messages-dir": messages,
        "character-sets-dir": charsets,
    }
    assert str(found.wsrep_provider or "") == (galera or "")
    programs = {path.rpartition("/")[2] for path in files.split() if path.split("/")[-2] in ("bin", "sbin", "scripts")}
    assert programs <= {path.name for path in found.bin.iterdir()}


def test_xtrabackup_lies_beside_the_script_of_a_transfer(tmp_path, monkeypatch):
    """The script looks for it in pxc_extra of its own directory, which is bin/ of the release."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lay_out(LAYOUTS["PXC's packages"], tmp_path / "server")
    found = find.find(f"pxc:8.4={tmp_path / 'server'}")

    assert (found.bin / "wsrep_sst_xtrabackup-v2").exists()
    assert (found.bin / "pxc_extra" / "README").exists()


@pytest.mark.parametrize(
    ("output", "product", "version"),
    [
        (MYSQL, "mysql", "8.4.8"),
        (PERCONA, "percona", "8.4.6"),
        (PXC, "pxc", "8.4.6"),
        (MARIADB, "mariadb", "11.4.10"),
        (f"/opt/percona-and-mariadb/bin/mysqld  {MYSQL}", "mysql", "8.4.8"),
    ],
)
def test_a_server_tells_its_product_and_version(output, product, version):
    """The path of the program does not count."""
    assert (layout.product_of(output), layout.exact_version(output)) == (product, version)


@pytest.mark.parametrize("product", ["mariadb", "mysql", "percona", "pxc"])
def test_no_server_reports_to_its_vendor(product):
    """Servers of Percona would, without this option; older ones ignore it. Their agent is never fetched."""
    options = {"loose-percona-telemetry-disable": "1"} if product in ("percona", "pxc") else {}

    assert layout.privacy_options(product) == options
    assert "percona-telemetry-agent" in catalogue.NOT_FETCHED
