"""The system of guests: a kernel that runs as a process (user-mode Linux), and the files that guests see as their root.

The kernel is a program of another suite, and it finds its own memory in /proc/self/maps. A shim would start it through
the dynamic loader, and it would mistake the loader's memory for its own. So we set its interpreter to the loader of its
suite. The path is relative to the working directory, so that an entry of the cache may be moved.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.releases import apt, shims
from pytest_dbcluster.releases.catalogue import GUEST_MODULES

KERNEL = "linux"
MODULES = "usr/lib/uml/modules"
# Mount points of a guest, which the packages of a whole system would contain.
MOUNT_POINTS = ("dev", "mnt", "proc", "root", "run", "sys", "tmp")
INTERPRETER = b"/lib64/ld-linux-x86-64.so.2\0"
LOADER = "usr/lib/ld.so"
NEEDED = ("overlay", "sch_netem", "virtio_blk", "drbd")  # modules that every guest needs
DEPENDENCIES = "modules.dep"  # the file that modprobe reads
DEPENDS = re.compile(rb"\0depends=([\w,-]*)\0")  # in a module: the modules to load before it
PROGRAMS = ("usr/sbin/drbdadm",)
ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}

_KERNEL_SHIM = """\
#!/bin/sh
home=${{0%/*}}; home=${{home%/*}}
[ -e "$home/{root}" ] || {{ home=$(readlink -f "$0"); home=${{home%/*/*}}; }}
cd "$home/{root}" || exit 126
LD_LIBRARY_PATH={libraries} exec usr/bin/{kernel} "$@"
"""


def make(entry: Path, programs: tuple[str, ...], architecture: str) -> None:
    """Make ``entry/bin`` with the kernel and shims of ``programs``, and ``entry/root`` a root directory of guests.

    Raises ProvisionError if the kernel has another layout than expected, or lacks a module that guests need.
    """
    unpacked = entry / shims.ROOT
    shims.make(entry, programs, architecture, remove_others=False)
    _complete(unpacked)
    _keep_modules(unpacked)
    libraries = unpacked / "usr/lib" / shims.TRIPLETS[architecture]
    name_loader(unpacked / "usr/bin/linux.uml", unpacked / "usr/bin" / KERNEL)
    loader = next(libraries.glob("ld-linux*.so.*"))
    (unpacked / LOADER).symlink_to(f"{libraries.name}/{loader.name}")
    shim = entry / "bin" / KERNEL
    relative = libraries.relative_to(unpacked)
    shim.write_text(_KERNEL_SHIM.format(root=shims.ROOT, libraries=relative, kernel=KERNEL), encoding="utf-8")
    shim.chmod(0o755)


def is_complete(entry: Path) -> bool:
    """Whether an entry of the cache has all that guests need; an entry of an older version may not."""
    root = entry / shims.ROOT
    return all((root / path).exists() for path in (*(f"{MODULES}/{name}.ko" for name in NEEDED), *PROGRAMS))


def name_loader(program: Path, target: Path) -> None:
    """Set the interpreter of a program to ``LOADER``, relative to its working directory. Raises ProvisionError."""
    content = program.read_bytes()
    if content.count(INTERPRETER) != 1:
        raise ProvisionError(f"{program.name} names another dynamic loader than {INTERPRETER[:-1].decode()}")
    target.write_bytes(content.replace(INTERPRETER, LOADER.encode().ljust(len(INTERPRETER), b"\0")))
    target.chmod(0o755)
    program.unlink()


def _complete(unpacked: Path) -> None:
    """Add what the scripts of base packages would make: links of a merged /usr, accounts, busybox's programs."""
    for name in MOUNT_POINTS:
        (unpacked / name).mkdir(exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if not (unpacked / name).exists():
            (unpacked / name).symlink_to(f"usr/{name}")
    for name, text in ACCOUNTS.items():
        (unpacked / "etc" / name).write_text(text)
    directories = (unpacked / "usr/bin", unpacked / "usr/sbin")
    for name in apt.run([str(unpacked / "usr/bin/busybox"), "--list"]).split():
        if not any((directory / name).is_symlink() or (directory / name).exists() for directory in directories):
            (directories[0] / name).symlink_to("busybox")


def _keep_modules(unpacked: Path) -> None:
    """Move the modules of ``GUEST_MODULES`` to ``MODULES`` itself, and remove the others: 160 MB.

    modprobe then loads each of them by its name, with its dependencies.
    """
    modules = unpacked / MODULES
    found = {path.stem: path for path in modules.glob("*/kernel/**/*.ko")}
    if missing := set(NEEDED) - found.keys():
        raise ProvisionError(f"the kernel's package has no module {', '.join(sorted(missing))}")
    release = found[NEEDED[0]].relative_to(modules).parts[0]
    kept = {name: found[name].rename(modules / f"{name}.ko") for name in GUEST_MODULES if name in found}
    lines = [f"/{MODULES}/{name}.ko:{''.join(_needed_by(path, kept))}\n" for name, path in kept.items()]
    for directory in modules.iterdir():
        if directory.is_dir():
            shutil.rmtree(directory)
    (unpacked / "usr/lib/modules" / release).mkdir(parents=True)
    (unpacked / "usr/lib/modules" / release / DEPENDENCIES).write_text("".join(lines))


def _needed_by(module: Path, kept: Collection[str]) -> list[str]:
    """The paths of the modules that a module needs, each after a space; missing ones are built into the kernel."""
    match = DEPENDS.search(module.read_bytes())
    names = match[1].decode().split(",") if match else []
    return [f" /{MODULES}/{name}.ko" for name in names if name in kept]
