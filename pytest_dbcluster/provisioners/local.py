"""Local provisioner: every node is a process on 127.0.0.1. Needs no root."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from pytest_dbcluster.host import Host
from pytest_dbcluster.local_host import LocalHost
from pytest_dbcluster.local_run import LocalRun
from pytest_dbcluster.spec import ClusterSpec


class LocalProvisioner:
    """Hosts that are directories of one run on this machine. With ``keep`` the run may be left running."""

    offers = frozenset({"shared-cores"} | ({"root"} if os.geteuid() == 0 else set()))

    def __init__(self, *, keep: bool = False) -> None:
        self._run = LocalRun(keep=keep)
        self.run_id, self.directory = self._run.run_id, self._run.directory

    def acquire(self, spec: ClusterSpec) -> Sequence[LocalHost]:
        """One directory for each node; the first call starts the supervisor and clears dead runs away."""
        place = self._run.place(spec)
        return [self._run.host(f"node{n}", place / f"node{n}") for n in range(1, spec.nodes + 1)]

    def release(self, hosts: Sequence[Host]) -> None:
        """Remove the directories of these hosts; their servers have been stopped by their nodes."""
        for host in hosts:
            shutil.rmtree(host.directory, ignore_errors=True)

    def leave(self) -> None:
        """From now on the end of this process ends nothing; until then a run with ``keep`` dies as any other does."""
        self._run.leave()

    def close(self) -> None:
        """End every server of the run and remove its directory, unless it was left; give its ports back."""
        self._run.close()


PROVISIONER = LocalProvisioner
