"""Provisioner: where hosts come from, and what they offer."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from pytest_dbcluster import registry
from pytest_dbcluster.host import Host
from pytest_dbcluster.spec import ClusterSpec

PLANNED = ("container", "ec2", "vm")


class Provisioner(Protocol):
    """Hands out hosts for a cluster and takes them back.

    ``offers`` are the powers of its hosts: ``shared-cores`` (nodes compete for the machine's CPUs), ``root``,
    ``netem``, ``block-devices``, ``iops``, ``cores`` (a spec's ``cores=`` limits each host).
    """

    offers: frozenset[str]

    def acquire(self, spec: ClusterSpec) -> Sequence[Host]:
        """One host for each node, in the order of the nodes. Raises ProvisionError or Unsupported."""

    def release(self, hosts: Sequence[Host]) -> None:
        """End everything on these hosts and remove what is ours. Never raises for what is gone already."""


class Keeps(Protocol):
    """An extra power: what was begun with ``keep=True`` can outlive this process, until it is ended by its id."""

    run_id: str
    directory: Path

    def leave(self) -> None:
        """From now on the end of this process ends nothing. Raises ProvisionError for one begun without ``keep``."""


def own_cores(offers: frozenset[str], spec: ClusterSpec, usable: float) -> bool:
    """Whether each node of a cluster has CPUs of its own.

    It has on hosts of its own; on one machine of ``usable`` CPUs where the spec limits each host (``cores=``), the
    provisioner does that, and there are enough for all.
    """
    if "shared-cores" not in offers:
        return True
    each = spec.needs.cores
    return "cores" in offers and each is not None and each * spec.nodes <= usable


def module_of(name: str) -> str:
    """The module behind ``--db-provisioner NAME``, not loaded yet. Raises ConfigError that lists the known names."""
    return registry.find("provisioner", "pytest_dbcluster.provisioners", name, planned=PLANNED)


def provisioner_class(name: str) -> Callable[..., Provisioner]:
    """The class behind ``--db-provisioner NAME``. Raises ConfigError that lists the known names."""
    made: Callable[..., Provisioner] = importlib.import_module(module_of(name)).PROVISIONER
    return made
