"""Local provisioner: every node is a process on 127.0.0.1. It does not need root.

If a cluster asks for a network, its nodes are processes in network namespaces. These need root or a user namespace.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Mapping, Sequence

from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRunProvisioner
from pytest_dbcluster.hosts.network import local_paths, routed_path
from pytest_dbcluster.hosts.network.namespace_host import NamespaceHost
from pytest_dbcluster.hosts.provisioner import NO_DISKS
from pytest_dbcluster.network import node_names
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cgroups


class LocalProvisioner(LocalRunProvisioner):
    """Hosts that are directories of one run. If we may create control groups, they enforce the limits of a spec."""

    @functools.cached_property
    def offers(self) -> frozenset[str]:
        """The powers on this machine. We test limits once with a control group."""
        root = {"root"} if os.geteuid() == 0 else set()
        netem = set() if local_paths.why_not() else {"netem"}
        return frozenset({"shared-cores"} | root | netem | cgroups.find(self.directory.parent).offers)

    def host_type(self, spec: ClusterSpec) -> type[LocalHost]:
        """Processes have the power ``Partitions`` in network namespaces, which clusters with a network have."""
        return LocalHost if spec.needs.network is None else NamespaceHost

    @property
    def missing(self) -> Mapping[str, str]:
        """Why other powers are not offered: power -> a clause with the reason."""
        limits = cgroups.find(self.directory.parent).missing
        return {**limits, "netem": local_paths.why_not(), "block-devices": NO_DISKS}

    def acquire(self, spec: ClusterSpec) -> Sequence[LocalHost]:
        """One directory for each node. The first call removes dead runs and starts the supervisor.

        If the spec asks for a network, each node also has a network namespace.
        """
        directory = self._run.cluster_directory(spec)
        hosts: Sequence[LocalHost]
        if spec.needs.network is None:
            hosts = [self._run.host(name, directory / name) for name in node_names(spec.nodes)]
        else:
            hosts = local_paths.make(self._run, spec, directory)
        try:
            for host in hosts if spec.needs.without_network.powers else ():
                self._run.limit(host, f"{directory.name}-{host.name}", spec.needs)
        except BaseException:
            self.give_back(hosts)
            raise
        return hosts

    def give_back(self, hosts: Sequence[Host]) -> None:
        """Remove the directories, control groups and networks of these hosts. Their servers have already stopped."""
        for host in (*hosts, *routed_path.close_all(hosts)):
            if isinstance(host, LocalHost) and host.group:
                host.group.remove()
            shutil.rmtree(host.directory, ignore_errors=True)

    def close(self) -> None:
        """End every server of the run, remove its directory and release its ports; after ``leave`` only the ports."""
        self._run.close()


PROVISIONER = LocalProvisioner
