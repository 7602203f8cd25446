"""What tests of testbeds share: a pool whose clusters stay for the next test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution


@pytest.fixture(scope="module")
def shared(provisioner: LocalProvisioner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """As ``pool``, for the tests of a module that leave its clusters fit for use."""
    fragments = tmp_path_factory.mktemp("fragments")
    made = Pool(Resolution(provisioner, fragments=fragments, below={}, progress=lambda line: None))
    yield made
    made.close()
