"""Releases in tarballs: ``mysql:8.4=FILE.tar.xz``."""

from __future__ import annotations

import re
import shutil
import tarfile

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases import find, tarballs
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.system import cache
from tests.support.vendor_layouts import LAYOUTS, lay_out

NAME = "mysql-8.4.8-linux-glibc2.17-x86_64"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def pack(tmp_path):
    """``pack(suffix, layout)``: a tarball of a vendor's layout in a directory, as vendors make them."""

    def pack(suffix, layout="MySQL's tarball", top=NAME):
        root = tmp_path / "made" / NAME
        if not root.exists():
            lay_out(LAYOUTS[layout], root)
        file = tmp_path / f"{NAME}{suffix}"
        with tarfile.open(file, f"w:{suffix.rpartition('.')[2].replace('tar', '')}") as tar:
            tar.add(root, top)
        return file

    return pack


@pytest.mark.parametrize("suffix", [".tar.xz", ".tar.gz", ".tar"])
def test_a_tarball_is_a_release(pack, suffix):
    """It is unpacked into the cache, and its programs are used from there."""
    file = pack(suffix)
    told = []

    found = find.find(f"mysql:8.4={file}", progress=told.append)

    assert (found.name, found.version) == ("mysql:8.4", "8.4.8")
    assert found.program("mysqld").resolve().is_relative_to(cache.releases())
    assert found.server_options["plugin-dir"].endswith(f"/{NAME}/lib/plugin")
    assert found.source.startswith(f"{file} (in {cache.releases()}/tar-")
    assert all(tree.is_relative_to(cache.root()) for tree in found.trees)
    assert found.trees
    assert told == [f"unpacking {file}"]


def test_a_system_without_apt_takes_a_tarball(pack, tmp_path, monkeypatch):
    """Rocky Linux and others have neither apt nor dpkg; tar and gzip are enough."""
    (tmp_path / "bin").mkdir()
    for name in ("tar", "gzip"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    assert find.find(f"mysql:8.4={pack('.tar.gz')}").version == "8.4.8"


def test_a_tarball_is_unpacked_once(pack):
    """Only another file at the same path is unpacked again."""
    file, told = pack(".tar.gz"), []
    first = find.find(f"mysql:8.4={file}", progress=told.append)
    second = find.find(f"mysql:8.4={file}", progress=told.append)
    file.touch()
    third = find.find(f"mysql:8.4={file}", progress=told.append)

    assert first.bin == second.bin
    assert third.bin != first.bin
    assert told == [f"unpacking {file}"] * 2


def test_a_tarball_without_a_directory_is_a_release(pack):
    """Its programs lie at its top."""
    assert find.find(f"mysql:8.4={pack('.tar.gz', top='.')}").version == "8.4.8"


def test_a_tarball_of_another_version_is_refused(pack):
    """The error has both versions, as for a directory."""
    with pytest.raises(ConfigError, match=r"^mysql:8\.0: the server of .* is mysql 8\.4\.8$"):
        find.find(f"mysql:8.0={pack('.tar.gz')}")


def test_a_damaged_tarball_leaves_nothing(tmp_path):
    """The error has the words of tar, and the cache has no part of it."""
    file = tmp_path / "broken.tar.gz"
    file.write_bytes(b"no tarball")

    with pytest.raises(ConfigError, match=rf"^cannot unpack {re.escape(str(file))}: .*tar"):
        find.find(f"mysql:8.4={file}")
    assert [path for path in cache.releases().glob("*") if path.is_dir()] == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none", "there is no directory {path}$"),
        ("mysqld", r"{path} is neither a directory nor a tarball \(\.tar\.xz, \.tar\.gz"),
        ("server.zip", "{path} is neither a directory nor a tarball"),
    ],
)
def test_what_is_no_release_is_refused_before_a_run(tmp_path, name, why):
    """Without unpacking anything; the error has the release as it was written."""
    path = tmp_path / name
    if name != "none":
        path.write_text("x")

    with pytest.raises(
        ConfigError, match=rf"^mysql:8\.4={re.escape(str(path))}: {why.format(path=re.escape(str(path)))}"
    ):
        find.check(ReleaseName.parse(f"mysql:8.4={path}"))


def test_a_tarball_is_checked_without_unpacking_it(pack):
    """A run begins without waiting for that."""
    file = pack(".tar.gz")

    find.check(ReleaseName.parse(f"mysql:8.4={file}"))
    tarballs.check(f"mysql:8.4={file.parent}")

    assert not cache.releases().exists()
