"""Copy programs of this machine to the hosts that run them. Hosts of this machine already have them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import Host, at_once
from pytest_dbcluster.releases import apt, find
from pytest_dbcluster.releases.release import Release


def _fetch_advice() -> str:
    if apt.missing_program():
        return ""
    return "a release from `dbcluster fetch` (`dbcluster releases` lists them), "


def bring(release: Release, hosts: Sequence[Host]) -> None:
    """Copy the programs of a release to every host, under the same paths as on this machine.

    Raises ProvisionError. An example is a release of this machine's system, if a host is on another machine.
    """
    elsewhere = next((host for host in hosts if host.machine), None)
    if elsewhere and not (release.trees or release.image):
        raise ProvisionError(
            f"cannot bring {release.name} to host {elsewhere.name} on {elsewhere.machine}: its programs belong to the "
            f"system of this machine ({release.source or release.bin}); use {_fetch_advice()}the directory of an "
            "unpacked one or a tarball: --db-release NAME=DIRECTORY or NAME=TARBALL"
        )

    def carry(host: Host) -> None:
        for tree in release.trees:
            host.bring(tree)

    at_once(hosts, carry, hosts)


def copy_program(program: str, product: str, release: Release, host: Host) -> Path | None:
    """Copy a program of the release, or of a cached release of a product, to a host of another machine.

    Returns its path there, or None if no release has it. This never copies programs of this machine's system. Raises
    ProvisionError.
    """
    owner = release if release.path_of(program) else find.newest_with(program, product)
    if owner is None:
        return None
    bring(owner, [host])
    return owner.path_of(program)
