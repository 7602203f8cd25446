"""The boot of an instance, as a ``#cloud-config`` for cloud-init.

The steps, in this order; no step depends on a later one:

1. A systemd timer starts that ends the instance when its time to live is over. If the timer cannot start, the instance
   ends at once. We do not use ``shutdown +N``: this early in the boot it may do nothing, or act at once.
2. Timers that would disturb a measurement (upgrades, trimming) are masked.
3. The ssh server gets only our host key, and admits root only with the key of the run.
4. The data directory is prepared: a part of the data volume is written once, and the file system has the size of that
   part. The file ``READY`` of the instance then contains "ready" and what was written, or the error.

Every program of an instance can read the user data, so the keys in it are only for one run.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import gibibytes
from pytest_dbcluster.hosts.provisioners.ec2.settings import WRITTEN_GIB
from pytest_dbcluster.releases import apt

USER = "root"  # in every image; the names of ordinary users differ
MOST_BYTES = 16 * 1024  # maximum size of user data before encoding: RunInstances, Amazon EC2 API reference
DIRECTORY = "/var/tmp"
READY = "/run/dbcluster-ready"
EXPIRES = "/var/lib/dbcluster-expires"  # seconds since 1970, so that a reboot does not restart the time
END = "dbcluster-end"  # the timer, and the service that it starts
LABEL = "dbcluster"  # of the file system on the data volume
WRITE_SECONDS = 900  # timeout for writing a part of the data volume once
LEAST_MIB = 64  # minimum of this part, for a file system

# Names below /dev/disk/by-id, which udev makes from a disk's identity. Names below /dev may change at boot.
EBS = "nvme-Amazon_Elastic_Block_Store_*"
INSTANCE_STORE = "nvme-Amazon_EC2_NVMe_Instance_Storage_*"

PUBLIC_KEY = re.compile(r"(ssh-ed25519 [A-Za-z0-9+/]+={0,2})( [\w.@:+-]*)?")
PATH = re.compile(r"/[A-Za-z0-9_./+-]*")
WRITTEN = re.compile(r"^written (\d+) of (\d+) in (\d+)$", re.MULTILINE)
VOLUME = re.compile(r"[A-Za-z0-9_./+:*-]+")

# Units that would disturb a measurement, on Debian, Ubuntu and Amazon Linux.
MASKED = (
    "apt-daily.timer", "apt-daily.service", "apt-daily-upgrade.timer", "apt-daily-upgrade.service",
    "unattended-upgrades.service", "fstrim.timer", "fstrim.service", "e2scrub_all.timer", "man-db.timer",
    "dpkg-db-backup.timer", "logrotate.timer", "motd-news.timer", "update-motd.timer", "dnf-makecache.timer",
    "dnf-automatic.timer",
)  # fmt: skip

# Both units have no default dependencies, so they do not wait for the rest of the boot, and do not stop with it.
# "poweroff-force" ends programs without waiting for their services.
_LIMIT = f"""\
(
set -eu
now=$(date +%s)
up=$(cut -d. -f1 /proc/uptime)
[ -s {EXPIRES} ] || echo $((now - up + @TTL@)) >{EXPIRES}
left=$(($(cat {EXPIRES}) - now))
[ $left -le @TTL@ ] || left=@TTL@
[ $left -ge 1 ] || left=1
mkdir -p /run/systemd/system
cat >/run/systemd/system/{END}.service <<UNIT
[Unit]
Description=End of this instance: its time to live of @TTL@ s is over
DefaultDependencies=no
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/bin/echo the time to live is over
UNIT
cat >/run/systemd/system/{END}.timer <<UNIT
[Unit]
Description=Time to live of this instance
DefaultDependencies=no
[Timer]
OnBootSec=$((up + left))
AccuracySec=1s
UNIT
systemctl daemon-reload
systemctl start {END}.timer
) || {{ echo 'no limit of the time to live could be set: this instance ends' >/dev/console
systemctl poweroff --force --force; }}
"""

_MASK = f"""\
systemctl mask {" ".join(MASKED)}
systemctl stop --no-block {" ".join(MASKED)}
true
"""

# An image may admit other users of the account (EC2 Instance Connect, by AuthorizedKeysCommand); we disable that.
_SSHD = f"""\
HostKey /etc/ssh/ssh_host_ed25519_key
AllowUsers {USER}
PermitRootLogin prohibit-password
AuthorizedKeysFile .ssh/authorized_keys
AuthorizedKeysCommand none
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
MaxSessions 100
MaxStartups 100
"""

_PREPARE = f"""\
#!/bin/sh
end() {{ printf '%s\\n' "$1" >{READY}.new; mv {READY}.new {READY}; exit; }}
ready=ready
@DATA@
end "$ready"
"""

# A new volume loads no blocks from a snapshot, but the first write to a block may be slower than later ones. AWS's
# guide for instance store volumes writes zeros to the whole disk once with dd. We do it for the part that data will
# use. ext4 allocates blocks anywhere, so the file system is as large as that part, and grows (``GROW``) only if
# necessary. mkfs writes the inode tables and the journal at once; otherwise the kernel would do it during rounds.
_VOLUME = f"""\
udevadm settle --timeout=30
disk=
for link in /dev/disk/by-id/@VOLUME@; do
    real=$(readlink -f "$link")
    [ -b "$real" ] && [ "$(lsblk -dnro TYPE "$real")" = disk ] || continue
    [ -z "$(lsblk -nro MOUNTPOINT "$real" | tr -d '\\n')" ] || continue
    [ -z "$disk" ] || [ "$disk" = "$real" ] || end "failed two disks may be the data volume: $disk, $real"
    disk=$real
done
[ "$disk" ] || end "failed no disk is the data volume @VOLUME@: $(ls /dev/disk/by-id 2>&1 | tr '\\n' ' ')"
[ -z "$(wipefs -n "$disk")" ] || end "failed the data volume $disk is not empty: $(wipefs -n "$disk" | tail -n 1)"
size=$(blockdev --getsize64 "$disk") || end "failed the data volume $disk does not say its size"
began=$(date +%s) written=0 part=
mib=$((size / 1048576))
[ @WRITTEN@ -ge "$mib" ] || mib=@WRITTEN@
if [ "$mib" -gt 0 ]; then
    said=$(LC_ALL=C timeout -s INT {WRITE_SECONDS} dd if=/dev/zero of="$disk" bs=4M iflag=count_bytes \
        count="${{mib}}M" oflag=direct conv=fdatasync 2>&1)
    written=$(echo "$said" | sed -n 's/^\\([0-9]*\\) bytes .*/\\1/p')
    [ "${{written:-0}}" -ge $(({LEAST_MIB} * 1048576)) ] || end "failed to write the data volume $disk once: $said"
    [ $((size - written)) -lt 1048576 ] || part=$((written / 1024))k
fi
said=$(mkfs.ext4 -q -L {LABEL} -i 131072 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$disk" $part 2>&1) ||
    end "failed mkfs.ext4 on the data volume $disk: $said"
mkdir -p @DIRECTORY@
ready="ready
written $written of $size in $(($(date +%s) - began))"
said=$(mount -o noatime,noinit_itable "$disk" @DIRECTORY@ 2>&1) || end "failed the data volume $disk: $said"
chmod 1777 @DIRECTORY@
"""

# Grows the mounted file system to the whole data volume. $1: the data directory.
GROW = f"""\
disk=$(findmnt -no SOURCE --target "$1") && [ "$(lsblk -dnro LABEL "$disk")" = {LABEL} ] || exit 1
resize2fs "$disk" >/dev/null
"""

# The first read of a block of the root volume fetches it from the snapshot of the image. So we read each block once.
_ROOT = """\
mkdir -p @DIRECTORY@ && chmod 1777 @DIRECTORY@ || end "failed the directory @DIRECTORY@ cannot be made"
root=$(findmnt -no SOURCE /)
[ ! -b "$root" ] || dd if="$root" of=/dev/null bs=1M 2>/dev/null || end "failed the root volume $root cannot be read"
"""


@dataclasses.dataclass(frozen=True)
class HostKey:
    """A key pair of type ed25519."""

    private: str = dataclasses.field(repr=False)
    """The private key in OpenSSH's format."""

    public: str
    """The public key, ``ssh-ed25519 AAAA...``, without a name."""

    @classmethod
    def new(cls) -> HostKey:
        """A new key pair, made by ssh-keygen in a directory that only we can read. Raises ProvisionError."""
        with tempfile.TemporaryDirectory(prefix="dbcluster-") as directory:
            file = Path(directory, "key")
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(file)]
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                raise ProvisionError(
                    "keys of instances need OpenSSH's ssh-keygen, which is not installed: "
                    + apt.install("openssh-client", "openssh-clients")
                ) from None
            if done.returncode:
                raise ProvisionError(f"ssh-keygen made no key: {done.stderr.strip() or done.returncode}")
            public = " ".join(file.with_suffix(".pub").read_text(encoding="ascii").split()[:2])
            return cls(file.read_text(encoding="ascii"), public)


@dataclasses.dataclass(frozen=True)
class Written:
    """The part of a data volume that an instance has written before use."""

    bytes: int
    """Size of the part, in bytes."""

    size: int
    """Size of the volume, in bytes."""

    seconds: int
    """Duration of the write."""

    def __str__(self) -> str:
        """The part of the volume, without the duration."""
        return f"{gibibytes(self.bytes)} of {gibibytes(self.size)} written once before use"


def user_data(
    host_key: HostKey,
    ttl: float,
    volume: str,
    public_key: str,
    directory: str = DIRECTORY,
    written: int = WRITTEN_GIB * 1024,
) -> str:
    """The user data of an instance, a ``#cloud-config``.

    host_key: of the instance. ttl: seconds from the start of its boot until it ends itself. volume: the data disk, as a
    pattern below /dev/disk/by-id (``EBS``, ``INSTANCE_STORE``), which skips disks in use; empty for the root volume.
    public_key: of the user of the run, who may log in as ``USER``. directory: of the data. written: MiB of the data
    volume that are written once; 0 writes nothing. Raises ConfigError.
    """
    if not (math.isfinite(ttl) and ttl >= 1):
        raise ConfigError(f"the time to live of an instance is a number of seconds, 1 or more; got {ttl!r}")
    if volume and not VOLUME.fullmatch(volume):
        raise ConfigError(f"the data volume {volume!r} is not a name below /dev/disk/by-id")
    if not PATH.fullmatch(directory) or directory.strip("/") in ("", "run", "etc", "usr", "proc", "sys", "dev"):
        raise ConfigError(
            f"--db-host-directory {directory!r}: it accepts an absolute path of letters, digits and _./+-, such as "
            f"{DIRECTORY}, and not a system directory"
        )
    keys = [key for text in (host_key.public, public_key) if (key := PUBLIC_KEY.fullmatch(text.strip()))]
    if len(keys) < 2:
        raise ConfigError("the keys of an instance must have the type ed25519: a line `ssh-ed25519 AAAA...`")
    text = "#cloud-config\n" + json.dumps(
        _document(host_key, int(ttl), volume, keys[1][0], directory, written), indent=1
    )
    if len(text.encode()) > MOST_BYTES:
        raise ConfigError(f"the user data of an instance has {len(text.encode())} bytes; EC2 accepts {MOST_BYTES}")
    return text + "\n"


def _document(
    host_key: HostKey, ttl: int, volume: str, public_key: str, directory: str, written: int
) -> dict[str, Any]:
    data = (_VOLUME if volume else _ROOT).replace("@VOLUME@", volume.removeprefix("/dev/disk/by-id/"))
    data = data.replace("@WRITTEN@", str(written))
    prepare = _PREPARE.replace("@DATA@", data).replace("@DIRECTORY@", directory)
    return {
        # bootcmd is the first step that users can set. It runs at every boot, before the files below exist.
        "bootcmd": [["sh", "-c", _LIMIT.replace("@TTL@", str(ttl))], ["sh", "-c", _MASK]],
        "write_files": [
            {"path": "/etc/ssh/sshd_config.d/00-dbcluster.conf", "permissions": "0600", "content": _SSHD},
            {"path": "/usr/local/sbin/dbcluster-prepare", "permissions": "0700", "content": prepare},
        ],
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": host_key.private, "ed25519_public": host_key.public},
        "ssh": {"emit_keys_to_console": False},
        "disable_root": False,
        "ssh_authorized_keys": [public_key],
        "package_update": False,
        "package_upgrade": False,
        "runcmd": [["/usr/local/sbin/dbcluster-prepare"]],
    }


def wait_command(seconds: int) -> str:
    """A shell command that waits until the instance is prepared, and prints the argument of ``problem``."""
    file = shlex.quote(READY)
    return (
        f"n=0; while [ ! -e {file} ] && [ $n -lt {seconds} ]; do sleep 1; n=$((n + 1)); done; "
        f"cat {file} 2>/dev/null || {{ echo; cloud-init status --long 2>&1 | tail -n 20; }}"
    )


def parse_written(printed: str) -> Written | None:
    """Parse the written part of the data volume from the output of ``wait_command``; None without a data volume."""
    found = WRITTEN.search(printed)
    return Written(*map(int, found.groups())) if found else None


def problem(printed: str) -> str:
    """Why an instance is not prepared, from the output of ``wait_command``; empty if it is."""
    first, _, rest = printed.partition("\n")
    if first == "ready":
        return ""
    reason = first.removeprefix("failed ") or f"cloud-init has not finished: {' '.join(rest.split()) or '?'}"
    return f"cannot prepare the instance: {reason}"
