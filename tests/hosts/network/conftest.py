"""A path through a router of this machine, for tests of what packets do on it."""

from __future__ import annotations

import pytest

from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support import paths


@pytest.fixture(scope="module")
def path():
    """The path of two nodes and a load generator, which all begin at rest. The last test that has it may end it."""
    if reason := paths.missing():
        pytest.skip(reason)
    provisioner = LocalProvisioner()
    spec = ClusterSpec("galera", nodes=2).with_needs(links={("client", "node1"): 0})
    hosts = provisioner.acquire(spec)
    path = hosts[0].path
    path.hosts = hosts
    yield path
    provisioner.give_back(hosts)
    provisioner.close()
