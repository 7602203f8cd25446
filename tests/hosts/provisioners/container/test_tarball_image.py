"""The image of an exact version that only an archive of tarballs has; a test makes and signs the archive."""

from __future__ import annotations

import contextlib
import shutil

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.container import engine, images
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.releases import shims, sources
from pytest_dbcluster.releases.vendors import tarball_archive
from pytest_dbcluster.releases.vendors.tarball_archive import Signer, TarballArchive
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from tests.support import engines, vendor_layouts
from tests.support.clusters import bring_up
from tests.support.facts import missing
from tests.support.vendor_repository import SigningKey

TITLE = "the archive of a test"

pytestmark = [
    pytest.mark.skipif(bool(engines.missing()), reason=engines.missing() or "an engine answers"),
    pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg to sign with"),
]


@pytest.fixture(scope="module")
def version(mysql, tmp_path_factory):
    """The version of the fetched MySQL, which only a signed archive has; the cache is empty, and apt has no sources."""
    place = tmp_path_factory.mktemp("archive")
    key = SigningKey(place / "keys")
    laid_out = vendor_layouts.mysql_tarball(mysql, place / f"mysql-{mysql.version}")
    file = vendor_layouts.pack(laid_out, place / "archive" / f"mysql-{mysql.version}.tar")
    key.sign_beside(file)
    key.end()
    signer = Signer("MySQL", TITLE, key.fingerprint, key.public)
    names = {shims.architecture(): ["mysql-{version}.tar"]}
    made = TarballArchive(TITLE, [f"file:{file.parent}"], names, [signer])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tarball_archive.TARBALLS, "mysql", made)
        patch.setattr(sources, "host_entries", list)
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        yield mysql.version


@pytest.fixture(scope="module")
def answering(version):
    """The engine, without the image of the version afterwards."""
    with contextlib.closing(engine.connect()) as made:
        yield made
        for image in images.list_images(made, f"mysql:{version}"):
            made.client.images.remove(image.id, force=True)


def test_an_image_is_made_from_the_archive(version, answering):
    """Progress says why no package was used. A server starts in a container of the image, with its own files."""
    lines = []
    made = images.build(images.offer(f"mysql:{version}"), answering, lines.append)
    provisioner = ContainerProvisioner()
    try:
        release = provisioner.supply(ReleaseName("mysql", version), print)
        cluster = bring_up(ClusterSpec("standalone", release=release.release_name), release, provisioner, options={})
        ((full, *paths),) = cluster.nodes[0].query("SELECT @@version, @@plugin_dir, @@character_sets_dir")
        cluster.close()
    finally:
        provisioner.close()

    assert (made.tag, made.exact) == (f"pytest-dbcluster/mysql:{version}", version)
    assert [line for line in lines if missing(line, "no image of mysql:", f"looking in {TITLE}") == []]
    assert full.startswith(version)
    assert paths == ["/usr/local/mysql/lib/plugin/", "/usr/local/mysql/share/charsets/"]
    assert release.path_of("mysqlslap")


def test_a_version_that_no_source_has_names_both_reasons(version, answering):
    """Those of the packages and of the archive."""
    with pytest.raises(ProvisionError) as caught:
        images.build(images.offer("mysql:8.4.1"), answering, lambda line: None)
    assert missing(caught.value, "no image of mysql:8.4.1", f"{TITLE} has no tarball of 8.4.1") == []
