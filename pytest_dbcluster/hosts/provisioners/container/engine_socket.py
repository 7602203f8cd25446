"""Where the container engine of this machine listens, Docker or Podman, and why it may not be asked."""

from __future__ import annotations

import grp
import os
import pwd
import socket
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError, Unsupported

SCHEME = "unix://"
KNOCK_SECONDS = 5.0
DOCKER = "/var/run/docker.sock"
PODMAN = "podman/podman.sock"  # below a directory of run-time files, a user's or the system's
SYSTEM = "/run"
WAYS = (
    "Ways out: start the engine (`dockerd`, or `systemctl start docker`, or `podman system service`), name its socket "
    "with DOCKER_HOST=unix://PATH, or measure with --db-provisioner local"
)


def places() -> list[str]:
    """Where engines listen when nothing else is said: Docker, the user's Podman, the system's Podman."""
    user = os.environ.get("XDG_RUNTIME_DIR")
    return [DOCKER, *([f"{user}/{PODMAN}"] if user else []), f"{SYSTEM}/{PODMAN}"]


def url() -> str:
    """The address of the engine: DOCKER_HOST, or the first socket that is there.

    Raises ProvisionError when there is none, Unsupported for an engine of another machine.
    """
    given = os.environ.get("DOCKER_HOST")
    if given:
        if not given.startswith(SCHEME):
            raise Unsupported(
                f"DOCKER_HOST={given} is an engine of another machine; containers keep their data in directories of "
                "this one, so the engine has to be here: unix://PATH"
            )
        return given
    found = next((place for place in places() if Path(place).exists()), None)
    if found is None:
        raise ProvisionError(f"no container engine: nobody listens on {', '.join(places())}. {WAYS}")
    return f"{SCHEME}{found}"


def present() -> bool:
    """Whether an engine is named, or has a socket in one of its places."""
    return bool(os.environ.get("DOCKER_HOST")) or any(map(os.path.exists, places()))


def path(address: str) -> Path:
    """The socket of an address."""
    return Path(address.removeprefix(SCHEME))


def knock(address: str) -> None:
    """Connect to the engine's socket and hang up. Raises OSError when nobody listens.

    It costs 0.1 ms, and docker-py 7 leaves its own socket open when that is refused (docker/transport/unixconn.py).
    """
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(KNOCK_SECONDS)
        caller.connect(str(path(address)))


def refusal(address: str, error: BaseException) -> str:
    """Why an engine did not answer; the permission of its socket is the usual reason."""
    place = path(address)
    try:
        said = place.stat()
    except PermissionError:
        return f"no permission to look for the container engine on {place} (user {os.getuid()}). {WAYS}"
    except OSError:
        return f"no container engine: {place} does not exist. {WAYS}"
    if os.access(place, os.R_OK | os.W_OK):
        return f"the container engine on {place} does not answer: {error}. {WAYS}"
    owner, group = _user(said.st_uid), _group(said.st_gid)
    way = f"join that group (`usermod -aG {group} USER`, then log in again)"
    return (
        f"no permission to ask the container engine on {place} (user {os.getuid()}, the socket belongs to "
        f"{owner}:{group}): {way if said.st_gid and said.st_mode & 0o060 == 0o060 else 'ask as that user'}, or run "
        "as root"
    )


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
