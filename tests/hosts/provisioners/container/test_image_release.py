"""Releases in images, in the layouts of the vendors' official images.

The paths are those of docker-library/mysql at 7f30fdb, MariaDB/mariadb-docker at 1b6429b and percona/percona-docker at
5c654083. The images themselves were not pulled.
"""

from __future__ import annotations

import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.container import image_release
from pytest_dbcluster.spec import ReleaseName
from tests.releases.test_layout import MARIADB, MYSQL, PERCONA, PXC

# Release -> (version, files)
IMAGES = {
    "mysql:8.4": (
        MYSQL,
        "/usr/sbin/mysqld /usr/bin/mysql /usr/bin/mysqladmin /usr/bin/mysqldump /usr/bin/my_print_defaults "
        "/usr/lib64/mysql/plugin/group_replication.so",
    ),
    "mariadb:11.4": (
        MARIADB,
        "/usr/sbin/mariadbd /usr/bin/mariadb /usr/bin/mariadb-slap /usr/bin/mariadb-backup /usr/bin/socat "
        "/usr/lib/mysql/plugin/auth_gssapi.so /usr/lib/galera/libgalera_smm.so",
    ),
    "percona:8.4": (
        PERCONA,
        "/usr/sbin/mysqld /usr/bin/mysql /usr/bin/mysqldump /usr/lib64/mysql/plugin/group_replication.so",
    ),
    "pxc:8.4": (
        PXC,
        "/usr/sbin/mysqld /usr/bin/mysql /usr/bin/wsrep_sst_xtrabackup-v2 /usr/lib64/mysql/plugin/mysql_clone.so "
        "/usr/lib64/galera4/libgalera_smm.so",
    ),
}
# Release -> (server, plugin directory, Galera library)
FOUND = {
    "mysql:8.4": ("/usr/sbin/mysqld", "/usr/lib64/mysql/plugin", None),
    "mariadb:11.4": ("/usr/sbin/mariadbd", "/usr/lib/mysql/plugin", "/usr/lib/galera/libgalera_smm.so"),
    "percona:8.4": ("/usr/sbin/mysqld", "/usr/lib64/mysql/plugin", None),
    "pxc:8.4": ("/usr/sbin/mysqld", "/usr/lib64/mysql/plugin", "/usr/lib64/galera4/libgalera_smm.so"),
}


class ImageHost:
    """A container of an image: it lists files, and its server prints its version."""

    def __init__(self, version, files):
        self.version, self.files = version, files.split()

    def run(self, argv):
        """The output of ``ls -d PATTERNS``, or of the server."""
        if argv[0] != "/bin/sh":
            return SimpleNamespace(stdout=f"{argv[0]}  {self.version}\n")
        patterns = [word for word in argv[2].split() if word.startswith("/") and word.endswith("*")]
        found = [file for file in self.files if any(matches(file, pattern) for pattern in patterns)]
        return SimpleNamespace(stdout="\n".join(found))


def matches(file, pattern):
    """Whether a file is in the directory of a pattern, as for a shell."""
    return fnmatch.fnmatchcase(file, pattern) and file.count("/") == pattern.count("/")


def find(name, image):
    """The release in an image of IMAGES."""
    return image_release.find(ReleaseName.parse(name), "vendor/image", "sha256:1", ImageHost(*IMAGES[image]))


@pytest.mark.parametrize("name", IMAGES)
def test_programs_are_found_where_the_vendor_has_them(name):
    """The server, its plugins and the Galera library; the product is what the server tells of itself."""
    server, plugins, galera = FOUND[name]
    found = find(name, name)

    assert found.program(Path(server).name) == Path(server)
    assert found.server_options["plugin-dir"] == plugins
    assert str(found.wsrep_provider or "") == (galera or "")
    assert (str(found.plain_name), found.image) == (name, "sha256:1")
    assert ("loose-percona-telemetry-disable" in found.server_options) == (found.product in ("percona", "pxc"))


@pytest.mark.parametrize(("asked", "image"), [("mysql:8.4", "percona:8.4"), ("percona:8.4", "pxc:8.4")])
def test_an_image_of_another_product_is_refused(asked, image):
    """Its numbers would stand in a table under a wrong name."""
    with pytest.raises(
        ConfigError, match=rf"^{asked}: the server of image vendor/image is {image.partition(':')[0]} 8"
    ):
        find(asked, image)
