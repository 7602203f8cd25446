"""The files of each vendor's packages, tarballs and images, and stand-ins with real programs in these places.

Each list is a part of the vendor's own list of files: programs and plugins that a cluster uses, one message file, and
one character set. ``source`` names that list with its commit.
"""

from __future__ import annotations

import dataclasses
import tarfile
from pathlib import Path

from pytest_dbcluster.releases.release import Release

MYSQL = "Ver 8.4.8 for Linux on x86_64 (MySQL Community Server - GPL)"
PERCONA = "Ver 8.4.6-6 for Linux on x86_64 (Percona Server (GPL), Release 6, Revision 0)"
PXC = "Ver 8.4.6-6.1 for Linux on x86_64 (Percona XtraDB Cluster (GPL), Release rel6, Revision 0, WSREP version 26.1)"
MARIADB = "Ver 11.4.10-MariaDB for Linux on x86_64 (MariaDB Server)"
PROGRAMS = ("bin", "sbin", "scripts")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Files of one vendor, below the directory or the root of an image."""

    version: str
    """What its server prints as its version."""

    release: str
    """The name of the release."""

    source: str
    """The vendor's list of files: repository, path and commit."""

    files: str
    """The paths, separated by spaces."""

    paths: tuple[str, str, str, str]
    """The directories of plugins, messages and character sets, and the Galera library; empty for none."""

    image: bool = False
    """Whether it is the layout of an official image."""

    @property
    def programs(self) -> set[str]:
        """The names of its programs."""
        return {path.rpartition("/")[2] for path in self.files.split() if path.split("/")[-2] in PROGRAMS}


# Further options of INSTALL_LAYOUT, such as the directories of tarballs, are in cmake/install_layout.cmake.
LAYOUTS = {
    "MySQL's tarball": Layout(
        MYSQL,
        "mysql:8.4",
        "mysql/mysql-server, cmake/install_layout.cmake (STANDALONE) at 04aa84ee",
        "bin/mysqld bin/mysql bin/mysqladmin bin/mysqlslap bin/mysqlbinlog bin/my_print_defaults "
        "lib/plugin/group_replication.so lib/private/libprotobuf-lite.so.3.19.4 share/english/errmsg.sys "
        "share/charsets/Index.xml",
        ("lib/plugin", "share", "share/charsets", ""),
    ),
    "MySQL's packages": Layout(
        MYSQL,
        "mysql:8.4",
        "mysql/mysql-server, packaging/deb-in at 04aa84ee",
        "usr/sbin/mysqld usr/bin/mysql usr/bin/mysqladmin usr/bin/mysqlslap usr/bin/mysqlbinlog "
        "usr/bin/my_print_defaults usr/lib/mysql/plugin/group_replication.so "
        "usr/lib/mysql/private/libprotobuf-lite.so.3.19.4 usr/share/mysql-8.4/english/errmsg.sys "
        "usr/share/mysql-8.4/charsets/Index.xml",
        ("usr/lib/mysql/plugin", "usr/share/mysql-8.4", "usr/share/mysql-8.4/charsets", ""),
    ),
    "MySQL's packages, charsets apart": Layout(
        MYSQL,
        "mysql:8.4",
        "mysql/mysql-server, packaging/deb-in at 023b3a2a",
        "usr/sbin/mysqld usr/bin/mysql usr/lib/mysql/plugin/mysql_clone.so usr/share/mysql-8.4/english/errmsg.sys "
        "usr/share/mysql/charsets/Index.xml",
        ("usr/lib/mysql/plugin", "usr/share/mysql-8.4", "usr/share/mysql/charsets", ""),
    ),
    "MySQL's RPMs": Layout(
        MYSQL,
        "mysql:8.4",
        "mysql/mysql-server, cmake/install_layout.cmake (RPM) at 04aa84ee",
        "usr/sbin/mysqld usr/bin/mysql usr/lib64/mysql/plugin/group_replication.so "
        "usr/share/mysql-8.4/english/errmsg.sys usr/share/mysql-8.4/charsets/Index.xml",
        ("usr/lib64/mysql/plugin", "usr/share/mysql-8.4", "usr/share/mysql-8.4/charsets", ""),
    ),
    # mysql-community-server-minimal: without mysqlslap, mysqlbinlog and Router.
    "MySQL's image": Layout(
        MYSQL,
        "mysql:8.4",
        "docker-library/mysql, 8.4/Dockerfile.oracle at 3447d2db; mysql/mysql-server, "
        "packaging/rpm-docker/mysql.spec.in at 00ab1e00",
        "usr/sbin/mysqld usr/bin/mysql usr/bin/mysqladmin usr/bin/mysqldump usr/bin/my_print_defaults "
        "usr/lib64/mysql/plugin/group_replication.so usr/share/mysql-8.4/english/errmsg.sys "
        "usr/share/mysql-8.4/charsets/Index.xml",
        ("usr/lib64/mysql/plugin", "usr/share/mysql-8.4", "usr/share/mysql-8.4/charsets", ""),
        image=True,
    ),
    "MariaDB's tarball": Layout(
        MARIADB,
        "mariadb:11.4",
        "MariaDB/server, cmake/install_layout.cmake (STANDALONE) at 00d1db7a",
        "bin/mariadbd bin/mariadb bin/mariadb-slap scripts/mariadb-install-db lib/plugin/auth_gssapi_client.so "
        "lib/galera/libgalera_smm.so share/english/errmsg.sys share/charsets/Index.xml",
        ("lib/plugin", "share", "share/charsets", "lib/galera/libgalera_smm.so"),
    ),
    "MariaDB's image": Layout(
        MARIADB,
        "mariadb:11.4",
        "MariaDB/mariadb-docker, 11.4/Dockerfile at 0c710468; MariaDB/server, debian/mariadb-server.install at "
        "070e4ce3, mariadb-server-core.install at 0b845571, mariadb-client.install at 0d3f7a11",
        "usr/sbin/mariadbd usr/bin/mariadb-install-db usr/bin/mariadb-admin usr/bin/mariadb-binlog "
        "usr/bin/mariadb-dump usr/bin/mariadb-slap usr/bin/mariadb-backup usr/bin/socat usr/bin/wsrep_sst_common "
        "usr/bin/wsrep_sst_mariabackup usr/lib/mysql/plugin/auth_ed25519.so usr/lib/galera/libgalera_smm.so "
        "usr/share/mysql/english/errmsg.sys usr/share/mysql/charsets/Index.xml",
        (
            "usr/lib/mysql/plugin",
            "usr/share/mysql",
            "usr/share/mysql/charsets",
            "usr/lib/galera/libgalera_smm.so",
        ),
        image=True,
    ),
    "Percona's tarball": Layout(
        PERCONA,
        "percona:8.4",
        "mysql/mysql-server, cmake/install_layout.cmake (STANDALONE) at 04aa84ee",
        "bin/mysqld bin/mysql bin/mysqlslap lib/plugin/group_replication.so share/english/errmsg.sys "
        "share/charsets/Index.xml",
        ("lib/plugin", "share", "share/charsets", ""),
    ),
    "Percona's RPMs and image": Layout(
        PERCONA,
        "percona:8.4",
        "percona/percona-server, build-ps/percona-server.spec at 0016ff42; percona/percona-docker, "
        "percona-server-8.4 at 5c654083",
        "usr/sbin/mysqld usr/bin/my_print_defaults usr/bin/mysql usr/bin/mysqladmin usr/bin/mysqlbinlog "
        "usr/bin/mysqldump usr/bin/mysqlslap usr/lib64/mysql/plugin/group_replication.so "
        "usr/lib64/mysql/private/libprotobuf-lite.so.3.11.4 usr/share/percona-server/english/errmsg.sys "
        "usr/share/percona-server/charsets/Index.xml",
        ("usr/lib64/mysql/plugin", "usr/share/percona-server", "usr/share/percona-server/charsets", ""),
        image=True,
    ),
    "PXC's packages": Layout(
        PXC,
        "pxc:8.4",
        "percona/percona-xtradb-cluster, build-ps/debian at 0e283e56",
        "usr/sbin/mysqld usr/bin/mysql usr/bin/mysqldump usr/bin/wsrep_sst_common usr/bin/wsrep_sst_xtrabackup-v2 "
        "usr/bin/pxc_extra/README usr/lib/mysql/plugin/mysql_clone.so usr/lib/galera4/libgalera_smm.so "
        "usr/share/mysql/english/errmsg.sys usr/share/mysql/charsets/Index.xml",
        ("usr/lib/mysql/plugin", "usr/share/mysql", "usr/share/mysql/charsets", "usr/lib/galera4/libgalera_smm.so"),
    ),
    "PXC's image": Layout(
        PXC,
        "pxc:8.4",
        "percona/percona-docker, percona-xtradb-cluster-8.4 at 5c654083",
        "usr/sbin/mysqld usr/bin/mysql usr/bin/mysqldump usr/bin/mysqladmin usr/bin/mysqlbinlog "
        "usr/bin/wsrep_sst_xtrabackup-v2 usr/lib64/mysql/plugin/mysql_clone.so usr/lib64/galera4/libgalera_smm.so "
        "usr/share/percona-xtradb-cluster/english/errmsg.sys usr/share/percona-xtradb-cluster/charsets/Index.xml",
        (
            "usr/lib64/mysql/plugin",
            "usr/share/percona-xtradb-cluster",
            "usr/share/percona-xtradb-cluster/charsets",
            "usr/lib64/galera4/libgalera_smm.so",
        ),
        image=True,
    ),
}


def lay_out(made: Layout, root: Path) -> None:
    """Make the files of a layout below a directory; the programs print its version."""
    for name in made.files.split():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{path}  {made.version}'\n" if path.parent.name in PROGRAMS else "")
        path.chmod(0o755)


# Stands for a program of a vendor's tarball, whose own libraries are in lib/private.
WRAPPED = """\
#!/bin/sh
here=$(readlink -f "$0"); private=${{here%/*/*}}/lib/private
exec "$private/{loader}" --inhibit-cache --library-path "$private" --argv0 "$0" "$private/{program}" "$@"
"""


def mysql_tarball(mysql: Release, made: Path) -> Path:
    """The fetched server of MySQL, laid out as the vendor's unpacked tarball is, as links to the original files.

    It lacks plugins that only clients load, and the second name of each library: half of the bytes.
    """
    unpacked, private = mysql.bin.parent / "root", made / "lib" / "private"
    for part in ("bin", "lib/private", "lib/plugin", "share"):
        (made / part).mkdir(parents=True)
    libraries = [*(unpacked / "usr/lib").glob("*-linux-gnu/*.so*")]
    linked = {library.resolve().name for library in libraries if library.is_symlink()}
    for library in libraries:
        if library.is_symlink() or library.name not in linked:
            (private / library.name).symlink_to(library)
    loader = next(private.glob("ld-linux*.so.*")).name
    for program in ("sbin/mysqld", "bin/mysql", "bin/mysqlslap"):
        original = unpacked / "usr" / program
        (private / original.name).symlink_to(original)
        (made / "bin" / original.name).write_text(WRAPPED.format(loader=loader, program=original.name))
        (made / "bin" / original.name).chmod(0o755)
    for plugin in (unpacked / "usr/lib/mysql/plugin").glob("*.so"):
        if not plugin.name.endswith("_client.so"):
            (made / "lib" / "plugin" / plugin.name).symlink_to(plugin)
    for part in ("english", "charsets"):
        (made / "share" / part).symlink_to(unpacked / "usr/share/mysql" / part)
    return made


def pack(directory: Path, file: Path) -> Path:
    """Write a tarball with a directory, and with files in place of its links. Returns its path."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w", dereference=True) as tar:
        tar.add(directory, directory.name)
    return file
