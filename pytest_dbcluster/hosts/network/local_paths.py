"""The paths of a run on this machine: the choice of their router, and why this machine cannot have them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.guests import user_namespace
from pytest_dbcluster.hosts.guests.user_namespace import UserNamespace
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.network import kernel_router
from pytest_dbcluster.hosts.network.guest_router import GuestRouter
from pytest_dbcluster.hosts.network.kernel_router import KernelRouter
from pytest_dbcluster.hosts.network.namespace_host import NamespaceHost
from pytest_dbcluster.hosts.network.namespaces import program
from pytest_dbcluster.hosts.network.routed_path import NONE, RoutedPath
from pytest_dbcluster.network import node_names
from pytest_dbcluster.spec import ClusterSpec

HOLDERS = "network"  # directory of the processes that hold the namespaces of a cluster


def make(run: LocalRun, spec: ClusterSpec, directory: Path, progress: Report = lambda _: None) -> list[LocalHost]:
    """The hosts of the nodes of a cluster that asks for a network, on a path that delays nothing yet.

    directory: of the cluster. Raises Unsupported or ProvisionError, and then leaves nothing.
    """
    asked = spec.needs.network
    assert asked
    nodes = node_names(spec.nodes)
    path = make_path(run, directory, [*nodes, *asked.ends], progress=progress)
    return [host for node in nodes if isinstance(host := path.host(node), LocalHost)]


def make_path(
    run: LocalRun,
    directory: Path,
    ends: Sequence[str],
    given: Mapping[str, tuple[int, Host]] = NONE,
    progress: Report = lambda _: None,
) -> RoutedPath:
    """A path between these ends that delays nothing yet; given: as in ``RoutedPath.make``.

    Raises Unsupported or ProvisionError, and then leaves nothing.
    """
    if reason := why_not():
        raise Unsupported(f"this machine cannot delay a network: {reason}")
    number = int(directory.name.partition("-")[0])
    spawns = run.host(HOLDERS, directory / HOLDERS)
    path = RoutedPath(
        run.run_id,
        number,
        directory,
        spawns,
        lambda name, own: NamespaceHost(name, own, run.client, run.ports),
        None if user_namespace.root() else UserNamespace(spawns, "user"),
    )
    try:
        path.make(ends, given)
        assert path.hub
        if kernel_delays():
            path.begin(KernelRouter(path.hub))
        else:
            path.begin(GuestRouter(spawns, path.hub, path.gateway, keep=run.keep, progress=progress))
        return path
    except BaseException:
        path.close()
        raise


@functools.cache
def kernel_delays() -> bool:
    """Whether the kernel of this machine can delay packets for us; otherwise a guest does."""
    return not kernel_router.why_not()


@functools.cache
def why_not() -> str:
    """Why local processes cannot have a separate network on this machine, as a clause; empty if they can."""
    try:
        for name in ("ip", "unshare", "nsenter"):
            program(name)
    except Unsupported as error:
        return str(error)
    return user_namespace.why_not()
