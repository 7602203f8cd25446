"""The container engine of this machine, Docker or Podman: how to reach it, and what we make with it.

The one module that imports testcontainers and docker. Everything made here carries our labels, so that what a killed
run left behind is found by them: ``python -P engine.py clean RUN`` removes it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import grp
import os
import pwd
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.errors import ProvisionError, Unsupported

RUN_LABEL = "pytest-dbcluster.run"
OWNER_LABEL = "pytest-dbcluster.owner"
PLACE_LABEL = "pytest-dbcluster.directory"
# Of several machines in one, such as containers that share an engine, each sees other directories.
WORLD_LABEL = "pytest-dbcluster.world"
# What an engine calls the limits that it may lack (https://docs.docker.com/reference/api/engine/version/v1.41/).
LIMITS = {"memory": "MemoryLimit", "cores": "CpuCfsQuota"}
WRITE_IOPS = "write_iops_device"
ANSWER_SECONDS = 60
FIRST_ANSWER_SECONDS = 15
API = "1.41"  # of Docker 20.10, the oldest engine that we use, and of Podman

SCHEME = "unix://"
KNOCK_SECONDS = 5.0
DOCKER_SOCKET = "/var/run/docker.sock"
PODMAN_SOCKET = "podman/podman.sock"  # below a directory of run-time files, a user's or the system's
SYSTEM_RUN = "/run"
WAYS_OUT = (
    "Ways out: start the engine (`dockerd`, or `systemctl start docker`, or `podman system service`), name its socket "
    "with DOCKER_HOST=unix://PATH, or measure with --db-provisioner local"
)


@dataclasses.dataclass(frozen=True)
class Engine:
    """An engine that answers. ``client`` is a docker.DockerClient, which Podman's socket serves as well.

    ``unlimited`` are the limits of a host that it would drop with no more than a warning: cores, memory, iops.
    """

    client: Any
    name: str
    version: str
    url: str
    unlimited: frozenset[str] = frozenset()

    @property
    def arguments(self) -> dict[str, Any]:
        """What testcontainers has to be told to reach the same engine."""
        return {"environment": {"DOCKER_HOST": self.url}, "timeout": ANSWER_SECONDS, "version": API}

    def close(self) -> None:
        """Close its connections."""
        self.client.close()

    @property
    def socket(self) -> Path:
        """The socket that it listens on."""
        return socket_path(self.url)


def connect() -> Engine:
    """The engine of DOCKER_HOST, or the first whose socket is there.

    Raises ProvisionError when none answers or we may not ask it; Unsupported for one that is not of this machine, or
    whose networks cannot be reached from it, and without the package testcontainers.
    """
    url = socket_url()
    try:
        import docker
        import docker.errors
        import requests
    except ImportError:
        raise Unsupported(
            "containers need the package testcontainers: pip install 'pytest-dbcluster[container]'"
        ) from None
    with contextlib.ExitStack() as refused:
        try:
            knock(url)
            # A version is given, so that making the client asks nothing yet.
            client = docker.DockerClient(base_url=url, timeout=FIRST_ANSWER_SECONDS, version=API)
            refused.callback(client.close)
            said, facts = client.version(), client.info()
            client.api.timeout = ANSWER_SECONDS
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            raise ProvisionError(refusal(url, error)) from None
        if any("rootless" in option for option in facts.get("SecurityOptions") or ()):
            raise Unsupported(
                f"the container engine at {url} runs rootless: its networks cannot be reached from here; measure with "
                "an engine of the system's, or with --db-provisioner local"
            )
        refused.pop_all()
    name = "podman" if "podman" in str(said.get("Components")).lower() else "docker"
    return Engine(client, name, said.get("Version", ""), url, unlimited(facts))


def unlimited(facts: Mapping[str, Any]) -> frozenset[str]:
    """The limits that an engine would drop, by what it says of its kernel (``docker info``)."""
    lacks = {power for power, fact in LIMITS.items() if not facts.get(fact, True)}
    warnings = " ".join(facts.get("Warnings") or ())
    return frozenset(lacks | ({"iops"} if WRITE_IOPS in warnings else set()))


@contextlib.contextmanager
def said(what: str, engine: Engine) -> Iterator[None]:
    """What the engine refuses, or that it has gone, becomes a ProvisionError that says what was tried."""
    import docker.errors
    import requests

    try:
        knock(engine.url)
        yield
    except docker.errors.APIError as error:
        raise ProvisionError(f"{engine.name} could not {what}: {error.explanation or error}") from None
    except requests.Timeout:
        raise ProvisionError(
            f"the container engine on {engine.socket} has not answered in {engine.client.api.timeout} s "
            f"({engine.name} was asked to {what})"
        ) from None
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise ProvisionError(
            f"the container engine on {engine.socket} is gone ({engine.name} was asked to {what}): {error}"
        ) from None


def image(engine: Engine, name: str, *, pull: bool) -> str:
    """The id of the image of this name, which may be pulled when the engine lacks it. Raises ProvisionError."""
    import docker.errors

    with said(f"look for image {name}", engine), contextlib.suppress(docker.errors.ImageNotFound):
        found: str = engine.client.images.get(name).id
        return found
    if not pull:
        release = name.rpartition("/")[2]
        raise ProvisionError(
            f"{engine.name} has no image {name}: `dbcluster image build {release}` makes it from the system's "
            f"packages; --db-image {release}=IMAGE takes another one, such as the vendor's"
        )
    with said(f"find image {name} here, or pull it", engine):
        pulled: str = engine.client.images.pull(name).id
    return pulled


@dataclasses.dataclass(frozen=True)
class Wanted:
    """One container: what is fixed when it is made; ``run`` is the directory of the run that it belongs to.

    ``needs`` are arguments of docker-py's containers.create (``nano_cpus``, ``mem_limit``, ``device_write_iops``).
    ``keep``: it outlives the connection of its standard input.
    """

    image: str
    name: str
    hostname: str
    alias: str
    address: str
    run: Path
    entrypoint: Sequence[str]
    environment: Mapping[str, str]
    read_only: Sequence[str]
    writable: Sequence[str]
    user: str
    keep: bool = False
    needs: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def start(engine: Engine, network: Any, wanted: Wanted) -> Any:
    """A running container (docker-py's) on the network. Raises ProvisionError; nothing stays of one that failed.

    Its standard input is open; unless it is to be kept it ends for the container when the first connection to it ends.
    """
    from testcontainers.core.container import DockerContainer

    _configure_testcontainers()
    with contextlib.ExitStack() as ends, said(f"start container {wanted.name} of image {wanted.image}", engine):
        made = DockerContainer(wanted.image, docker_client_kw=engine.arguments, name=wanted.name)
        ends.enter_context(contextlib.closing(made.get_docker_client().client))
        _describe(made, network, wanted)
        try:
            return engine.client.containers.get(made.start().get_container_id())
        except BaseException:
            with contextlib.suppress(Exception):
                made.get_wrapped_container().remove(force=True)
            raise


def _describe(made: Any, network: Any, wanted: Wanted) -> None:
    from docker.types import EndpointConfig

    for place in wanted.read_only:
        made.with_volume_mapping(place, place, "ro")
    for place in wanted.writable:
        made.with_volume_mapping(place, place, "rw")
    made.with_envs(**wanted.environment)
    endpoint = EndpointConfig(API, aliases=[wanted.alias], ipv4_address=wanted.address)
    made.with_kwargs(
        entrypoint=list(wanted.entrypoint),
        hostname=wanted.hostname,
        network=network.name,
        networking_config={network.name: endpoint},
        labels=labels(wanted.run),
        user=wanted.user,
        stdin_open=True,
        detach=wanted.keep,  # docker-py closes the input with its first connection where this is False
        auto_remove=True,
        **wanted.needs,
    )


def _configure_testcontainers() -> None:
    """Its own reaper is off unless asked for: it is an image to pull, and ends what one worker of several started."""
    from testcontainers.core.config import testcontainers_config

    if os.environ.get("TESTCONTAINERS_RYUK_DISABLED", "").lower() != "false":
        testcontainers_config.ryuk_disabled = True


def labels(run: Path) -> dict[str, str]:
    """What everything carries that is made for the run with this directory."""
    return {RUN_LABEL: run.name, OWNER_LABEL: str(os.getuid()), PLACE_LABEL: str(run), WORLD_LABEL: _world()}


def _world() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def network(engine: Engine, run: Path, subnet: str) -> Any:
    """A network of the run's own (docker-py's), whose first address is this machine's. Raises ProvisionError."""
    from docker.types import IPAMConfig, IPAMPool
    from testcontainers.core.network import Network

    _configure_testcontainers()
    pool = IPAMPool(subnet=subnet)
    asked = {"driver": "bridge", "labels": labels(run), "ipam": IPAMConfig(pool_configs=[pool])}
    name = f"dbcluster-{run.name}"
    with contextlib.ExitStack() as ends, said(f"make the network {name} ({subnet})", engine):
        made = Network(docker_client_kw=engine.arguments, docker_network_kw=asked)
        ends.enter_context(contextlib.closing(made._docker.client))
        made.name = name
        return engine.client.networks.get(made.create().id)


def clean(engine: Engine, run: str) -> int:
    """Remove every container and network of a run; how many containers there were. Raises ProvisionError."""
    import docker.errors

    wanted = {"label": f"{RUN_LABEL}={run}"}
    with said(f"remove what run {run} made", engine):
        found = _containers(engine, wanted)
        for container in found:
            remove(engine, container)
        for made in engine.client.networks.list(filters=wanted):
            with contextlib.suppress(docker.errors.NotFound):
                made.remove()
    return len(found)


def remove(engine: Engine, container: Any) -> None:
    """Remove a container, which may be gone or on its way already, and wait until it is. Raises ProvisionError."""
    import docker.errors

    with said(f"remove container {container.id[:12]}", engine), contextlib.suppress(docker.errors.NotFound):
        try:
            container.remove(force=True, v=True)
        except docker.errors.APIError as error:
            if error.status_code == 409:  # "removal of container ... is already in progress"
                container.wait(condition="removed")
            elif _containers(engine, {"id": container.id}):  # Podman 4.3 has 500 for one that is gone
                raise


def _containers(engine: Engine, filters: Mapping[str, str]) -> list[Any]:
    # Sparse: to ask for more of one that goes in the meantime is an error of Podman's own (4.3: 500).
    return list(engine.client.containers.list(all=True, filters=filters, sparse=True))


def reap(engine: Engine) -> list[str]:
    """Remove what is left of this user's runs whose directory is gone; their ids.

    An engine that was gone when a run ended, and has come back, has such things. Raises ProvisionError.
    """
    mine = {"label": f"{OWNER_LABEL}={os.getuid()}"}
    with said("list what is ours", engine):
        found = [*_containers(engine, mine), *engine.client.networks.list(filters=mine)]
    ours = [each for one in found if (each := one.attrs["Labels"]).get(WORLD_LABEL) == _world()]
    places = {each[RUN_LABEL]: each[PLACE_LABEL] for each in ours if RUN_LABEL in each and PLACE_LABEL in each}
    gone = [run for run, place in places.items() if not Path(place).exists()]
    for run in gone:
        clean(engine, run)
    return gone


def socket_paths() -> list[str]:
    """Where engines listen when nothing else is said: Docker, the user's Podman, the system's Podman."""
    user = os.environ.get("XDG_RUNTIME_DIR")
    return [DOCKER_SOCKET, *([f"{user}/{PODMAN_SOCKET}"] if user else []), f"{SYSTEM_RUN}/{PODMAN_SOCKET}"]


def socket_url() -> str:
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
    found = next((place for place in socket_paths() if Path(place).exists()), None)
    if found is None:
        raise ProvisionError(f"no container engine: nobody listens on {', '.join(socket_paths())}. {WAYS_OUT}")
    return f"{SCHEME}{found}"


def has_socket() -> bool:
    """Whether an engine is named, or has a socket in one of its places."""
    return bool(os.environ.get("DOCKER_HOST")) or any(map(os.path.exists, socket_paths()))


def socket_path(address: str) -> Path:
    """The socket of an address."""
    return Path(address.removeprefix(SCHEME))


def knock(address: str) -> None:
    """Connect to the engine's socket and hang up. Raises OSError when nobody listens.

    It costs 0.1 ms, and docker-py 7 leaves its own socket open when that is refused (docker/transport/unixconn.py).
    """
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(KNOCK_SECONDS)
        caller.connect(str(socket_path(address)))


def refusal(address: str, error: BaseException) -> str:
    """Why an engine did not answer; the permission of its socket is the usual reason."""
    place = socket_path(address)
    try:
        said = place.stat()
    except PermissionError:
        return f"no permission to look for the container engine on {place} (user {os.getuid()}). {WAYS_OUT}"
    except OSError:
        return f"no container engine: {place} does not exist. {WAYS_OUT}"
    if os.access(place, os.R_OK | os.W_OK):
        return f"the container engine on {place} does not answer: {error}. {WAYS_OUT}"
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


def main(arguments: Sequence[str]) -> int:
    """``clean RUN``: the last act of a run's supervisor, which may follow the death of the process that began it."""
    with contextlib.suppress(ProvisionError, Unsupported), contextlib.closing(connect()) as engine:
        clean(engine, arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
