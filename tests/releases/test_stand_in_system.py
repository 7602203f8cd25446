"""The system of stand-in hosts: made from packages that look like Debian's, and the real one where it was fetched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_dbcluster.releases import catalogue, fetched, find, shims, stand_in_system
from pytest_dbcluster.releases.catalogue import STAND_IN_SYSTEM

LIBRARIES = "x86_64-linux-gnu"


def unpacked(entry, merged):
    """An entry with files as the packages have them; its busybox has three programs."""
    root = entry / shims.ROOT
    usr = root / "usr"
    libraries = (usr if merged else root) / "lib" / LIBRARIES
    for name in (usr / "bin", usr / "sbin", usr / "lib/openssh", libraries):
        name.mkdir(parents=True)
    (usr / "bin/busybox").write_text("#!/bin/sh\necho sh; echo mount; echo bash\n")
    (usr / "bin/busybox").chmod(0o755)
    (usr / "bin/ssh-keygen").write_bytes(b"\x7fELF")
    loader = libraries / "ld-linux-x86-64.so.2"
    loader.write_text("#!/bin/sh\necho --argv0\n")
    loader.chmod(0o755)
    shell = (usr if merged else root) / "bin/bash"
    shell.parent.mkdir(exist_ok=True)
    shell.write_text("bash")
    return root


@pytest.mark.parametrize("merged", [True, False])
def test_the_root_is_merged_whatever_the_packages_have(tmp_path, merged):
    """A host of today has /bin and /lib as links into /usr; packages of older suites have them apart."""
    root = unpacked(tmp_path, merged)

    stand_in_system.make(tmp_path, ("ssh-keygen",), "amd64")

    links = {path.name: path.readlink() for path in root.iterdir() if path.is_symlink()}
    assert links == {name: Path("usr") / name for name in ("bin", "sbin", "lib")}
    assert (root / "usr/bin/bash").read_text() == "bash"
    assert (root / "lib" / LIBRARIES / "ld-linux-x86-64.so.2").exists()
    assert (root / "usr/lib/openssh").is_dir()


def test_bash_is_the_shell_and_busybox_adds_what_is_missing(tmp_path):
    """The shell of busybox would take its own programs for those of the packages."""
    root = unpacked(tmp_path, merged=False)

    stand_in_system.make(tmp_path, ("ssh-keygen",), "amd64")

    assert (root / "usr/bin/sh").readlink() == Path("bash")
    assert (root / "usr/bin/mount").readlink() == Path("busybox")
    assert (root / "usr/bin/bash").read_text() == "bash"


def test_it_comes_from_no_path_of_this_machine():
    """Its files are the root of hosts; an ssh that is installed here has none."""
    assert catalogue.offer(STAND_IN_SYSTEM, "") is not None
    assert not find._installable(STAND_IN_SYSTEM)


def test_the_fetched_programs_run_here():
    """They make the keys of the hosts, so the machine needs no ssh-keygen; the version is that of OpenSSH."""
    system = fetched.lookup(STAND_IN_SYSTEM, "")
    if system is None:
        pytest.skip(f"the system of stand-in hosts is not in the cache: dbcluster fetch {STAND_IN_SYSTEM}")
    done = subprocess.run([system.program("ssh"), "-V"], capture_output=True, text=True, check=True)

    assert done.stderr.startswith(f"OpenSSH_{system.version}p")
    assert (system.bin.parent / shims.ROOT / stand_in_system.SERVER).exists()
