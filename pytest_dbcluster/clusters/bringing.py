"""Bring programs of this machine to the hosts that run them. Hosts of this machine see them already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import Host, at_once
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release


def bring(release: Release, hosts: Sequence[Host]) -> None:
    """Have the programs of a release on every host, under the same paths as on this machine.

    Raises ProvisionError, also for a release that is installed in this machine's system where a host is on another one.
    """
    elsewhere = next((host for host in hosts if host.machine), None)
    if elsewhere and not (release.trees or release.image):
        raise ProvisionError(
            f"cannot bring {release.name} to host {elsewhere.name} on {elsewhere.machine}: its programs belong to the "
            f"system of this machine ({release.source or release.bin}); take a release that `dbcluster fetch` fetches "
            "(`dbcluster releases` lists them), or name the directory of an unpacked one: --db-release NAME=DIRECTORY"
        )

    def carry(host: Host) -> None:
        for tree in release.trees:
            host.bring(tree)

    at_once(hosts, carry, hosts)


def brought(program: str, product: str, release: Release, host: Host) -> Path | None:
    """The path of a program that a host of another machine has then: of the release, else of a cached one of a product.

    None where no release has it. Programs of this machine's system are never brought. Raises ProvisionError.
    """
    owner = release if release.path_of(program) else find.newest_with(program, product)
    if owner is None:
        return None
    bring(owner, [host])
    return owner.path_of(program)
