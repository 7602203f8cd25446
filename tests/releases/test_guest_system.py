"""The system of guests: made from packages that look like Debian's, and the real one where it was fetched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.releases import apt, catalogue, fetched, guest_system, shims
from pytest_dbcluster.releases.catalogue import GUEST_MODULES, GUEST_SYSTEM, Origin
from pytest_dbcluster.releases.sources import AptEntry, Candidate, candidates
from pytest_dbcluster.spec import ClusterSpec

OFFER = catalogue.offer(GUEST_SYSTEM, "")
ELF = b"\x7fELF" + b"\0" * 16
LIBRARIES = "usr/lib/x86_64-linux-gnu"


def unpacked(entry, kernel=ELF + guest_system.INTERPRETER + b"end", modules=(*guest_system.NEEDED, "sch_red")):
    """An entry with files as the packages have them; its busybox has three programs."""
    root = entry / shims.ROOT
    for name in ("etc", "usr/bin", "usr/sbin", LIBRARIES, f"{guest_system.MODULES}/7.2.7/kernel/net/sched"):
        (root / name).mkdir(parents=True)
    (root / "usr/bin/linux.uml").write_bytes(kernel)
    (root / "usr/bin/busybox").write_text("#!/bin/sh\necho sh; echo mount; echo ip\n")
    (root / "usr/bin/busybox").chmod(0o755)
    (root / "usr/bin/ip").write_text("#!/bin/sh\necho ip\n")
    loader = root / LIBRARIES / "ld-linux-x86-64.so.2"
    loader.write_text("#!/bin/sh\necho --argv0\n")
    loader.chmod(0o755)
    for name in modules:
        needed = "lru_cache,virtio_blk" if name == "drbd" else ""
        content = f"{name}\0depends={needed}\0".encode()
        (root / guest_system.MODULES / f"7.2.7/kernel/net/sched/{name}.ko").write_bytes(content)
    return root


def test_the_kernel_names_its_loader_relative_to_its_directory(tmp_path):
    """So an entry may be moved, and the kernel is started as itself and not by the loader."""
    root = unpacked(tmp_path)

    guest_system.make(tmp_path, ("ip",), "amd64")

    kernel = (root / "usr/bin/linux").read_bytes()
    assert kernel.startswith(ELF + guest_system.LOADER.encode() + b"\0")
    assert (kernel.endswith(b"end"), len(kernel)) == (True, len(ELF) + len(guest_system.INTERPRETER) + 3)
    assert (root / guest_system.LOADER).resolve() == root / LIBRARIES / "ld-linux-x86-64.so.2"
    assert not (root / "usr/bin/linux.uml").exists()


def test_only_the_modules_of_guests_are_kept(tmp_path):
    """The package has thousands of them."""
    root = unpacked(tmp_path)

    guest_system.make(tmp_path, ("ip",), "amd64")

    kept = sorted(path.name for path in (root / guest_system.MODULES).iterdir())
    assert kept == ["drbd.ko", "overlay.ko", "sch_netem.ko", "virtio_blk.ko"]
    assert not guest_system.is_complete(tmp_path)  # drbdadm is missing
    (root / "usr/sbin/drbdadm").touch()
    assert guest_system.is_complete(tmp_path)


def test_modprobe_finds_each_module_and_what_it_needs(tmp_path):
    """By the exact version of the kernel. What the kernel has in itself is no file."""
    root = unpacked(tmp_path)

    guest_system.make(tmp_path, ("ip",), "amd64")

    lines = (root / "lib/modules/7.2.7/modules.dep").read_text().splitlines()
    assert "/usr/lib/uml/modules/overlay.ko:" in lines
    assert "/usr/lib/uml/modules/drbd.ko: /usr/lib/uml/modules/virtio_blk.ko" in lines
    assert len(lines) == 4


def test_a_system_without_a_module_that_guests_need_is_fetched_again(tmp_path, monkeypatch):
    """One that was made before guests needed it is still in caches."""
    real = fetched.lookup(GUEST_SYSTEM, "")
    if real is None:
        pytest.skip("the system of guests is not in the cache: dbcluster fetch vm")
    monkeypatch.setattr(guest_system, "NEEDED", (*guest_system.NEEDED, "a_new_one"))

    assert fetched.lookup(GUEST_SYSTEM, "") is None


def test_busybox_adds_the_programs_that_are_missing(tmp_path):
    """A program of a package is not replaced."""
    root = unpacked(tmp_path)

    guest_system.make(tmp_path, ("ip",), "amd64")

    assert (root / "usr/bin/mount").readlink() == Path("busybox")
    assert (root / "bin/sh").exists()
    assert not (root / "usr/bin/ip").is_symlink()
    assert {name for name in guest_system.MOUNT_POINTS if not (root / name).is_dir()} == set()


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ({"kernel": ELF + b"/lib/ld-other.so\0"}, "linux.uml names another dynamic loader than /lib64/ld-linux"),
        ({"modules": ("sch_netem", "virtio_blk", "drbd")}, "the kernel's package has no module overlay"),
    ],
)
def test_a_package_of_another_shape_is_refused(tmp_path, shape, text):
    """A guest of it would not start."""
    unpacked(tmp_path, **shape)

    with pytest.raises(ProvisionError, match=text):
        guest_system.make(tmp_path, ("ip",), "amd64")


def test_the_pinned_kernel_comes_first_whatever_suite_the_machine_has():
    """Two machines measure with one kernel as long as the mirror or Debian's snapshot archive has it."""
    entries = [AptEntry("http://mirror.example/debian", "trixie", ("main",))]

    found = candidates(OFFER, entries)

    assert [(one.origin.suite, one.origin.exact) for one in found] == [
        ("sid", "7.2um1"),
        ("sid", "7.2um1"),
        ("trixie", "6.12um1"),
    ]
    assert found[1].entries[0].uri.startswith("https://snapshot.debian.org/")
    tool = candidates(catalogue.offer("sysbench", ""), entries)
    assert tool[0].origin.suite == "trixie"


def test_another_kernel_than_the_pinned_one_is_not_taken():
    """A suite goes on to newer kernels; their figures would be others."""
    candidate = Candidate(Origin("sid", ("user-mode-linux",), "7.2um1"), (), where="sid")
    newer = [apt.Package("user-mode-linux", "7.3um1", "x.deb", 1)]

    with pytest.raises(ProvisionError, match=r"^sid has user-mode-linux 7\.3um1, not 7\.2um1$"):
        apt._check_version(GUEST_SYSTEM, candidate, newer)
    apt._check_version(GUEST_SYSTEM, candidate, [apt.Package("user-mode-linux", "7.2um1+b1", "x.deb", 1)])


@pytest.fixture
def system():
    """The fetched system."""
    found = fetched.lookup(GUEST_SYSTEM, "")
    if found is None:
        pytest.skip("the system of guests is not in the cache: dbcluster fetch vm")
    return found


def test_the_fetched_kernel_runs_here(system):
    """It tells its exact version, on a system with an older C library too."""
    done = subprocess.run([system.program("linux"), "--version"], capture_output=True, text=True, check=True, cwd="/")

    assert done.stdout.strip() == system.version


def test_the_fetched_tools_run_here(system):
    """The network of guests is made with them, so the machine needs none of its own."""
    for name in ("ip", "tc"):
        done = subprocess.run(
            [system.program(name), "-V"], capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}
        )
        assert "iproute2" in done.stdout
    modules = {path.stem for path in (system.bin.parent / "root" / guest_system.MODULES).glob("*.ko")}
    assert modules <= set(GUEST_MODULES)
    assert {"overlay", "sch_netem", "drbd"} <= modules


def test_a_guest_loads_drbd_and_says_its_version(guests):
    """The program modprobe brings what it needs; drbdadm and its parts for this version find their libraries."""
    (host,) = guests.acquire(ClusterSpec("standalone", name="drbd").with_needs(memory="256M"))

    said = host.run(["/bin/sh", "-c", "modprobe drbd usermode_helper=/bin/true && cat /proc/drbd && lsmod"]).stdout
    utilities = host.run(["drbdadm", "--version"]).stdout

    guests.give_back([host])
    assert said.startswith("version: 8.4.")
    assert "lru_cache" in said
    assert "DRBD_KERNEL_VERSION_CODE=0x0804" in utilities
