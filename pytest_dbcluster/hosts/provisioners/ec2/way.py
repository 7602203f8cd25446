"""Way: how ssh reaches the instances of a run, through a jump host or without, and why it does not.

A jump host is one of the user's: ssh finds its address, user and key in the user's own files, as for ``ssh JUMP``. What
those files say of other hosts, such as of a second jump host on the way to the first, holds as well.
"""

from __future__ import annotations

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

JUMP_SECONDS = 3.0 * CONNECT_SECONDS  # a second jump host may be on the way
# ssh asks nobody, does not wait for a host that is down, and makes no connection on which others of ours would depend.
# One that the user has open already is used.
UNATTENDED = {"BatchMode": "yes", "ConnectTimeout": CONNECT_SECONDS, "ControlMaster": "no"}
# What the user's files may ask for a login there, and this one goes without; so does -W, which goes on from there.
ALONE = tuple(
    word
    for option in ("ControlPath=none", "LogLevel=VERBOSE", "ClearAllForwardings=yes", "PermitLocalCommand=no",
                   "ForkAfterAuthentication=no")
    for word in ("-o", option)
)  # fmt: skip
LOGGED_IN = "Authenticated to "  # begins what ssh says with LogLevel VERBOSE
FORBIDDEN = "administratively prohibited"  # of a jump host that forwards nothing
# ssh says one of these as long as nothing comes back from an address. One that refuses is there, and boots.
SILENT = re.compile(r"timed out|No route to host|Network is unreachable|Could not resolve hostname")
DIRECT = "ssh: connect to host "  # through a jump host this is the jump host


def config(machines: Mapping[str, Instance], alias: str, directory: Path, jump: str) -> str:
    """The configuration of ssh for these machines.

    alias: under which their key is known. directory: of our files. jump: the host on the way, or empty.
    """
    text = "".join(_machine(name, one.address, alias, directory, jump) for name, one in machines.items())
    if not jump:
        return text
    others = " ".join(["*", *(f"!{name}" for name in machines)])
    lines = [*UNATTENDED.items(), *(("Include", _quoted(file)) for file in usual())]
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
    return f"Host {name}\n" + "".join(f"    {key} {_quoted(value)}\n" for key, value in lines.items())


def usual() -> tuple[str, ...]:
    """The files that ssh reads without ``-F``.

    ssh finds the first in the home of its user that the system knows, but a ``~`` of ``Include`` in that of HOME.
    """
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = "~"
    return f"{home}/.ssh/config", "/etc/ssh/ssh_config"


def _quoted(value: object) -> str:
    """A value of ssh's configuration, whose paths may have blanks."""
    return f'"{value}"' if shlex.quote(str(value)) != str(value) else str(value)


def check_jump(access: Access, jump: str) -> None:
    """Log in to the jump host, and run nothing there: some let nobody have a shell. Raises ProvisionError.

    access: with the file of ``config``.
    """
    ssh = [program(), *access.files]
    if subprocess.run([*ssh, "-O", "check", jump], capture_output=True, check=False).returncode == 0:
        return  # the user has a connection open, which ssh uses
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
        f"--db-ec2-jump {jump} cannot be used, so nothing was launched: {why}. ssh has to log in there without a "
        f"question, by your own files of ssh: try `ssh -o BatchMode=yes -N {shlex.quote(jump)}`"
    )


def silent(words: str, jump: str) -> bool:
    """Whether ssh says that nothing came back from an instance, or from the jump host on the way to it."""
    return bool(SILENT.search(words)) or bool(jump and DIRECT in words)


def unreached(machine: str, instance: Instance, jump: str, source: str, words: str) -> str:
    """Why an instance was not reached, from which nothing came back, and what to do. source: of --db-ec2-from."""
    if jump:
        advice = f"does {jump} run and reach that address, and is it in --db-ec2-from {source}?"
    elif instance.subnet.public:
        advice = f"does your ssh come from {source}, and does it go out at port 22? --db-ec2-from CIDR lets others in"
    else:
        advice = (
            f"the subnet {instance.subnet.id} gives no public addresses: name a jump host with --db-ec2-jump "
            "USER@ADDRESS, or a subnet that this machine reaches"
        )
    said = "; ".join(words.splitlines())
    return f"nothing came back from {machine} at {instance.address}: {said}; {advice}"
