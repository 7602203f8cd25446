"""Kept clusters: clusters that outlive the run that started them. Records each one, and describes how to connect.

A kept run's directory has ``cluster.json`` beside ``run.json``. Passwords are only in each cluster's ``client.cnf``,
with mode 0600.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import join_releases
from pytest_dbcluster.system import owned_files

if TYPE_CHECKING:  # ``dbcluster ps`` reads records, and loads nothing that starts clusters
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.hosts.host import Host
    from pytest_dbcluster.hosts.provisioner import Keeps
    from pytest_dbcluster.hosts.runs import Run
    from pytest_dbcluster.releases.release import Release

FILE = "cluster.json"
CLIENTS = ("mariadb", "mysql")


@dataclasses.dataclass(frozen=True)
class Listener:
    """An address to connect to: a node, or one of the proxy's listeners."""

    name: str
    """Name of the node or listener."""

    address: str
    """IP address."""

    port: int
    """TCP port."""

    log: str = ""
    """Path of the program's log."""


@dataclasses.dataclass(frozen=True)
class Kept:
    """The record of one kept cluster."""

    run_id: str
    """Id of the run."""

    name: str
    """Name of the cluster."""

    topology: str
    """Name of the topology."""

    release: str
    """Name of the release."""

    version: str
    """Version of the release."""

    client: str
    """The client's command line without options, quoted for a shell."""

    client_cnf: str
    """The client's option file."""

    directory: str
    """The run's directory."""

    began: float
    """Start time, in seconds since the epoch."""

    nodes: tuple[Listener, ...]
    """The nodes."""

    proxy: tuple[Listener, ...] = ()
    """The proxy's listeners."""

    statistics: str = ""
    """The URL of the proxy's statistics page; empty for none."""

    end: str = ""
    """The command that ends it."""

    place: str = ""
    """The place of its hosts, as in ``Stay``; empty for this machine."""

    ends: float | None = None
    """The end of its hosts, in seconds since the epoch, as in ``Stay``; None for no end."""

    @property
    def over(self) -> bool:
        """Whether the time of its hosts is over."""
        return self.ends is not None and self.ends < time.time()


def write(cluster: Cluster, provisioner: Keeps, *, name: str = "") -> Kept:
    """Record this cluster and leave it running: ``close()`` of the provisioner then stops nothing.

    Call it once for each cluster of the run. Raises ProvisionError if the run does not have ``keep``.
    """
    number = len(read(provisioner.directory)) + 1
    release = cluster.nodes[0].release
    client, directory = _client(cluster, provisioner)
    client_cnf = directory / f"client{number}.cnf"
    stay = provisioner.describe_stay()
    kept = Kept(
        run_id=provisioner.run_id,
        name=name or cluster.spec.short_name,
        topology=cluster.spec.topology,
        release=join_releases([node.release.name for node in cluster.nodes]),
        version=join_releases([node.release.version for node in cluster.nodes]),
        client=client,
        client_cnf=str(client_cnf),
        directory=str(provisioner.directory),
        began=time.time(),
        nodes=tuple(
            Listener(node.name, node.host.address, node.port, _path(node.host, node.log)) for node in cluster.nodes
        ),
        proxy=_listeners(cluster),
        statistics=_statistics(cluster),
        end=stay.command,
        place=stay.place,
        ends=stay.ends,
    )
    host, text = cluster.nodes[0].host, _client_text(cluster, release)
    if host.machine:
        host.push(text.encode(), str(client_cnf))
    else:
        owned_files.write(directory, client_cnf.name, text)
    records = [dataclasses.asdict(cluster) for cluster in (*read(provisioner.directory), kept)]
    owned_files.write(provisioner.directory, FILE, json.dumps(records, indent=1))
    provisioner.leave()
    return kept


def _path(host: Host, path: str) -> str:
    """A path of a host, with the name of its machine if that is another machine."""
    return f"{host.machine}:{path}" if host.machine else path


def _listeners(cluster: Cluster) -> tuple[Listener, ...]:
    if cluster.proxy is None:
        return ()
    log = cluster.proxy.log() if cluster.proxy.host is None else _path(cluster.proxy.host, cluster.proxy.log())
    endpoints = {"writer": cluster.writer(), "reader": cluster.reader()}
    return tuple(Listener(name, endpoint.host, endpoint.port, log) for name, endpoint in endpoints.items())


def _statistics(cluster: Cluster) -> str:
    """Return the URL of the proxy's page; empty if no browser of this machine can open it."""
    proxy = cluster.proxy
    return "" if proxy is None or (proxy.host and proxy.host.connects) else proxy.statistics_url


def _client(cluster: Cluster, provisioner: Keeps) -> tuple[str, Path]:
    """Return a client command for the server, and a directory that the client can read.

    For a host in an image, both are in the image; for a host on another machine, both are there.
    """
    from pytest_dbcluster.releases.find import find_program

    host, release = cluster.nodes[0].host, cluster.nodes[0].release
    beside = next(filter(None, map(release.path_of, CLIENTS)), None)
    if beside and (command := host.command_line([str(beside)])):
        return shlex.join(command), Path(host.directory)
    vendor = sorted(CLIENTS, key=lambda name: name != release.upstream)
    own = [release.bin / name for name in CLIENTS if (release.bin / name).exists()]
    anywhere = (find_program(name, name) for name in vendor if not own)
    path = next((path for path in [*own, *anywhere] if path), Path(vendor[0]))
    return shlex.quote(str(path)), provisioner.directory


def _client_text(cluster: Cluster, release: Release) -> str:
    endpoint = cluster.nodes[0].endpoint
    options = {"user": endpoint.user, "password": endpoint.password, "protocol": "tcp", **release.client_options}
    return "\n".join(["[client]", *(f"{name} = {value}" for name, value in options.items()), ""])


def read(directory: Path) -> list[Kept]:
    """Return the kept clusters of a run's directory; none if the record is missing or unreadable.

    The texts come from the directory's owner: print them with ``formatting.printable``.
    """
    try:
        return msgspec.json.decode(owned_files.read(directory, FILE)[0], type=list[Kept])
    except (OSError, msgspec.DecodeError, RecursionError):
        return []


def describe(kept: Kept) -> str:
    """Return the text that says how to connect, where the logs are, and how to end it. It has no password."""
    command = f"{kept.client} --defaults-file={shlex.quote(kept.client_cnf)}"
    lines = [
        f"cluster {kept.name} (run {kept.run_id}): {len(kept.nodes)} x {kept.release} {kept.version}, {kept.topology}"
    ]
    lines += [
        f"  {listener.name:8} {command} --host={listener.address} --port={listener.port}"
        for listener in (*kept.nodes, *kept.proxy)
    ]
    lines.append("logs")
    lines += [f"  {node.name:8} {node.log}" for node in kept.nodes]
    lines += [f"  {'proxy':8} {listener.log}" for listener in kept.proxy[:1]]
    if kept.statistics:
        lines.append(f"statistics page of the proxy: {kept.statistics}")
    return "\n".join([*lines, f"end it: {kept.end or f'dbcluster down {kept.run_id}'}"])


def choose(wanted: str, runs: Iterable[Run]) -> Run:
    """Return the run with this id, or this user's run with a kept cluster of this name.

    Any user can give a cluster any name, so only the id chooses a run of another user. Raises ConfigError with all ids
    and names if none or several match.
    """
    names_of = {run: [kept.name for kept in read(run.directory)] for run in runs}
    matching = [run for run, names in names_of.items() if wanted == run.run_id or (run.mine and wanted in names)]
    if len(matching) == 1:
        return matching[0]
    shown = ", ".join(_run_text(run, names) for run, names in names_of.items())
    if matching:
        raise ConfigError(f"{wanted!r} is the name of {len(matching)} runs; choose one by its id: {shown}")
    raise ConfigError(f"no run has the id or name {wanted!r}; known: {shown or 'none'}")


def _run_text(run: Run, names: Iterable[str]) -> str:
    return " ".join([run.run_id, *map(repr, names), *([] if run.mine else [f"of {run.user}"])])
