"""Releases in a user's directory, copied with their libraries for hosts that have another system."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases import find, layout, local_programs, shims
from pytest_dbcluster.releases.portable import libraries
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.system import cache
from tests.support.vendor_layouts import LAYOUTS, lay_out


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def server(tmp_path):
    """``server("MySQL's tarball")``: a directory with the files of a vendor's layout."""

    def server(name):
        lay_out(LAYOUTS[name], tmp_path / "server")
        return tmp_path / "server"

    return server


def copied(name, directory, progress=lambda line: None):
    """The portable copy of the release in a directory."""
    return find.find(ReleaseName.parse(f"{LAYOUTS[name].release}={directory}"), progress=progress, portable=True)


def below(entry, path):
    """A path of a layout in the copy, whose files are those of an installation below ``usr``."""
    return str(entry / path.removeprefix("usr/")) if path else None


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_copy_has_the_files_of_the_release(name, server):
    """Programs, plugins, messages, character sets and the Galera library; nothing of it lies in the directory."""
    found = copied(name, server(name))
    (entry,) = found.trees
    plugins, messages, charsets, galera = (below(entry, path) for path in LAYOUTS[name].paths)

    assert entry.is_relative_to(cache.releases())
    assert found.server_options == layout.privacy_options(found.product) | {
        "basedir": str(entry),
        "plugin-dir": plugins,
        "lc-messages-dir": messages,
        "character-sets-dir": charsets,
    }
    assert str(found.wsrep_provider or "") == (galera or "")
    assert LAYOUTS[name].programs <= {path.name for path in found.bin.iterdir()}
    outside = [path for path in entry.rglob("*") if not path.resolve().is_relative_to(entry)]
    assert outside == []


def test_a_program_of_a_copy_starts_with_its_own_libraries(tmp_path):
    """Every library that it loads is in the copy, wherever the copy lies."""
    directory = tmp_path / "server"
    lay_out(LAYOUTS["MySQL's tarball"], directory)
    shutil.copy(shutil.which("cat"), directory / "bin" / "mysql")
    (entry,) = copied("MySQL's tarball", directory).trees
    moved = entry.rename(tmp_path / "moved")

    script = f"{moved}/bin/mysql /proc/self/maps"
    maps = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = {line.split()[-1] for line in maps.splitlines() if ".so" in line}

    assert loaded
    assert {path for path in loaded if not path.startswith(str(moved))} == set()


def test_a_copy_is_made_once(server):
    """Another call returns it at once; a changed file makes a new one."""
    directory, lines = server("MySQL's tarball"), []
    first = copied("MySQL's tarball", directory, lines.append)
    second = copied("MySQL's tarball", directory, lines.append)
    plugin = directory / "lib/plugin/group_replication.so"
    plugin.write_text("changed")
    third = copied("MySQL's tarball", directory, lines.append)

    assert first.bin == second.bin == third.bin
    assert (third.bin.parent / "lib/plugin/group_replication.so").read_text() == "changed"
    assert lines == [f"copying {directory} with its libraries, for hosts that have another system"] * 2


def test_what_no_cluster_uses_is_left_out(server):
    """Static libraries, debug plugins, other programs and the test suite are half of a tarball."""
    directory = server("MySQL's tarball")
    for name in ("lib/libmysqlclient.a", "lib/plugin/debug/group_replication.so", "mysql-test/mtr", "bin/mysqltest"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("x")
    (entry,) = copied("MySQL's tarball", directory).trees
    names = {path.name for path in entry.rglob("*")}

    assert {"libmysqlclient.a", "debug", "mtr", "mysqltest"} & names == set()
    assert "group_replication.so" in names


def test_a_directory_with_a_loader_keeps_its_own_libraries(server):
    """An unpacked system starts through its loader; libraries of this machine are not mixed into it."""
    directory = server("MySQL's packages")
    triplet = shims.TRIPLETS[shims.architecture()]
    private = directory / "usr/lib" / triplet
    private.mkdir(parents=True)
    loader = next(
        path for path in libraries.libraries_of([Path("/bin/sh").resolve()]) if path.name.startswith("ld-linux")
    )
    shutil.copy(loader, private)
    (entry,) = copied("MySQL's packages", directory).trees

    assert [path.name for path in (entry / "root/usr/lib" / triplet).iterdir()] == [loader.name]


def test_the_directory_of_the_system_is_not_copied(server, monkeypatch):
    """It has everything else too; the error names other ways."""
    directory = server("MySQL's packages")
    monkeypatch.setattr(local_programs, "SYSTEM", (directory,))

    with pytest.raises(ConfigError, match=rf"^mysql:8\.4={directory}: these programs belong to the system .*tarball"):
        copied("MySQL's packages", directory)


def test_a_fetched_release_is_its_own_copy(mariadb):
    """An entry of the cache has its libraries already."""
    found = find.find(ReleaseName.parse(f"mariadb:10.11={mariadb.bin.parent}"), portable=True)

    assert found.trees == (mariadb.bin.parent,)
