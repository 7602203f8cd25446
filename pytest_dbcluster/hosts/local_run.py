"""A run on this machine: its directory, which says whose it is, and its supervisor.

Every provisioner whose hosts keep their data on this machine has one.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import cleanup, runs
from pytest_dbcluster.hosts.local_host import OTHER_PLACE, LocalHost, SupervisorClient
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from pytest_dbcluster.system import cgroups
from pytest_dbcluster.system.ports import PortLocks


class LocalRun:
    """The directory and the supervisor of one run, begun when the first place is asked for.

    With ``keep`` it may be left running.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.run_id = secrets.token_hex(4)
        self.directory = runs.directory() / self.run_id
        self.keep = keep
        self._clusters = 0
        self._acquiring = threading.Lock()  # clusters are brought up side by side
        self._ports = PortLocks()
        self._client: SupervisorClient | None = None

    @property
    def begun(self) -> bool:
        """Whether its supervisor runs."""
        return self._client is not None

    @property
    def client(self) -> SupervisorClient:
        """The supervisor; the first call starts it and clears dead runs away. Raises ProvisionError."""
        with self._acquiring:
            return self._client or self._begin()

    def place(self, spec: ClusterSpec) -> Path:
        """A directory for one more cluster; it is not made yet. Raises ProvisionError."""
        assert self.client
        with self._acquiring:
            self._clusters += 1
            return self.directory / f"{self._clusters}-{spec.short_name}"

    def host(self, name: str, directory: Path) -> LocalHost:
        """A host of this machine with this directory, which is made. Raises ProvisionError."""
        return LocalHost(name, directory, self.client, self._ports)

    def limit(self, host: LocalHost, name: str, needs: HostNeeds) -> None:
        """Put what a host spawns from now on into a control group of its own. Raises Unsupported or ProvisionError."""
        client = self.client
        with self._acquiring:
            host.group = cgroups.find(self.directory.parent).group(self.run_id, name, needs)
            for place in cgroups.record(self.directory, host.group):
                client.ask("own_group", group=str(place))

    def clean_up_by(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Have this command run when the run ends, whoever ends it, once its programs have ended.

        ``environment`` is what the command needs beside our own variables; it is written to disk, for this user alone.
        Raises ProvisionError.
        """
        client = self.client
        try:
            with self._acquiring:
                cleanup.record(self.directory, cleanup.Command(argv, environment))
        except OSError as error:
            raise self._unwritable(error) from None
        client.ask("after", argv=list(argv), environment={**os.environ, **environment})

    def leave(self) -> None:
        """From now on the end of this process ends nothing; until then a run with ``keep`` dies as any other does."""
        if not (self._client and self.keep):
            raise ProvisionError("only a run that was begun with keep, and has a host, can be left running")
        runs.claim(self.directory, keep=True)
        self._client.ask("leave")

    def close(self) -> None:
        """End every program of the run and remove its directory, unless it was left; give its ports back.

        Raises ProvisionError when the supervisor takes longer than it may; a second call does nothing.
        """
        client, self._client = self._client, None
        try:
            if client:
                client.close()
        except KeyboardInterrupt:
            self._client = client  # who asked is going to ask again
            raise
        finally:
            self._ports.close()

    def _begin(self) -> SupervisorClient:
        runs.reap()
        try:
            self.directory.mkdir(parents=True, mode=0o700)
            runs.claim(self.directory)
        except OSError as error:
            raise self._unwritable(error) from None
        self._client = SupervisorClient(self.run_id, keep=self.keep)
        self._client.ask("own", directory=str(self.directory))
        return self._client

    def _unwritable(self, error: OSError) -> ProvisionError:
        return ProvisionError(f"cannot keep data in {self.directory.parent}: {error.strerror}; {OTHER_PLACE}")
