"""Networks that can be delayed, of a user who is not root: all that holds for them, and clusters on them.

A part of it is in the usual run: tests/hosts/provisioners/vm/test_provisioner_without_root.py.
"""

from __future__ import annotations

import re

import pytest

from tests.support import conftests
from tests.support.users import ROOT

MODULE = "tests/hosts/network/test_routed_path.py"
CLAIM = """
from pytest_dbcluster import ClusterSpec, SysBench

GALERA = ClusterSpec("galera", nodes=2, proxy="haproxy")
NEAR, FAR = GALERA.with_needs(rtt=0).named("near"), GALERA.with_needs(rtt=0.05).named("far")


def test_distance_costs(measure):
    near, far = measure(SysBench("oltp_update_index", size=100, threads=2, seconds=0.5), on=[NEAR, FAR])

    assert far.no_slower_than(near, by=0.999)
"""


@pytest.mark.guests
def test_all_that_holds_for_networks_holds_without_root(home):
    """The same tests."""
    last = home.passed("-W", "error", f"{ROOT}/{MODULE}", seconds=600)

    assert int(re.match(r"(\d+) passed", last)[1]) >= 3


@pytest.mark.guests
def test_a_path_between_guests_is_the_same_without_root(home):
    """Their own kernels delay packets."""
    last = home.passed("-W", "error", f"{ROOT}/tests/hosts/network/test_guest_path.py", seconds=600)

    assert re.match(r"\d passed", last)


@pytest.mark.guests
def test_rounds_and_their_routers_are_the_same_without_root(home):
    """Servers, loads and control connections of one cluster, with round trips that change between rounds."""
    last = home.passed("-W", "error", f"{ROOT}/tests/testbed/test_testbed_network.py", seconds=600)

    assert re.match(r"\d passed", last)


@pytest.mark.guests
def test_a_near_proxy_and_a_near_load_are_in_the_user_namespace(home):
    """No way leads from this machine to the nodes, so their programs run beside them."""
    directory = home.project("far", CLAIM, conftests.OWN_MACHINE + conftests.NO_CHARTS)

    last = home.passed(f"--rootdir={directory}", f"--db-results={directory}/results", str(directory), seconds=600)

    assert last.startswith("1 passed in ")
