"""The container engine of this machine, Docker or Podman: connections to it, and containers and networks of it.

Only this module imports testcontainers and docker. Everything that we make has our labels, so we find what a killed
run left behind: ``python -P engine.py clean RUN`` removes it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import grp
import os
import pwd
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report

RUN_LABEL = "pytest-dbcluster.run"
OWNER_LABEL = "pytest-dbcluster.owner"
DIRECTORY_LABEL = "pytest-dbcluster.directory"
# Several containers may share one engine and see different directories. Their PID namespaces tell them apart.
NAMESPACE_LABEL = "pytest-dbcluster.world"
# Limits that an engine may lack: our name -> field of its answer
# (https://docs.docker.com/reference/api/engine/version/v1.41/).
LIMITS = {"memory": "MemoryLimit", "cores": "CpuCfsQuota"}
WRITE_IOPS = "write_iops_device"
ANSWER_SECONDS = 60
FIRST_ANSWER_SECONDS = 15
PROGRESS_SECONDS = 5.0  # between two lines about a pull
API = "1.41"  # of the interface: that of Docker 20.10, the oldest engine that we support; Docker 29 refuses it

SCHEME = "unix://"
KNOCK_SECONDS = 5.0
DOCKER_SOCKET = "/var/run/docker.sock"
PODMAN_SOCKET = "podman/podman.sock"  # below the run-time directory of the user or of the system
SYSTEM_RUN = "/run"
WAYS_OUT = (
    "What you can do: start the engine (`dockerd`, or `systemctl start docker`, or `podman system service`), name its "
    "socket with DOCKER_HOST=unix://PATH, or measure with --db-provisioner local"
)


@dataclasses.dataclass(frozen=True)
class Engine:
    """A connected engine."""

    client: Any
    """The docker.DockerClient; Podman's socket supports it too."""

    name: str
    """"docker" or "podman"."""

    version: str
    """The version that the engine reports; empty if it reports none."""

    url: str
    """The address of its socket, ``unix://PATH``."""

    api: str = API
    """The version of the interface that we use."""

    unlimited: frozenset[str] = frozenset()
    """The limits (cores, memory, iops) that this engine would ignore with only a warning."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for testcontainers to connect to the same engine."""
        return {"environment": {"DOCKER_HOST": self.url}, "timeout": ANSWER_SECONDS, "version": self.api}

    def close(self) -> None:
        """Close the connections to the engine."""
        self.client.close()

    @property
    def socket(self) -> Path:
        """The path of the engine's socket."""
        return socket_path(self.url)


def connect() -> Engine:
    """Connect to the engine of DOCKER_HOST, or to the first engine that has a socket.

    Raises ProvisionError if no engine answers, or if this user has no permission. Raises Unsupported for an engine on
    another machine, for a rootless engine, and without the package testcontainers.
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
            # With an explicit version the constructor does not send a request.
            connect_as = functools.partial(docker.DockerClient, base_url=url, timeout=FIRST_ANSWER_SECONDS)
            with contextlib.closing(connect_as(version=API)) as asking:
                version = asking.version(api_version=False)
            api = _newer(API, version.get("MinAPIVersion") or API)
            client = connect_as(version=api)
            refused.callback(client.close)
            facts = client.info()
            client.api.timeout = ANSWER_SECONDS
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            raise ProvisionError(refusal(url, error)) from None
        if any("rootless" in option for option in facts.get("SecurityOptions") or ()):
            raise Unsupported(
                f"the container engine at {url} runs rootless, so we cannot reach its networks; use an engine "
                "that runs as root, or --db-provisioner local"
            )
        refused.pop_all()
    name = "podman" if "podman" in str(version.get("Components")).lower() else "docker"
    return Engine(client, name, version.get("Version", ""), url, api, ignored_limits(facts))


def _newer(*versions: str) -> str:
    """The newest of versions such as ``1.44``."""
    return max(versions, key=lambda version: [int(number) for number in version.split(".")])


def ignored_limits(facts: Mapping[str, Any]) -> frozenset[str]:
    """The limits that an engine would ignore, from what it reports about its kernel (``docker info``)."""
    lacks = {power for power, fact in LIMITS.items() if not facts.get(fact, True)}
    warnings = " ".join(facts.get("Warnings") or ())
    return frozenset(lacks | ({"iops"} if WRITE_IOPS in warnings else set()))


@contextlib.contextmanager
def engine_errors(what: str, engine: Engine) -> Iterator[None]:
    """Turn errors of the engine inside the block into a ProvisionError. ``what``: the request, "pause container X"."""
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
            f"(request to {engine.name}: {what})"
        ) from None
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise ProvisionError(
            f"the container engine on {engine.socket} is gone (request to {engine.name}: {what}): {error}"
        ) from None


def image(engine: Engine, name: str, *, pull: Report | None) -> str:
    """The id of the image with this name. ``pull``: pull it if the engine lacks it, and report progress.

    Raises ProvisionError.
    """
    import docker.errors

    with engine_errors(f"look for image {name}", engine), contextlib.suppress(docker.errors.ImageNotFound):
        present: str = engine.client.images.get(name).id
        return present
    if pull is None:
        from pytest_dbcluster.releases import apt

        release = name.rpartition("/")[2]
        build = f"`dbcluster image build {release}` makes it from the system's packages; "
        raise ProvisionError(
            f"{engine.name} has no image {name}: {'' if apt.missing_program() else build}--db-image {release}=IMAGE "
            "chooses another one, such as the vendor's; a directory or a tarball needs no image: "
            f"--db-release {release}=DIRECTORY"
        )
    pull(f"pulling image {name}")
    layers = Layers()
    with engine_errors(f"find image {name} here, or pull it", engine):
        for event in engine.client.api.pull(name, stream=True, decode=True):
            if "error" in event:
                raise ProvisionError(f"{engine.name} could not find image {name} here, or pull it: {event['error']}")
            if line := layers.progress(event):
                pull(f"pulling image {name}: {line}")
        pulled: str = engine.client.images.get(name).id
    return pulled


def digest(engine: Engine, name: str) -> str:
    """The digest under which a registry has an image, ``mysql@sha256:...``; its id if it comes from no registry."""
    with engine_errors(f"look at image {name}", engine):
        found = engine.client.images.get(name)
    return str(next(iter(found.attrs.get("RepoDigests") or ()), f"{name}, {found.id}, from no registry"))


class Layers:
    """The downloaded parts of an image that an engine pulls."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}  # layer -> (downloaded, total) bytes
        self._printed = time.monotonic()

    def progress(self, event: Mapping[str, Any]) -> str:
        """Add an event of the engine. Returns ``120 of 250 MB`` every ``PROGRESS_SECONDS``, otherwise an empty text."""
        layer, sizes = str(event.get("id", "")), event.get("progressDetail") or {}
        if event.get("status") == "Downloading" and sizes.get("total"):
            self._sizes[layer] = (sizes.get("current", 0), sizes["total"])
        elif event.get("status") in ("Download complete", "Pull complete") and layer in self._sizes:
            _, total = self._sizes[layer]
            self._sizes[layer] = (total, total)
        if not self._sizes or time.monotonic() - self._printed < PROGRESS_SECONDS:
            return ""
        self._printed = time.monotonic()
        downloaded, all_layers = (sum(sizes) for sizes in zip(*self._sizes.values(), strict=True))
        return f"{formatting.size(downloaded)} of {formatting.size(all_layers)}"


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The settings of a new container."""

    image: str
    """The id of the image."""

    name: str
    """The name of the container."""

    hostname: str
    """The host name inside of the container."""

    alias: str
    """The second name of the container on the network."""

    address: str
    """The IPv4 address of the container."""

    run: Path
    """The directory of the run."""

    entrypoint: Sequence[str]
    """The command of its first process."""

    environment: Mapping[str, str]
    """The environment variables of its first process."""

    read_only: Sequence[str]
    """Directories of this machine, mounted read-only under the same paths."""

    writable: Sequence[str]
    """Directories of this machine, mounted writable under the same paths."""

    user: str
    """The user of its programs, ``UID:GID``."""

    keep: bool = False
    """Whether the container outlives the connection to its standard input."""

    needs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The limits, as arguments of docker-py's containers.create (``nano_cpus``, ``mem_limit``, ...)."""


def start(engine: Engine, network: Any, wanted: Wanted) -> Any:
    """Start a container on the network. Returns docker-py's container. Raises ProvisionError, and then leaves nothing.

    The standard input of the container is open. It closes when its first connection ends, unless ``wanted.keep``.
    """
    from testcontainers.core.container import DockerContainer

    _configure_testcontainers()
    with (
        contextlib.ExitStack() as ends,
        engine_errors(f"start container {wanted.name} of image {wanted.image}", engine),
    ):
        container = DockerContainer(wanted.image, docker_client_kw=engine.arguments, name=wanted.name)
        ends.enter_context(contextlib.closing(container.get_docker_client().client))
        _describe(container, network, wanted, engine.api)
        try:
            return engine.client.containers.get(container.start().get_container_id())
        except BaseException:
            with contextlib.suppress(Exception):
                container.get_wrapped_container().remove(force=True)
            raise


def _describe(container: Any, network: Any, wanted: Wanted, api: str) -> None:
    from docker.types import EndpointConfig

    for directory in wanted.read_only:
        container.with_volume_mapping(directory, directory, "ro")
    for directory in wanted.writable:
        container.with_volume_mapping(directory, directory, "rw")
    container.with_envs(**wanted.environment)
    endpoint = EndpointConfig(api, aliases=[wanted.alias], ipv4_address=wanted.address)
    container.with_kwargs(
        entrypoint=list(wanted.entrypoint),
        hostname=wanted.hostname,
        network=network.name,
        networking_config={network.name: endpoint},
        labels=labels(wanted.run),
        user=wanted.user,
        stdin_open=True,
        detach=wanted.keep,  # if False, docker-py closes the input when its first connection ends
        auto_remove=True,
        # With SELinux a container may not read our directories otherwise; a new label would be for the whole cache.
        security_opt=["label=disable"],
        **wanted.needs,
    )


def _configure_testcontainers() -> None:
    """Disable the reaper of testcontainers by default: it needs an image, and ends the containers of other workers."""
    from testcontainers.core.config import testcontainers_config

    if os.environ.get("TESTCONTAINERS_RYUK_DISABLED", "").lower() != "false":
        testcontainers_config.ryuk_disabled = True


def labels(run: Path) -> dict[str, str]:
    """The labels of everything that we make for the run with this directory."""
    return {
        RUN_LABEL: run.name,
        OWNER_LABEL: str(os.getuid()),
        DIRECTORY_LABEL: str(run),
        NAMESPACE_LABEL: _pid_namespace(),
    }


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


def network(engine: Engine, run: Path, subnet: str) -> Any:
    """Make a network for the run. This machine gets its first address. Returns docker-py's network."""
    from docker.types import IPAMConfig, IPAMPool
    from testcontainers.core.network import Network

    _configure_testcontainers()
    pool = IPAMPool(subnet=subnet)
    settings = {"driver": "bridge", "labels": labels(run), "ipam": IPAMConfig(pool_configs=[pool])}
    name = f"dbcluster-{run.name}"
    with contextlib.ExitStack() as ends, engine_errors(f"make the network {name} ({subnet})", engine):
        made = Network(docker_client_kw=engine.arguments, docker_network_kw=settings)
        ends.enter_context(contextlib.closing(made._docker.client))
        made.name = name
        return engine.client.networks.get(made.create().id)


def clean(engine: Engine, run: str) -> int:
    """Remove every container and network of a run. Returns the number of containers. Raises ProvisionError."""
    import docker.errors

    of_run = {"label": f"{RUN_LABEL}={run}"}
    with engine_errors(f"remove what run {run} made", engine):
        containers = _containers(engine, of_run)
        for container in containers:
            remove(engine, container)
        for left in engine.client.networks.list(filters=of_run):
            with contextlib.suppress(docker.errors.NotFound):
                left.remove()
    return len(containers)


def remove(engine: Engine, container: Any) -> None:
    """Remove a container and wait for its end. A missing container is not an error. Raises ProvisionError."""
    import docker.errors

    with engine_errors(f"remove container {container.id[:12]}", engine), contextlib.suppress(docker.errors.NotFound):
        try:
            container.remove(force=True, v=True)
        except docker.errors.APIError as error:
            if error.status_code == 409:  # "removal of container ... is already in progress"
                container.wait(timeout=ANSWER_SECONDS, condition="removed")
            elif _containers(engine, {"id": container.id}):  # Podman 4.3 answers 500 for a missing container
                raise


def _containers(engine: Engine, filters: Mapping[str, str]) -> list[Any]:
    # Sparse, without details: Podman 4.3 answers 500 if a container ends before we ask for its details.
    return list(engine.client.containers.list(all=True, filters=filters, sparse=True))


def reap(engine: Engine) -> list[str]:
    """Remove containers and networks of this user's runs without a directory. Returns the run ids.

    They exist if the engine was down at the end of a run and has started again. Raises ProvisionError.
    """
    mine = {"label": f"{OWNER_LABEL}={os.getuid()}"}
    with engine_errors("list our containers", engine):
        listed = [*_containers(engine, mine), *engine.client.networks.list(filters=mine)]
    all_labels = [item.attrs["Labels"] for item in listed]
    ours = [given for given in all_labels if given.get(NAMESPACE_LABEL) == _pid_namespace()]
    complete = [given for given in ours if RUN_LABEL in given and DIRECTORY_LABEL in given]
    directories = {given[RUN_LABEL]: given[DIRECTORY_LABEL] for given in complete}
    gone = [run for run, directory in directories.items() if not Path(directory).exists()]
    for run in gone:
        clean(engine, run)
    return gone


def socket_paths() -> list[str]:
    """The default paths of the sockets: Docker, the user's Podman, the system's Podman."""
    user = os.environ.get("XDG_RUNTIME_DIR")
    return [DOCKER_SOCKET, *([f"{user}/{PODMAN_SOCKET}"] if user else []), f"{SYSTEM_RUN}/{PODMAN_SOCKET}"]


def socket_url() -> str:
    """The URL of the engine: DOCKER_HOST, or the first default socket that exists.

    Raises ProvisionError if there is no socket, Unsupported for an engine on another machine.
    """
    given = os.environ.get("DOCKER_HOST")
    if given:
        if not given.startswith(SCHEME):
            raise Unsupported(
                f"DOCKER_HOST={given} is an engine on another machine; containers keep their data in directories of "
                "this one, so the engine must run here: unix://PATH"
            )
        return given
    path = next((path for path in socket_paths() if Path(path).exists()), None)
    if path is None:
        raise ProvisionError(f"no container engine: no socket at {', '.join(socket_paths())}. {WAYS_OUT}")
    return f"{SCHEME}{path}"


def has_socket() -> bool:
    """Whether DOCKER_HOST is set or one of the default sockets exists."""
    return bool(os.environ.get("DOCKER_HOST")) or any(map(os.path.exists, socket_paths()))


def socket_path(address: str) -> Path:
    """The path of the socket in an address ``unix://PATH``."""
    return Path(address.removeprefix(SCHEME))


def knock(address: str) -> None:
    """Connect to the engine's socket and disconnect. Raises OSError if nobody listens.

    The test takes 0.1 ms. Without it docker-py 7 leaks its socket if the connection is refused
    (docker/transport/unixconn.py).
    """
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(KNOCK_SECONDS)
        caller.connect(str(socket_path(address)))


def refusal(address: str, error: BaseException) -> str:
    """The message for an engine that does not answer, usually because of the permissions of its socket."""
    path = socket_path(address)
    try:
        status = path.stat()
    except PermissionError:
        return f"no permission to access {path} of the container engine (user {os.getuid()}). {WAYS_OUT}"
    except OSError:
        return f"no container engine: {path} does not exist. {WAYS_OUT}"
    if os.access(path, os.R_OK | os.W_OK):
        return f"the container engine on {path} does not answer: {error}. {WAYS_OUT}"
    owner, group = _user(status.st_uid), _group(status.st_gid)
    way = f"join that group (`usermod -aG {group} USER`, then log in again)"
    return (
        f"no permission to use the container engine on {path} (user {os.getuid()}, the socket belongs to "
        f"{owner}:{group}): {way if status.st_gid and status.st_mode & 0o060 == 0o060 else 'run as that user'}, or "
        "run as root"
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
    """The command ``clean RUN``: the supervisor of a run calls it after the end of the run's owner process."""
    with contextlib.suppress(ProvisionError, Unsupported), contextlib.closing(connect()) as engine:
        clean(engine, arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
