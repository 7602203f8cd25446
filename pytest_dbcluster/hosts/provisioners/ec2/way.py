"""The ssh route to the instances of a run, directly or through a jump host, and its errors.

A jump host belongs to the user: ssh finds its address, user and key in the user's files, as for ``ssh JUMP``. The
user's configuration of other hosts applies too, such as of a second jump host before the first.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shlex
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.ec2 import user_data
from pytest_dbcluster.hosts.provisioners.ec2.fleet import Instance
from pytest_dbcluster.hosts.provisioners.ssh.access import CONNECT_SECONDS, Access, program

JUMP_SECONDS = 3.0 * CONNECT_SECONDS  # enough for a second jump host
# ssh does not prompt, does not wait for a host that is down, and makes no shared connection. It uses the user's open
# connection if there is one.
UNATTENDED = {"BatchMode": "yes", "ConnectTimeout": CONNECT_SECONDS, "ControlMaster": "no"}
# Settings in the user's files that this login overrides, as -W does, which continues from the jump host.
ALONE = tuple(
    word
    for option in ("ControlPath=none", "LogLevel=VERBOSE", "ClearAllForwardings=yes", "PermitLocalCommand=no",
                   "ForkAfterAuthentication=no")
    for word in ("-o", option)
)  # fmt: skip
LOGGED_IN = "Authenticated to "  # prefix of ssh's line after a login, with LogLevel VERBOSE
FORBIDDEN = "administratively prohibited"  # the error of a jump host that does not forward
# ssh prints one of these while an address does not answer. If an instance refuses, it is booting.
SILENT = re.compile(r"timed out|No route to host|Network is unreachable|Could not resolve hostname")
DIRECT = "ssh: connect to host "  # names the jump host, if there is one


def config(machines: Mapping[str, Instance], alias: str, directory: Path, jump: str) -> str:
    """The configuration of ssh for these machines.

    alias: the name of their key in known_hosts. directory: of our files. jump: the jump host, or empty.
    """
    text = "".join(_machine(name, one.address, alias, directory, jump) for name, one in machines.items())
    if not jump:
        return text
    others = " ".join(["*", *(f"!{name}" for name in machines)])
    lines = [*UNATTENDED.items(), *(("Include", _quote(file)) for file in usual())]
    return f"{text}Host {others}\n" + "".join(f"    {key} {value}\n" for key, value in lines)


def _machine(name: str, address: str, alias: str, directory: Path, jump: str) -> str:
    lines = {
        "HostName": address,
        "HostKeyAlias": alias,
        "HostKeyAlgorithms": "ssh-ed25519",
        "User": user_data.USER,
        "IdentityFile": directory / "key",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": directory / "known_hosts",
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        **({"ProxyJump": jump} if jump else {}),
    }
    return f"Host {name}\n" + "".join(f"    {key} {_quote(value)}\n" for key, value in lines.items())


def usual() -> tuple[str, ...]:
    """The files that ssh reads without ``-F``.

    ssh finds the first in the user's home directory of the system, but expands the ``~`` of ``Include`` with HOME.
    """
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = "~"
    return f"{home}/.ssh/config", "/etc/ssh/ssh_config"


def _quote(value: object) -> str:
    """A value of ssh's configuration, whose paths may have blanks."""
    return f'"{value}"' if shlex.quote(str(value)) != str(value) else str(value)


def check_jump(access: Access, jump: str) -> None:
    """Log in to the jump host without running anything, because some forbid a shell. Raises ProvisionError.

    access: with the file of ``config``.
    """
    ssh = [program(), *access.files]
    with contextlib.suppress(subprocess.TimeoutExpired):  # its control master may be stopped
        check = [*ssh, "-O", "check", jump]
        if subprocess.run(check, capture_output=True, check=False, timeout=CONNECT_SECONDS).returncode == 0:
            return  # ssh uses the user's open connection
    words: list[str] = []
    with subprocess.Popen(
        [*ssh, *ALONE, "-N", jump], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, errors="replace",
    ) as process:  # fmt: skip
        limit = threading.Timer(JUMP_SECONDS, process.kill)
        limit.start()
        try:
            assert process.stderr
            for line in process.stderr:
                if line.startswith(LOGGED_IN):
                    return
                words.append(line.strip())
        finally:
            limit.cancel()
            process.kill()
    why = "; ".join(words[-3:]) or f"it did not answer within {JUMP_SECONDS:g} s"
    raise ProvisionError(
        f"cannot use --db-ec2-jump {jump}, so we launched nothing: {why}. Your ssh must log in there without a "
        f"prompt: try `ssh -o BatchMode=yes -N {shlex.quote(jump)}`"
    )


def silent(words: str, jump: str) -> bool:
    """Whether ssh reports that an instance, or the jump host before it, does not answer."""
    return bool(SILENT.search(words)) or bool(jump and DIRECT in words)


def unreachable(machine: str, instance: Instance, jump: str, source: str, words: str) -> str:
    """The message for an instance that does not answer, and what to do. source: of --db-ec2-from."""
    if jump:
        advice = f"does {jump} run and reach that address, and is it in --db-ec2-from {source}?"
    elif instance.subnet.public:
        advice = (
            f"is the address of your ssh in {source}, and may it connect to port 22? --db-ec2-from CIDR admits others"
        )
    else:
        advice = (
            f"the subnet {instance.subnet.id} has no public addresses: name a jump host with --db-ec2-jump "
            "USER@ADDRESS, or a subnet that this machine can reach"
        )
    said = "; ".join(words.splitlines())
    return f"no answer from {machine} at {instance.address}: {said}; {advice}"
