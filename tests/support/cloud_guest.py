"""Guests that boot as an instance does: Debian with systemd, cloud-init and an ssh server, in a virtual machine.

The kernel is that of the release ``vm``. The root is an installed Debian, made once by mmdebstrap; the guest sees it
read-only, under an overlay in its memory. It finds its user data where cloud-init looks for them without a cloud
(NoCloud), which is the only difference: the order in which cloud-init works is the same everywhere.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from pytest_dbcluster import wait
from pytest_dbcluster.hosts.guests import user_namespace
from pytest_dbcluster.hosts.guests.disk import Disk, ServedDisk
from pytest_dbcluster.hosts.guests.network import Network
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.provisioners.ec2 import user_data
from pytest_dbcluster.hosts.provisioners.ec2.user_data import HostKey
from pytest_dbcluster.releases import fetched, guest_system
from pytest_dbcluster.releases.catalogue import GUEST_SYSTEM
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.system import cache
from tests.support import guests

PACKAGES = (
    "systemd", "systemd-sysv", "udev", "dbus", "cloud-init", "openssh-server", "iproute2", "e2fsprogs", "util-linux",
    "mount", "procps", "sudo", "kmod", "netbase", "ifupdown", "unattended-upgrades",
    "libpam-systemd", "iputils-ping",
)  # fmt: skip
SUITES = ("bookworm", "trixie")  # with cloud-init 22.4, near that of Amazon Linux 2023, and 25.1
ROOTS = "tests"  # in the cache
MADE = "made"  # in a root's directory, when it is complete
MEMORY = 1024  # MiB
DISK = 256 * 2**20
VOLUME = "virtio-disk"  # what the disk says of itself
SEED = "var/lib/cloud/seed/nocloud/user-data"
MODULES = "opt/modules"
CONSOLE = "console.log"
SECONDS = 180.0  # of a boot; an idle machine takes 25

# Stage 1 runs before systemd. What it mounts stays, and so does the address that it gives.
_STAGE_1 = """\
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
insmod /mnt/files/{modules}/overlay.ko
insmod /mnt/files/{modules}/virtio_blk.ko
mkdir /run/upper /run/work /run/system
mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work overlay /run/system
cp -r /mnt/files/. /run/system/
ip link set lo up
ip addr add {address} dev vec0
ip link set vec0 up
cd /run/system
mkdir -p old
pivot_root . old
exec chroot . sh -c 'umount -l /old; exec /lib/systemd/systemd --log-target=console'
"""


@functools.cache
def missing() -> str:
    """Why there can be no such guest here; empty when there can."""
    if reason := guests.missing():
        return reason
    if not user_namespace.root():
        return "the files of a guest with systemd belong to its root: that needs root of this machine"
    if not shutil.which("mmdebstrap"):
        return "the system of a guest with systemd is made by mmdebstrap: apt-get install mmdebstrap"
    return "" if shutil.which("ssh") else "there is no program ssh here (make tools installs it)"


def root(suite: str) -> Path:
    """The directory of a system, made if there is none: that takes a minute, and a mirror."""
    directory = cache.root() / ROOTS / f"cloud-guest-{suite}"
    with cache.lock(directory.name, progress=print):
        made = directory / MADE
        if not made.exists() or made.read_text() != " ".join(PACKAGES):
            shutil.rmtree(directory, ignore_errors=True)
            directory.parent.mkdir(parents=True, exist_ok=True)
            command = ["mmdebstrap", "--mode=root", "--variant=apt", "--skip=output/dev", "--quiet",
                       f"--include={','.join(PACKAGES)}", suite, str(directory)]  # fmt: skip
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
            made.write_text(" ".join(PACKAGES))
    return directory


class CloudGuest:
    """A guest that boots with our user data, and with the host key and the key of a user that are in them.

    more: further files of the guest, path -> content. written: MiB of the disk that are written once. Use it as a
    context: it ends there at the latest.
    """

    def __init__(
        self, suite: str, ttl: float, *, volume: str = VOLUME, more: dict[str, str] | None = None, written: int = 1024
    ) -> None:
        self._stack = contextlib.ExitStack()
        system = fetched.lookup(GUEST_SYSTEM, "")
        assert system
        self.base = root(suite)
        self.host_key, self.user_key = HostKey.new(), HostKey.new()
        text = user_data.user_data(self.host_key, ttl, volume, self.user_key.public, written=written)
        self._run = LocalRun()
        self._stack.callback(self._run.close)
        try:
            self._begin(system, {SEED: text, **(more or {})})
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> CloudGuest:
        """The guest, while it boots."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()

    def close(self) -> None:
        """End the guest. Its console is shown by a test that failed."""
        print(self.console())
        self._stack.close()

    def _begin(self, system: Release, files: dict[str, str]) -> None:
        network = Network(self._run, system)
        self._stack.callback(network.close)
        interface, address = network.attach()
        self.address = str(address.ip)
        self._files = self._run.host("cloud", self._run.directory / "cloud")
        self.home = home = Path(self._files.directory)
        self._fill(system, files)
        disk = ServedDisk(Disk(home / "disk", DISK), self._files, home, 0)
        disk.serve(lambda _: None)
        (home / "stage1").write_text(_STAGE_1.format(address=address, modules=MODULES))
        handle = os.open(home, os.O_PATH)
        self._stack.callback(os.close, handle)
        # The newer call of mount(8) takes no bare path as an option.
        words = [
            *network.enter, str(system.program(guest_system.KERNEL)), f"mem={MEMORY}M", "seccomp=on",
            "rootfstype=hostfs", f"rootflags={self.base}", "ro", "init=/bin/sh", f"uml_dir={home}", "con=null",
            "con0=null,fd:1", "ssl=null", f"vec0:transport=raw,ifname={interface},mac=02:00:00:00:00:02,gro=1",
            disk.parameter("/proc/self/fd/{0}"), "ds=nocloud", "--", "-c",
            f'"LIBMOUNT_FORCE_MOUNT2=always mount -t hostfs -o {home} none /mnt && . /mnt/stage1"',
        ]  # fmt: skip
        self._began = time.monotonic()
        self._process = self._files.spawn(words, log=str(home / CONSOLE), directory="/", inherits=[handle])

    def _fill(self, system: Release, more: dict[str, str]) -> None:
        """Write what the guest finds on its root besides the packages, and the files of ssh."""
        files = {
            "var/lib/cloud/seed/nocloud/meta-data": json.dumps({"instance-id": "i-0", "local-hostname": "cloud"}),
            "etc/cloud/cloud.cfg.d/99-network.cfg": "network: {config: disabled}\n",
            **more,
        }
        for name, content in files.items():
            file = self.home / "files" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        modules = self.home / "files" / MODULES
        modules.mkdir(parents=True)
        for name in ("overlay.ko", "virtio_blk.ko"):
            shutil.copy(system.bin.parent / "root" / guest_system.MODULES / name, modules / name)
        (self.home / "known_hosts").write_text(f"{self.address} {self.host_key.public}\n")
        (self.home / "key").touch(mode=0o600)
        (self.home / "key").write_text(self.user_key.private)

    @property
    def seconds(self) -> float:
        """How long it has been there."""
        return time.monotonic() - self._began

    def console(self) -> str:
        """What the guest has printed."""
        log = self.home / CONSOLE
        return log.read_text(errors="replace") if log.exists() else ""

    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.status() is not None

    def wait_ended(self) -> float:
        """Wait until it has ended by itself. Returns the seconds that it was there."""
        wait.until(lambda: [] if self.ended() else ["it is still there"], "the end of a guest", seconds=SECONDS)
        return self.seconds

    def ssh(self, command: str, *options: str, key: Path | None = None) -> subprocess.CompletedProcess[str]:
        """What ssh says and returns for a command line in the guest, whose host key it checks."""
        return subprocess.run(
            self._words(command, *options, key=key), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=SECONDS,
        )  # fmt: skip

    def talking(self, command: str) -> subprocess.Popen[str]:
        """A command line in the guest whose input and output go on."""
        return subprocess.Popen(
            self._words(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def _words(self, command: str, *options: str, key: Path | None = None) -> list[str]:
        return [
            "ssh", "-F", "none", "-i", str(key or self.home / "key"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
            "-o", f"UserKnownHostsFile={self.home / 'known_hosts'}", "-o", "GlobalKnownHostsFile=none",
            "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=5", *options,
            "-l", user_data.USER, self.address, command,
        ]  # fmt: skip

    def wait_reached(self) -> None:
        """Wait until ssh lets us in."""

        def problems() -> list[str]:
            if self.ended():
                raise AssertionError(f"the guest has ended: {self.console()[-2000:]}")
            return [] if (done := self.ssh("true")).returncode == 0 else [done.stderr.strip()]

        wait.until(problems, "ssh to a guest", seconds=SECONDS)

    def wait_prepared(self) -> str:
        """Wait until the guest is prepared. Returns what ``user_data.problem`` makes of its words."""
        self.wait_reached()
        return user_data.problem(self.ssh(user_data.wait_command(int(SECONDS))).stdout)
