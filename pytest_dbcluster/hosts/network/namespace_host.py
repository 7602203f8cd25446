"""A host of this machine whose programs run in a network namespace, with an address of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster.hosts.guests.user_namespace import UserNamespace
from pytest_dbcluster.hosts.local_host import LocalHost, SupervisorClient
from pytest_dbcluster.hosts.network.namespaces import Namespace
from pytest_dbcluster.hosts.network.path import NetworkPath
from pytest_dbcluster.system.ports import PortLocks


class NamespaceHost(LocalHost):
    """A directory on this machine, and a network namespace. ``path``: the network to the other hosts of the cluster."""

    def __init__(self, name: str, directory: Path, client: SupervisorClient, ports: PortLocks) -> None:
        super().__init__(name, directory, client, ports)
        self.path: NetworkPath | None = None
        self._user: UserNamespace | None = None

    def enter(self, namespace: Namespace | UserNamespace, address: str) -> None:
        """Run later programs in this namespace. ``address``: the host's own address there."""
        self.address = address
        self.enters = namespace.entering()
        self._user = namespace.user if isinstance(namespace, Namespace) else namespace
        if self._user:
            self.root, self.connects = True, self._user.connect

    def typed(self, command: Sequence[str]) -> list[str]:
        """The command line that reaches the cluster's addresses, where this machine does not."""
        return self._user.entering(command) if self._user else []

    def port(self, usual: int) -> int:
        """The usual port: nobody else listens in this namespace."""
        return usual

    def lost(self) -> str:
        """Why the host cannot be used any more; empty while it can be."""
        return super().lost() or (self.path.lost() if self.path else "")


MakesHost = Callable[[str, Path], NamespaceHost]
