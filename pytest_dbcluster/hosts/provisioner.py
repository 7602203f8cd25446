"""Provisioner: where hosts come from, and what they offer."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.releases.release import Release

PLANNED = ("ec2", "vm")


class Provisioner(Protocol):
    """Hands out hosts for a cluster and takes them back."""

    @property
    def offers(self) -> frozenset[str]:
        """The powers of its hosts.

        ``shared-cores`` (nodes compete for the machine's CPUs), ``root``, ``netem``, ``block-devices``, and limits of
        each host: ``cores``, ``memory``, ``iops``.
        """

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


class Explains(Protocol):
    """An extra power: it knows why it does not offer something here, by its name in ``offers``."""

    @property
    def missing(self) -> Mapping[str, str]:
        """The reasons, each a clause."""


def unmet(provisioner: Provisioner, spec: ClusterSpec) -> str:
    """Which of a spec's needs its hosts would not meet, and why; empty when they meet all."""
    powers = spec.needs.powers
    lacks = [power for power in powers if power not in provisioner.offers] if powers else []
    if not lacks:
        return ""
    asked = ", ".join(powers[power] for power in lacks)
    why = cast(Explains, provisioner).missing if hasattr(provisioner, "missing") else {}
    reasons = "; ".join(dict.fromkeys(why[power] for power in lacks if power in why))
    said = f"storage {spec.needs.storage}, " if spec.needs.storage and "iops" in lacks else ""
    return f"cluster {spec} needs {said}{asked} of its hosts, which this provisioner does not offer here" + (
        f": {reasons}" if reasons else ""
    )


def memory_share(spec: ClusterSpec, machine: int) -> int:
    """The bytes that a node may take ``80 %`` of: its host's memory where that is limited, else its part of a machine.

    ``machine``: all the memory there is, in bytes.
    """
    return spec.needs.memory or machine // spec.nodes


class Supplies(Protocol):
    """An extra power: its hosts bring the programs of releases with them."""

    def supply(self, name: ReleaseName, progress: Callable[[str], None]) -> Release:
        """The release as it is on these hosts. Raises ProvisionError or Unsupported."""


class Beside(Protocol):
    """An extra power: a host may have no Python, and what is ours runs beside it, within its reach."""

    def beside(self, host: Host) -> Host:
        """Where programs of ours run that this host can reach."""


def programs(provisioner: Provisioner, name: ReleaseName, progress: Callable[[str], None]) -> Release:
    """The release of this name as the hosts of a provisioner have it, found or fetched where they use this machine's.

    Raises what ``release.find`` and ``supply`` raise.
    """
    from pytest_dbcluster.releases.find import find

    if hasattr(provisioner, "supply"):
        return cast(Supplies, provisioner).supply(name, progress)
    return find(name, progress=progress)


def beside(provisioner: Provisioner, host: Host) -> Host:
    """Where programs of ours run for this host: on it, if the provisioner knows no better place."""
    return cast(Beside, provisioner).beside(host) if hasattr(provisioner, "beside") else host


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
