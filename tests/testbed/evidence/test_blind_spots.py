"""What a machine cannot show: scaling of nodes that share its cores."""

from __future__ import annotations

import pytest

from fixtures.clusters import quarters
from pytest_dbcluster.cli.doctor import findings
from pytest_dbcluster.hosts.provisioner import own_cores
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from pytest_dbcluster.system import probes
from pytest_dbcluster.testbed.evidence import blind_spots
from tests.support.facts import missing

ALONE = ClusterSpec("standalone")
ONE, TWO, FOUR = (ClusterSpec("galera", nodes=number) for number in (1, 2, 4))
LOCAL = frozenset({"shared-cores", "root"})
LIMITS = frozenset({"shared-cores", "cores"})


@pytest.fixture(autouse=True)
def _eight_cores(monkeypatch):
    """The machine has eight."""
    monkeypatch.setattr(probes, "usable_cores", lambda: 8.0)


def limited(nodes, cores):
    """A cluster whose nodes may use so many cores each."""
    return ClusterSpec("galera", nodes=nodes, needs=HostNeeds(cores=cores))


@pytest.mark.parametrize("by_size", [False, True])
def test_node_counts_are_not_compared_on_shared_cores(by_size):
    """Whatever is claimed of them; the reason names the cores and says what would help."""
    reason = blind_spots.scaling([FOUR, ONE], LOCAL, by_size=by_size)

    facts = ("8 cores", "(galera4 has 4 nodes, galera1 1 node)", "use separate hosts, or cores=")
    assert missing(reason, *facts) == []


def test_the_reason_is_the_doctors(monkeypatch):
    """What `dbcluster doctor` says of this machine and what a claim says are one sentence."""
    assert probes.shared_cores(8.0) in blind_spots.scaling([FOUR, ONE], LOCAL)
    monkeypatch.undo()
    assert findings.cores().rules_out == probes.shared_cores(probes.usable_cores())


@pytest.mark.parametrize("specs", [(ONE, ALONE), (TWO, TWO.with_options(back_log=90)), (ONE, ONE)])
def test_as_many_nodes_are_compared(specs):
    """One node of a cluster has as many cores as a server alone, and settings have nothing to do with it."""
    assert blind_spots.scaling(specs, LOCAL, by_size=True) == ""


def test_one_server_is_not_compared_with_several():
    """It has all the cores for itself, whatever the claim."""
    for by_size in (False, True):
        assert "galera4 has 4 nodes, standalone1 1 node" in blind_spots.scaling([FOUR, ALONE], LOCAL, by_size=by_size)


def test_topologies_are_compared_and_do_not_scale():
    """A pair against a group of three is a question about topologies, unless the claim says how they scale."""
    pair = ClusterSpec("async_replication", nodes=2)

    assert blind_spots.scaling([FOUR, pair], LOCAL) == ""
    assert "galera4 has 4 nodes, async_replication2 2 nodes" in blind_spots.scaling([FOUR, pair], LOCAL, by_size=True)


def test_one_pair_in_an_order_is_enough():
    """Whichever two of them have as many nodes."""
    assert blind_spots.scaling([TWO, TWO.named("again"), FOUR], LOCAL)


def test_separate_hosts_have_their_own_cores():
    """There the claim means something."""
    assert blind_spots.scaling([FOUR, ONE], frozenset({"root"}), by_size=True) == ""


def test_limits_make_it_meaningful():
    """Where the provisioner enforces them, both clusters have them, and the machine has enough for all nodes."""
    assert blind_spots.scaling([limited(4, 2), limited(1, 2)], LIMITS, by_size=True) == ""
    assert blind_spots.scaling([limited(4, 2), ONE], LIMITS, by_size=True)
    assert blind_spots.scaling([limited(4, 2.5), limited(1, 2.5)], LIMITS, by_size=True)
    assert blind_spots.scaling([limited(4, 2), limited(1, 2)], LOCAL, by_size=True)
    assert own_cores(LIMITS, limited(4, 2), 8.0)


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_the_suite_of_scaling_is_answered_in_containers(nodes, monkeypatch):
    """A machine of two CPUs has enough for its nodes, which take half of them at the most."""
    monkeypatch.setattr(probes, "usable_cores", lambda: 2.0)
    several = quarters(nodes)

    assert blind_spots.scaling([several, quarters(1)], ContainerProvisioner.offers, by_size=True) == ""
    assert several.needs.cores * several.nodes <= 1
