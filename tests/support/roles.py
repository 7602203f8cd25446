"""What a proxy needs below unit tests: a topology whose roles a test sets, and a provisioner of one host."""

from __future__ import annotations

from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.hosts.provisioner import Provisioner


class Roles(Topology):
    """A topology that can be adopted; ``primaries`` take writes, the others reads."""

    adoption = {"adoptFromGR": True}  # noqa: RUF012  (as a topology has it)
    primaries = ("node1",)

    def options(self, node, peers):
        """None."""
        return {}

    def form(self, nodes):
        """Nothing to start."""

    def problems(self, nodes):
        """None."""
        return []

    def writers(self, nodes):
        """Those that are named."""
        return [node for node in nodes if node.name in self.primaries]

    def readers(self, nodes):
        """The others."""
        return [node for node in nodes if node.name not in self.primaries]


class OneHost(Provisioner):
    """A provisioner of one host."""

    offers = frozenset()

    def __init__(self, host):
        self.host = host

    def acquire(self, spec):
        """That host."""
        return [self.host]

    def give_back(self, hosts):
        """Nothing to do."""
