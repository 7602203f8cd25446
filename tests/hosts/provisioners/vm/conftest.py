"""What tests of guests share."""

from __future__ import annotations

import pytest

from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner


@pytest.fixture(scope="module")
def provisioner():
    """Guests of this module."""
    made = GuestProvisioner()
    yield made
    made.close()
