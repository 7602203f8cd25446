"""What tests of machines elsewhere share: one stand-in host."""

from __future__ import annotations

import pytest

from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from tests.support import stand_ins
from tests.support.stand_ins import StandIns


@pytest.fixture(scope="module")
def stand_in():
    """One host, which tests leave as they found it; what it needs is named where it is missing."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(count=1) as made:
        yield made


@pytest.fixture(scope="module")
def provisioner(stand_in):
    """The provisioner that has it."""
    made = SshProvisioner(machines=["host1"], config=stand_in.config)
    yield made
    made.close()
