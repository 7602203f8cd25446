"""A run on this machine: its directory, which records the owner process, and its supervisor.

Every provisioner that keeps files of its hosts on this machine uses a ``LocalRun``. ``LocalRunProvisioner`` is the base
class of those with all data here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import file_name
from pytest_dbcluster.hosts import cleanup, runs, supervisor
from pytest_dbcluster.hosts.local_host import OTHER_DIRECTORY, LocalHost, SupervisorClient
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.network import node_names
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from pytest_dbcluster.system import block_devices, cgroups
from pytest_dbcluster.system.ports import PortLocks


class LocalRun:
    """The directory and the supervisor of one run. The first host starts the run.

    ``keep``: the caller may leave the run alive with ``leave``. ``ports``: the ports of its hosts on 127.0.0.1.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.run_id = secrets.token_hex(4)
        self.directory = runs.directory() / self.run_id
        self.keep = keep
        self._clusters = 0
        self._acquiring = threading.Lock()  # clusters start in parallel
        self.ports = PortLocks()
        self._client: SupervisorClient | None = None
        self._left = False
        self._test = ""

    @property
    def left(self) -> bool:
        """Whether ``leave`` was called: the run stays when this process ends."""
        return self._left

    @property
    def client(self) -> SupervisorClient:
        """The supervisor. The first call removes dead runs and starts the supervisor. Raises ProvisionError.

        If the supervisor has died, it starts another one. Hosts of the dead one stay lost.
        """
        with self._acquiring:
            if self._client and self._client.lost:
                self._begin_again(self._client)
            return self._client or self._begin()

    def cluster_directory(self, spec: ClusterSpec) -> Path:
        """The path for a new cluster's directory, which it does not create. Raises ProvisionError."""
        assert self.client
        with self._acquiring:
            self._clusters += 1
            return self.directory / f"{self._clusters}-{file_name(spec.short_name)}"

    def host(self, name: str, directory: Path) -> LocalHost:
        """A host of this machine with this directory. Creates the directory. Raises ProvisionError."""
        return LocalHost(name, directory, self.client, self.ports)

    def limit(self, host: LocalHost, name: str, needs: HostNeeds) -> None:
        """Put later programs of a host into a control group. Raises Unsupported or ProvisionError."""
        client = self.client
        with self._acquiring:
            host.group = cgroups.find(self.directory.parent).group(self.run_id, name, needs)
            for directory in cgroups.record(self.directory, host.group):
                client.ask("own_group", group=str(directory))

    def clean_up_by(
        self, argv: Sequence[str], environment: Mapping[str, str], seconds: float = supervisor.AFTER_SECONDS
    ) -> None:
        """Register a command that runs at the end of the run, after its programs have ended.

        ``environment``: additional variables; they are written to a file that only this user can read. seconds: its
        timeout. Raises ProvisionError.
        """
        client, command = self.client, cleanup.Command(argv, environment, seconds)
        try:
            with self._acquiring:
                cleanup.record(self.directory, command)
        except OSError as error:
            raise self._unwritable(error) from None
        _register(client, command)

    def note_test(self, test: str) -> None:
        """Note the test that the run measures, for ``dbcluster ps``; empty for none."""
        self._test = test
        if self._client:
            runs.note_test(self.directory, test)

    def leave(self) -> None:
        """Leave the run alive when this process ends. Before this call a run with ``keep`` ends with this process.

        Raises ProvisionError for a run without ``keep``, or without a host.
        """
        if not (self._client and self.keep):
            raise ProvisionError("only a run made with keep=True that has a host can be left running")
        runs.claim(self.directory, keep=True)
        self._client.ask("leave")
        self._left = True

    def close(self) -> None:
        """End every program of the run, remove its directory and release its ports.

        After ``leave``, programs and directory stay. A second call does nothing. Raises ProvisionError if the
        supervisor does not end in time.
        """
        if self._client and self._client.lost and not self._left:
            with contextlib.suppress(ProvisionError):  # a later run, or dbcluster reap, removes what is left
                self._begin_again(self._client)
        client, self._client = self._client, None
        try:
            if client:
                client.close()
        except KeyboardInterrupt:
            self._client = client  # the caller closes the run again
            raise
        finally:
            self.ports.close()

    def _begin(self) -> SupervisorClient:
        runs.reap()
        try:
            self._make_directory()
            self._client = SupervisorClient(self.run_id, keep=self.keep)
            self._client.ask("own", directory=str(self.directory))
        except KeyboardInterrupt:  # perhaps no other process knows the directory yet
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        return self._client

    def _make_directory(self) -> None:
        try:
            self.directory.mkdir(parents=True, mode=0o700)
            runs.claim(self.directory)
            runs.note_test(self.directory, self._test)
        except OSError as error:
            raise self._unwritable(error) from None

    def _begin_again(self, dead: SupervisorClient) -> None:
        """End the remaining programs of a dead supervisor, and start another one with the same clean-up."""
        runs.end_sessions(self.run_id, dead.started)
        dead.close()
        self._client = client = SupervisorClient(self.run_id, keep=self.keep)
        client.ask("own", directory=str(self.directory))
        for group in cgroups.recorded_groups(self.directory):
            client.ask("own_group", group=str(group))
        for command in cleanup.read_commands(self.directory):
            _register(client, command)

    def _unwritable(self, error: OSError) -> ProvisionError:
        return ProvisionError(f"cannot keep data in {self.directory.parent}: {error.strerror}; {OTHER_DIRECTORY}")


def _register(client: SupervisorClient, command: cleanup.Command) -> None:
    environment = {**os.environ, **command.environment}
    client.ask("after", argv=list(command.argv), environment=environment, seconds=command.seconds)


class LocalRunProvisioner(Provisioner):
    """Hosts of one run on this machine. ``keep``: the caller may leave the run alive with ``leave``."""

    def __init__(self, *, keep: bool = False) -> None:
        self._run = LocalRun(keep=keep)
        self.run_id, self.directory = self._run.run_id, self._run.directory

    @property
    def disk(self) -> str:
        """The file system and the disk of the data."""
        return block_devices.description(self.directory)

    def _places(self, spec: ClusterSpec) -> list[Path]:
        """Directories for a new cluster: of its nodes, then of the other ends of the network that the spec asks for."""
        directory, asked = self._run.cluster_directory(spec), spec.needs.network
        return [directory / name for name in (*node_names(spec.nodes), *(asked.ends if asked else ()))]

    def note_test(self, test: str) -> None:
        """Note the node id of the test that the run measures from now on; empty for none."""
        self._run.note_test(test)

    def leave(self) -> None:
        """Leave the run alive when this process ends. Before this call a run with ``keep`` ends with this process."""
        self._run.leave()
