"""What tests of data sets share: a directory that has none, and clusters that start from it."""

from __future__ import annotations

import pytest

from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.testbed.datasets import dataset_template
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution


@pytest.fixture(scope="module")
def own_data_sets(tmp_path_factory):
    """A directory of data sets that has none."""
    own = tmp_path_factory.mktemp("cache") / "stored"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "datasets_directory", lambda: own)
        yield own


@pytest.fixture
def said():
    """What was told."""
    return []


@pytest.fixture
def pool(own_data_sets, provisioner, tmp_path, said):
    """A pool of real servers, closed afterwards."""
    made = Pool(Resolution(provisioner, fragments=tmp_path, below={}, progress=said.append))
    yield made
    made.close()


@pytest.fixture
def keep(own_data_sets, provisioner, mariadb, said):
    """``keep(load)``: its data set, populated unless they are there."""
    client = provisioner.acquire(ClusterSpec("standalone", name="client"))[0]
    yield lambda load, **options: dataset_template(load, mariadb, provisioner, client, options, said.append)
    provisioner.give_back([client])
