"""Asynchronous replication: a commit returns when the primary has it, and the replicas get it afterwards."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_dbcluster.clusters.replication import PrimaryAndReplicas


class AsyncReplication(PrimaryAndReplicas):
    """A primary and its replicas; how far they are behind is the backlog."""

    name = "async_replication"

    def acknowledged(self, variables: Mapping[str, str], nodes: int) -> str:
        """Nobody but the primary has been asked."""
        return "one server, replicas later"

    def consistency(self, variables: Mapping[str, str]) -> str:
        """No choice: a read on a replica sees what it has applied."""
        return ""


TOPOLOGY = AsyncReplication
