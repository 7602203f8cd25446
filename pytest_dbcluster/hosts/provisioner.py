"""Provisioner: where hosts come from, and what they offer."""

from __future__ import annotations

import abc
import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.releases.release import Release

PLANNED = ("ec2", "vm")


class Provisioner(abc.ABC):
    """Hands out hosts for a cluster and takes them back.

    ``run_id`` names the run that its hosts belong to, "-" when it has no run. ``brings_programs``: each host has the
    programs of one release with it, so that every release needs a client host of its own.
    """

    run_id: str = "-"
    brings_programs: bool = False

    @property
    @abc.abstractmethod
    def offers(self) -> frozenset[str]:
        """The powers of its hosts.

        ``shared-cores`` (nodes compete for the machine's CPUs), ``root``, ``netem``, ``block-devices``, and limits of
        each host: ``cores``, ``memory``, ``iops``.
        """

    @property
    def missing(self) -> Mapping[str, str]:
        """Why it does not offer some powers here: a clause by the power's name in ``offers``."""
        return {}

    @abc.abstractmethod
    def acquire(self, spec: ClusterSpec) -> Sequence[Host]:
        """One host for each node, in the order of the nodes. Raises ProvisionError or Unsupported."""

    @abc.abstractmethod
    def give_back(self, hosts: Sequence[Host]) -> None:
        """End everything on these hosts and remove what is ours. Never raises for what is gone already."""

    def supply(self, name: ReleaseName, progress: Report) -> Release:
        """The release of this name as the hosts have it: by default the programs of this machine, found or fetched.

        Raises ProvisionError, Unsupported or ConfigError.
        """
        from pytest_dbcluster.releases.find import find

        return find(name, progress=progress)

    def beside(self, host: Host) -> Host:
        """Where programs of ours run that this host can reach: on the host itself, unless it may have no Python."""
        return host

    def unmet(self, spec: ClusterSpec) -> str:
        """Which of a spec's needs its hosts would not meet, and why; empty when they meet all."""
        powers = spec.needs.powers
        lacks = [power for power in powers if power not in self.offers] if powers else []
        if not lacks:
            return ""
        asked = ", ".join(powers[power] for power in lacks)
        why = self.missing
        reasons = "; ".join(dict.fromkeys(why[power] for power in lacks if power in why))
        storage = f"storage {spec.needs.storage}, " if spec.needs.storage and "iops" in lacks else ""
        return f"cluster {spec} needs {storage}{asked} of its hosts, which this provisioner does not offer here" + (
            f": {reasons}" if reasons else ""
        )

    def close(self) -> None:  # noqa: B027  (most hold nothing beyond their hosts)
        """End what is left of the run, unless it was left running. A second call does nothing."""


@runtime_checkable
class Keeps(Protocol):
    """An optional power: what was begun with ``keep=True`` can outlive this process, until it is ended by its id."""

    run_id: str
    directory: Path

    def leave(self) -> None:
        """From now on the end of this process ends nothing. Raises ProvisionError for one begun without ``keep``."""


def memory_share(spec: ClusterSpec, machine: int) -> int:
    """The bytes that a node may take ``80 %`` of: its host's memory where that is limited, else its part of a machine.

    ``machine``: all the memory there is, in bytes.
    """
    return spec.needs.memory or machine // spec.nodes


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
    return registry.find("provisioner", name, planned=PLANNED)


def provisioner_class(name: str) -> Callable[..., Provisioner]:
    """The class behind ``--db-provisioner NAME``. Raises ConfigError that lists the known names."""
    made: Callable[..., Provisioner] = importlib.import_module(module_of(name)).PROVISIONER
    return made


def given_images(given: Sequence[str], provisioner: str) -> Mapping[str, str]:
    """The images of ``--db-image`` by the names of their releases. Raises ConfigError."""
    if given and provisioner != "container":
        raise ConfigError(f"an image ({given[0]}): the provisioner {provisioner} uses no images, container does")
    found = {}
    for text in given:
        name, _, image = text.partition("=")
        if not image:
            raise ConfigError(
                f"an image is written NAME:VERSION=IMAGE, such as mariadb:11.8=mariadb:11.8.6; got {text!r}"
            )
        found[str(ReleaseName.parse(name))] = image
    return found
