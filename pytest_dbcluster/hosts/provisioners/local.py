"""Local provisioner: every node is a process on 127.0.0.1. Needs no root."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Mapping, Sequence

from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.local_run import LocalRun
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cgroups


class LocalProvisioner(Provisioner):
    """Hosts that are directories of one run on this machine. With ``keep`` the run may be left running.

    What a spec needs of them is limited by control groups, where this machine lets us make some.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self._run = LocalRun(keep=keep)
        self.run_id, self.directory = self._run.run_id, self._run.directory

    @functools.cached_property
    def offers(self) -> frozenset[str]:
        """What this machine lets us do. Limits are tried once, by making a control group and removing it."""
        root = {"root"} if os.geteuid() == 0 else set()
        return frozenset({"shared-cores"} | root | cgroups.find(self.directory.parent).offers)

    @property
    def missing(self) -> Mapping[str, str]:
        """Why the rest is not offered."""
        own_network = "all nodes are on 127.0.0.1, where a delay would meet everything on this machine"
        return {**cgroups.find(self.directory.parent).missing, "netem": own_network}

    def acquire(self, spec: ClusterSpec) -> Sequence[LocalHost]:
        """One directory for each node; the first call starts the supervisor and clears dead runs away."""
        place = self._run.place(spec)
        hosts = [self._run.host(f"node{n}", place / f"node{n}") for n in range(1, spec.nodes + 1)]
        try:
            for host in hosts if spec.needs.powers else ():
                self._run.limit(host, f"{place.name}-{host.name}", spec.needs)
        except BaseException:
            self.give_back(hosts)
            raise
        return hosts

    def give_back(self, hosts: Sequence[Host]) -> None:
        """Remove the directories and groups of these hosts; their servers have been stopped by their nodes."""
        for host in hosts:
            if isinstance(host, LocalHost) and host.group:
                host.group.remove()
            shutil.rmtree(host.directory, ignore_errors=True)

    def leave(self) -> None:
        """From now on the end of this process ends nothing; until then a run with ``keep`` dies as any other does."""
        self._run.leave()

    def close(self) -> None:
        """End every server of the run and remove its directory, unless it was left; give its ports back."""
        self._run.close()


PROVISIONER = LocalProvisioner
