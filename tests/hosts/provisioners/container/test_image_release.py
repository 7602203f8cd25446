"""Releases in images, in the layouts of the vendors' official images. The images themselves were not pulled."""

from __future__ import annotations

import dataclasses
import fnmatch
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_dbcluster.clusters.topologies.galera import Galera
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.container import image_release
from pytest_dbcluster.releases import layout
from pytest_dbcluster.spec import ReleaseName
from tests.support.facts import missing
from tests.support.vendor_layouts import LAYOUTS

IMAGES = {made.release: made for made in LAYOUTS.values() if made.image}


class ImageHost:
    """A container of an image: it lists files, and its server prints its version."""

    def __init__(self, made):
        self.version, self.files = made.version, [f"/{file}" for file in made.files.split()]

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
    """The release in an image; ``image``: a layout, or the name of one of IMAGES."""
    made = IMAGES[image] if isinstance(image, str) else image
    return image_release.find(ReleaseName.parse(name), "vendor/image", "sha256:1", ImageHost(made))


@pytest.mark.parametrize("name", IMAGES)
def test_programs_are_found_where_the_vendor_has_them(name):
    """The server, its plugins, messages, character sets and the Galera library; the product is that of the server."""
    plugins, messages, charsets, galera = (f"/{path}" if path else "" for path in IMAGES[name].paths)
    found = find(name, name)
    server = layout.SERVERS[found.product][0]

    assert found.program(server) == Path("/usr/sbin", server)
    assert IMAGES[name].programs <= {Path(file).name for file in found.files}
    assert found.server_options == layout.privacy_options(found.product) | {
        "plugin-dir": plugins,
        "lc-messages-dir": messages,
        "character-sets-dir": charsets,
    }
    assert str(found.wsrep_provider or "") == galera
    assert (str(found.release_name), found.image) == (name, "sha256:1")


def test_images_of_all_vendors_are_tested():
    """A new product needs the layout of its image in this test."""
    assert {name.partition(":")[0] for name in IMAGES} == set(layout.SERVERS)


@pytest.mark.parametrize(("asked", "image"), [("mysql:8.4", "percona:8.4"), ("percona:8.4", "pxc:8.4")])
def test_an_image_of_another_product_is_refused(asked, image):
    """Its numbers would stand in a table under a wrong name."""
    with pytest.raises(
        ConfigError, match=rf"^{asked}: the server of image vendor/image is {image.partition(':')[0]} 8"
    ):
        find(asked, image)


def without_backup(version):
    """The layout of MariaDB's image with another version, without the programs of full state transfers."""
    made = IMAGES["mariadb:11.4"]
    files = [file for file in made.files.split() if not file.endswith(("backup", "socat", "mbstream"))]
    return dataclasses.replace(made, version=f"Ver {version}-MariaDB for Linux", files=" ".join(files))


def test_programs_of_state_transfers_come_from_a_cached_release_of_the_series(mariadb):
    """The patch release may be another one. An image that has all of them uses its own."""
    bare = find("mariadb:10.11", without_backup("10.11.4"))
    whole = dataclasses.replace(bare, files=bare.files | {"/usr/bin/" + one for one in layout.TRANSFERS["mariadb"]})

    assert bare.lacks_for_transfers == ["wsrep_sst_mariabackup", "mariadb-backup", "mbstream", "socat"]
    assert bare.transfer_tools == mariadb.bin
    assert Galera().lacks(bare) == ""
    assert (whole.lacks_for_transfers, mariadb.lacks_for_transfers) == ([], [])


def test_without_a_cached_release_of_the_series_the_image_runs_no_galera(tmp_path, monkeypatch):
    """A backup program of another series cannot read the data; the reason names the command that fetches it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reason = Galera().lacks(find("mariadb:11.4", without_backup("11.4.10")))

    facts = ("mariadb:11.4 (image vendor/image) lacks", "mariadb-backup", "socat", "`dbcluster fetch mariadb:11.4`")
    assert missing(reason, *facts) == []
