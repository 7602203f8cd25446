"""Becomes a stand-in host: namespaces of this machine in which a root directory is all there is, and its ssh server.

    python stand_in_init.py ROOT USR NAME FIRST_ID FILE

ROOT: the host's root directory. USR: the directory that it sees as /usr, which it cannot change. FIRST_ID: the user id
of this machine that is root there; the next 65535 are its other users. The process id of the host's first process is
written into FILE, with a newline. The users of a host are nobody here, so nobody takes its programs for ours.

The host ends with this process, however this process ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x04000000, 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000  # linux/sched.h
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32  # linux/mount.h
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1  # linux/prctl.h
IDS = 65536  # users and groups of a host
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
LINKS = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
PLACE = Path("/tmp")  # covered in our own mount namespace alone: the way to ROOT may be closed to others
# The first process of a host gets the orphans; the shell waits for them as well as for the server.
FIRST = ("/bin/sh", "-c", "mkdir -p /run/sshd; /usr/sbin/sshd -D -E /var/log/sshd.log & wait")
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library. Raises OSError with its name."""
    given = [str(one).encode() if isinstance(one, (str, Path)) else one for one in arguments]
    if getattr(_libc, name)(*given):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")


def mount(source: str | Path, target: str | Path, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system, or another place of one. Raises OSError."""
    call("mount", source, target, kind, ctypes.c_ulong(flags), options)


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends; a change of the user id forgets it."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL)


def prepare(root: Path, usr: Path, first_id: int) -> None:
    """Put the host's root, with /usr and the devices, where every user of this mount namespace reaches it."""
    call("unshare", CLONE_NEWNS)
    mount("none", "/", "none", MS_REC | MS_PRIVATE)
    mount(usr, root / "usr", "none", MS_BIND)
    mount("none", root / "usr", "none", MS_BIND | MS_REMOUNT | MS_RDONLY)
    mount("devices", root / "dev", "tmpfs", MS_NOSUID, "mode=755")
    for name, (major, minor) in DEVICES.items():
        os.mknod(root / "dev" / name, 0o020666, os.makedev(major, minor))
        (root / "dev" / name).chmod(0o666)
    for name, target in LINKS.items():
        (root / "dev" / name).symlink_to(target)
    for name in ("pts", "shm"):
        (root / "dev" / name).mkdir()
    for path in (root / "dev", *(root / "dev").iterdir()):
        os.lchown(path, first_id, first_id)
    os.chdir(root)
    mount("place", PLACE, "tmpfs", MS_NOSUID, "mode=755")
    (PLACE / "root").mkdir()
    mount(".", PLACE / "root", "none", MS_BIND | MS_REC)


def begin(name: str) -> None:
    """Begin as the first process of the host. Does not return."""
    call("sethostname", name, len(name))
    place = PLACE / "root"
    mount(place, place, "none", MS_BIND | MS_REC)  # one of this user namespace, which may become its root
    os.chdir(place)
    mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("sysfs", "sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("run", "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    mount("shm", "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5")
    call("pivot_root", ".", ".")
    call("umount2", ".", MNT_DETACH)
    os.chdir("/")
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.execve(FIRST[0], FIRST, ENVIRONMENT)


def separate(name: str, ready: int, mapped: int, told: int) -> int:
    """Enter the namespaces of the host, begin it, and wait for its end. Returns its status."""
    end_with_parent()
    everything = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID
    call("unshare", everything)
    os.write(ready, b"1")
    os.read(mapped, 1)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    end_with_parent()
    first = os.fork()
    if not first:
        end_with_parent()
        os.setsid()
        begin(name)
    os.write(told, f"{first}\n".encode())
    return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])


def main() -> int:
    """Start the host, write the id of its first process, and wait for its end."""
    root, usr, name, first_id = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    file = os.open(sys.argv[5], os.O_WRONLY | os.O_CREAT, 0o600)  # later its path may be covered
    prepare(root, usr, first_id)
    (ready, readies), (mapped, maps), (told, tells) = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        return separate(name, readies, mapped, tells)
    os.close(readies)
    os.close(tells)
    os.read(ready, 1)
    for kind in ("uid_map", "gid_map"):
        Path(f"/proc/{child}/{kind}").write_text(f"0 {first_id} {IDS}\n")
    os.write(maps, b"1")
    os.write(file, os.read(told, 20))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(abs(main()))
