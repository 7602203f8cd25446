"""The first process of a guest: it mounts file systems, configures the network, and becomes the agent."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Sequence

from pytest_dbcluster.hosts import agent

# The root is a read-only directory of the cache, and the guest writes into an overlay in its memory. The scripts are on
# a mount that the new root does not have, so the second script is passed as an argument.
ROOT = """\
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
insmod /usr/lib/uml/modules/overlay.ko
mkdir /run/upper /run/work /run/root
mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work overlay /run/root
umount /proc
exec chroot /run/root /bin/busybox sh -c "$(cat /mnt/system)"
"""

# The kernel drops input that arrives before a program opens the serial line, so the agent writes first.
_SYSTEM = """\
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
chmod 1777 /tmp
hostname {name}
ifconfig lo up
{keepalive}
{disks}
{mounts}
{network}
exec </dev/ttyS1 >/dev/ttyS1
stty raw -echo clocal
echo ready
figures={figures}
{agent}
{end}
"""
# A program with SO_KEEPALIVE notices after 10 s instead of two hours that its peer lost power, because the peer's new
# kernel does not know the connection.
KEEPALIVE = "echo 10 >/proc/sys/net/ipv4/tcp_keepalive_time; echo 5 >/proc/sys/net/ipv4/tcp_keepalive_intvl"
# Without -n it would first write back mapped files, which must be lost with the guest.
POWER_OFF = "poweroff -n -f"


def system(
    name: str,
    *,
    read_only: Sequence[str],
    writable: Sequence[str],
    addresses: Sequence[ipaddress.IPv4Interface],
    disks: bool,
    keep: bool,
    figures: str,
) -> str:
    """The script of the second stage. name: host name. read_only, writable: directories of this machine.

    addresses: of the guest's interfaces, in order. disks: whether it has disks. keep: whether the guest outlives our
    connection to it. figures: the file for its kernel's counters.
    """
    mounts = [_mount(directory, "ro,") for directory in read_only] + [_mount(directory, "") for directory in writable]
    network = [
        f"ifconfig vec{number} {address.ip} netmask {address.netmask} up" for number, address in enumerate(addresses)
    ]
    return _SYSTEM.format(
        name=shlex.quote(name),
        keepalive=KEEPALIVE,
        disks="insmod /usr/lib/uml/modules/virtio_blk.ko" if disks else "",
        mounts="\n".join(mounts),
        network="\n".join(network),
        figures=shlex.quote(figures),
        agent=agent.PROGRAM,
        end=agent.STAYS if keep else POWER_OFF,
    )


def _mount(directory: str, options: str) -> str:
    """Mount a directory of this machine under its own path."""
    path = shlex.quote(directory)
    return f"mkdir -p {path} && mount -t hostfs -o {shlex.quote(options + directory)} none {path}"
