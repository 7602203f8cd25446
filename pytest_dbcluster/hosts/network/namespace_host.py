"""A host of this machine whose programs run in a network namespace with a separate address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster.hosts.guests.user_namespace import UserNamespace
from pytest_dbcluster.hosts.host import Partitions
from pytest_dbcluster.hosts.local_host import LocalHost, SupervisorClient
from pytest_dbcluster.hosts.network.namespaces import Namespace
from pytest_dbcluster.hosts.network.path import NetworkPath
from pytest_dbcluster.system.ports import PortLocks


class NamespaceHost(LocalHost, Partitions):
    """A directory and a network namespace of this machine. ``path``: the network to the cluster's other hosts."""

    def __init__(self, name: str, directory: Path, client: SupervisorClient, ports: PortLocks) -> None:
        super().__init__(name, directory, client, ports)
        self.path: NetworkPath | None = None
        self._user: UserNamespace | None = None

    def enter(self, namespace: Namespace | UserNamespace, address: str) -> None:
        """Run later programs in this namespace. ``address``: the host's address there."""
        self.address = address
        self.enters = namespace.command_inside()
        self._user = namespace.user if isinstance(namespace, Namespace) else namespace
        if self._user:
            self.root, self.connects = True, self._user.connect

    def command_line(self, command: Sequence[str]) -> list[str]:
        """The command line that can reach the cluster's addresses, if this machine cannot."""
        return self._user.command_inside(command) if self._user else []

    def port(self, usual: int) -> int:
        """The usual port, because no other program listens in this namespace."""
        return usual

    def why_lost(self) -> str:
        """Why the host cannot be used any more; empty while it can be used."""
        return super().why_lost() or (self.path.why_lost() if self.path else "")

    def partition(self) -> None:
        """Cut the host off from all other hosts and from this machine. Raises ProvisionError."""
        if self.path:
            self.path.cut(self.name, here=True)

    def heal(self) -> None:
        """Connect the host again. Raises ProvisionError."""
        if self.path:
            self.path.join(self.name, here=True)


MakesHost = Callable[[str, Path], NamespaceHost]
