"""Clusters that stay: what is written down about them, and the text that says how to connect.

A kept run's directory holds ``cluster.json`` beside ``run.json``. Passwords are in a ``client.cnf`` of mode 0600 for
each cluster and nowhere else.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioner import Keeps
from pytest_dbcluster.hosts.runs import Run
from pytest_dbcluster.releases.find import elsewhere
from pytest_dbcluster.releases.release import Release

FILE = "cluster.json"
CLIENTS = ("mariadb", "mysql")


@dataclasses.dataclass(frozen=True)
class Listener:
    """Something to connect to: a node, or one of the proxy's listeners."""

    name: str
    address: str
    port: int
    log: str = ""


@dataclasses.dataclass(frozen=True)
class Kept:
    """One cluster that outlives the process that made it; ``client`` is what a shell reads before its options."""

    run_id: str
    name: str
    topology: str
    release: str
    version: str
    client: str
    client_cnf: str
    directory: str
    began: float
    nodes: tuple[Listener, ...]
    proxy: tuple[Listener, ...] = ()
    statistics: str = ""


def write(cluster: Cluster, provisioner: Keeps, *, name: str = "") -> Kept:
    """Leave this cluster running and write down what it is; ``close()`` of the provisioner then ends nothing.

    A run may keep several clusters, each written in turn. Raises ProvisionError when the run was not begun with
    ``keep``.
    """
    file = provisioner.directory / FILE
    number = len(read(provisioner.directory)) + 1
    release = cluster.nodes[0].release
    client, directory = _client(cluster, provisioner)
    client_cnf = directory / f"client{number}.cnf"
    kept = Kept(
        run_id=provisioner.run_id,
        name=name or cluster.spec.short_name,
        topology=cluster.spec.topology,
        release=release.name,
        version=release.version,
        client=client,
        client_cnf=str(client_cnf),
        directory=str(provisioner.directory),
        began=time.time(),
        nodes=tuple(Listener(node.name, node.host.address, node.port, node.log) for node in cluster.nodes),
        proxy=_listeners(cluster),
        statistics=cluster.proxy.statistics_url if cluster.proxy else "",
    )
    _private(client_cnf, _client_text(cluster, release))
    _private(file, json.dumps([dataclasses.asdict(each) for each in (*read(provisioner.directory), kept)], indent=1))
    provisioner.leave()
    return kept


def _listeners(cluster: Cluster) -> tuple[Listener, ...]:
    if cluster.proxy is None:
        return ()
    log = cluster.proxy.log()
    named = {"writer": cluster.writer(), "reader": cluster.reader()}
    return tuple(Listener(name, endpoint.host, endpoint.port, log) for name, endpoint in named.items())


def _client(cluster: Cluster, provisioner: Keeps) -> tuple[str, Path]:
    """A client that fits the server, and a directory that it can read: in an image the host has one of its own."""
    host, release = cluster.nodes[0].host, cluster.nodes[0].release
    beside = next(filter(None, map(release.beside, CLIENTS)), None)
    if beside and (words := host.typed([str(beside)])):
        return shlex.join(words), Path(host.directory)
    vendor = sorted(CLIENTS, key=lambda name: name != release.product)
    found = [release.bin / name for name in CLIENTS if (release.bin / name).exists()]
    anywhere = (elsewhere(name, name) for name in vendor if not found)
    path = next((path for path in [*found, *anywhere] if path), Path(vendor[0]))
    return shlex.quote(str(path)), provisioner.directory


def _client_text(cluster: Cluster, release: Release) -> str:
    endpoint = cluster.nodes[0].endpoint
    options = {"user": endpoint.user, "password": endpoint.password, "protocol": "tcp", **release.client_options}
    return "\n".join(["[client]", *(f"{name} = {value}" for name, value in options.items()), ""])


def _private(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.rename(path)


def read(directory: Path) -> list[Kept]:
    """The clusters that a run's directory tells of; none where it tells of none."""
    try:
        return [_kept(said) for said in json.loads((directory / FILE).read_text())]
    except (OSError, ValueError, TypeError, KeyError):
        return []


def _kept(said: dict[str, Any]) -> Kept:
    listeners = {key: tuple(Listener(**fields) for fields in said[key]) for key in ("nodes", "proxy")}
    return Kept(**{**said, **listeners})


def describe(kept: Kept) -> str:
    """How to connect to each node and the proxy, where the logs are, how to end it. Holds no password."""
    command = f"{kept.client} --defaults-file={shlex.quote(kept.client_cnf)}"
    lines = [
        f"cluster {kept.name} (run {kept.run_id}): {len(kept.nodes)} x {kept.release} {kept.version}, {kept.topology}"
    ]
    lines += [
        f"  {each.name:8} {command} --host={each.address} --port={each.port}" for each in (*kept.nodes, *kept.proxy)
    ]
    lines.append("logs")
    lines += [f"  {each.name:8} {each.log}" for each in kept.nodes]
    lines += [f"  {'proxy':8} {each.log}" for each in kept.proxy[:1]]
    if kept.statistics:
        lines.append(f"the proxy's own page: {kept.statistics}")
    return "\n".join([*lines, f"end it: dbcluster down {kept.run_id}"])


def chosen(wanted: str, runs: Iterable[Run]) -> Run:
    """The run with this id, or with a kept cluster of this name. Raises ConfigError that lists what there is."""
    every = {run: [kept.name for kept in read(run.directory)] for run in runs}
    found = [run for run, names in every.items() if wanted == run.run_id or wanted in names]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(" ".join([run.run_id, *map(repr, names)]) for run, names in every.items())
    if found:
        raise ConfigError(f"{wanted!r} names {len(found)} runs, say which by its id: {shown}")
    raise ConfigError(f"no run has the id or name {wanted!r}; there is: {shown or 'none'}")
