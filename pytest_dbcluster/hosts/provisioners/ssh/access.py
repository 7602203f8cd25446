"""Access to remote machines: the OpenSSH client, its options, and the users' names for machines."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import ipaddress
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.releases import apt

BASE = "/var/tmp"
CONNECT_SECONDS = 15
# Keep-alive packets: we notice a broken connection after 15 to 20 s; it survives an interruption of 8 s.
ALIVE_SECONDS, ALIVE_MISSED = 5, 3
TARGET = re.compile(r"(?:(?P<user>[A-Za-z0-9_.][A-Za-z0-9_.@\\-]*)@)?(?P<address>[A-Za-z0-9_.:%][A-Za-z0-9_.:%-]*)")
PATH = re.compile(r"/[A-Za-z0-9_./+-]*")
FINGERPRINT = re.compile(r"Server host key: (\S+ \S+)")
ADVICE = {
    "permission denied": "the machine does not accept your keys: try `ssh {target} true`",
    "could not resolve hostname": "there is no machine with this name: check --db-host, or ~/.ssh/config",
}
FIXED = (
    "-T",
    *("-o", "BatchMode=yes"),
    *("-o", "StrictHostKeyChecking=yes"),
    *("-o", "RemoteCommand=none"),
    *("-o", "PermitLocalCommand=no"),
    *("-o", "ForwardAgent=no"),
    *("-o", "ForwardX11=no"),
    *("-o", "ControlPersist=no"),
    *("-o", "ExitOnForwardFailure=no"),
    *("-o", f"ConnectTimeout={CONNECT_SECONDS}"),
    *("-o", f"ServerAliveInterval={ALIVE_SECONDS}"),
    *("-o", f"ServerAliveCountMax={ALIVE_MISSED}"),
)


@dataclasses.dataclass(frozen=True)
class Access:
    """The options of a run for the access to its machines."""

    config: Path | None = None
    """The configuration file of ssh; None for ``~/.ssh/config``."""

    keys: Path | None = None
    """A file of known hosts; None for the user's."""

    base: str = BASE
    """The parent of our directory on the machines."""

    def __post_init__(self) -> None:
        for option, file in (("--db-ssh-config", self.config), ("--db-host-keys", self.keys)):
            if file is not None and not file.is_file():
                raise ConfigError(f"{option} {file}: there is no such file")
        if not PATH.fullmatch(self.base):
            raise ConfigError(
                f"--db-host-directory {self.base!r}: it accepts an absolute path of letters, digits and _./+-, such as "
                f"{BASE}"
            )

    def command(self, *more: str) -> list[str]:
        """The command line of ssh with the options of every connection, followed by ``more``."""
        return [program(), *self.files, *FIXED, *more]

    def run(self, *more: str, seconds: float) -> subprocess.CompletedProcess[str]:
        """Run ssh over a new connection, followed by ``more``, whatever its exit status. Raises TimeoutExpired."""
        return subprocess.run(
            self.command("-o", "ControlMaster=no", "-o", "ControlPath=none", *more), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
        )  # fmt: skip

    @property
    def files(self) -> list[str]:
        """The options of ssh that name files."""
        files: list[str] = []
        if self.config is not None:
            files += ["-F", str(self.config.absolute())]
        if self.keys is not None:
            files += ["-o", f"UserKnownHostsFile={self.keys.absolute()}", "-o", "GlobalKnownHostsFile=none"]
        return files

    def fingerprint(self, target: str) -> str:
        """The type and fingerprint of the key that a machine sends, for a message; empty if it sends no key."""
        options = ("-v", "-o", "PreferredAuthentications=none")
        found = FINGERPRINT.search(self.run(*options, target, "true", seconds=2 * CONNECT_SECONDS).stderr)
        return found[1] if found else ""

    def problem(self, target: str, words: str) -> str:
        """Why a machine cannot be used and what to do next. words: the output of ssh and the machine."""
        if "Host key verification failed" in words:
            return self._strange_key(target, words)
        advice = next((text for sign, text in ADVICE.items() if sign in words.lower()), "try `ssh {target} true`")
        return f"cannot use the machine {target} over ssh: {words}; {advice.format(target=shlex.quote(target))}"

    def _strange_key(self, target: str, words: str) -> str:
        key = ""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            key = self.fingerprint(target)
        shown = f" It shows {key}." if key else ""
        changed = "IDENTIFICATION HAS CHANGED" in words
        what = "another host key than the known one" if changed else "an unknown host key"
        return (
            f"the machine {target} has {what}, so we sent nothing to it.{shown} Compare this with the key of the "
            "machine (on it: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), and add it to ~/.ssh/known_hosts or to "
            "the file of --db-host-keys"
        )


@functools.cache
def program() -> str:
    """The path of the OpenSSH client. Raises Unsupported without one."""
    path = shutil.which("ssh")
    if path is None:
        raise Unsupported(
            "the provisioner ssh needs the OpenSSH client `ssh`, which is not installed: "
            + apt.install("openssh-client", "openssh-clients")
        )
    return path


def parse_machines(option: str, given: Sequence[str]) -> dict[str, str]:
    """The machines of an option: name -> private address for other machines; empty if they use that of ssh.

    given: ``USER@ADDRESS``, ``ADDRESS`` or a Host of ssh's configuration, optionally with ``=PRIVATE_ADDRESS``. Raises
    ConfigError for another text, such as one that ssh would treat as an option, and for a repeated machine.
    """
    machines: dict[str, str] = {}
    for text in given:
        target, _, private = text.partition("=")
        if not TARGET.fullmatch(target) or not (private or "=" not in text):
            raise ConfigError(
                f"{option} {text!r}: it accepts USER@ADDRESS or a Host of ~/.ssh/config, followed by =PRIVATE_ADDRESS "
                "if the machines reach each other at other addresses than ssh does"
            )
        if private and not _is_address(private):
            raise ConfigError(f"{option} {text!r}: {private!r} is not an IPv4 address of the machine")
        if target in machines:
            raise ConfigError(f"{option} {target}: it is named twice; name each machine once")
        machines[target] = private
    return machines


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
