"""The machines of the stand-in for EC2: instances as stand-in hosts, and a jump host in front of a private subnet."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster import wait
from tests.support.stand_ins import HOST_KEY, SECONDS, StandIn, StandIns

JUMP = "jump"
POWEROFF = "var/lib/poweroff"  # a file of a host that asks for its end
SYSTEMCTL = f"""\
#!/bin/sh
[ "$1" != poweroff ] || : >/{POWEROFF}
"""


def lives(host: StandIn) -> bool:
    """Whether a machine has not ended."""
    return Path("/proc", str(host.pid), "root", HOST_KEY).exists()


def text_of(encoded: str) -> str:
    """User data as text."""
    return base64.b64decode(encoded).decode()


def prepared(host: StandIn, document: Mapping[str, Any]) -> None:
    """Give a machine what its user data say, as cloud-init would."""
    keys = document["ssh_keys"]
    host.write(HOST_KEY, keys["ed25519_private"], mode=0o600)
    host.write(f"{HOST_KEY}.pub", f"{keys['ed25519_public']}\n")
    host.write("root/.ssh/authorized_keys", "".join(f"{key}\n" for key in document["ssh_authorized_keys"]), mode=0o600)
    limits = "PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    host.write("etc/ssh/sshd_config.d/test.conf", f"SetEnv {limits}\nMaxSessions 100\nMaxStartups 100\n")
    (host.root / "opt/bin").mkdir()
    host.write("opt/bin/systemctl", SYSTEMCTL, mode=0o755)
    host.write("etc/ssh/sshrc", "[ -e /run/dbcluster-ready ] || echo ready >/run/dbcluster-ready\n")  # /run is empty


def jump_host(machines: StandIns) -> StandIn:
    """A host through which ssh reaches those that are hidden, and its entry in the configuration file of ssh."""
    host = machines.add(JUMP, machines.reserve(), lambda _: None)
    wait.until(host.problems, "the ssh server of a jump host", seconds=SECONDS)
    machines.write_config()
    return host


def with_config(config: Path, home: Path, command: Sequence[str]) -> list[str]:
    """A command that runs where this file is the user's ``~/.ssh/config``. home: a directory to make for it.

    ssh looks for the user's home in /etc/passwd, and not in HOME; so the command sees another /etc/passwd.
    """
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    shutil.copy(config, home / ".ssh/config")
    (home / ".ssh/config").chmod(0o600)
    users = [line.split(":") for line in Path("/etc/passwd").read_text().splitlines()]
    lines = [":".join([*user[:5], str(home), *user[6:]] if user[0] == "root" else user) for user in users]
    (home / "passwd").write_text("".join(f"{line}\n" for line in lines))
    (home / "passwd").chmod(0o644)
    script = 'mount --bind "$1" /etc/passwd && shift && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", str(home / "passwd"), *command]
