"""A path between guests: each delays what it sends to its peers, and only that."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.network import NetworkNeeds
from pytest_dbcluster.spec import ClusterSpec
from tests.support import guests
from tests.support.guests import reachable

pytestmark = pytest.mark.skipif(bool(guests.missing()), reason=guests.missing() or "there can be guests")


@pytest.fixture
def pair():
    """Two guests on a path at rest; everything on it has ended afterwards."""
    provisioner = GuestProvisioner()
    hosts = provisioner.acquire(ClusterSpec("galera", nodes=2).with_needs(rtt=0, memory="64M"))
    yield hosts
    provisioner.give_back(hosts)
    provisioner.close()


def test_packets_between_guests_wait_and_ours_do_not(pair):
    """By ping alone: a guest has no program that exchanges bytes over TCP. Lost packets are lost, and found again."""
    path = pair[0].path
    (link,) = path.measured(NetworkNeeds(rtt=0.2))

    assert (link.pair, link.asked, link.measured.exchange) == (("node1", "node2"), 0.2, None)
    assert reachable(pair[0]) < 0.1
    path.shape(NetworkNeeds(loss=0.999999))
    with pytest.raises(ProvisionError, match=r"^no answer to pings from node1 to node2: "):
        path.round_trips(("node1", "node2"), 1)
    path.measured(NetworkNeeds(rtt=0.05))


def test_loss_jitter_and_rate_between_guests_are_measured_back(pair, monkeypatch):
    """They are as asked, or it would be an error; a loss that guests do not keep is one, whatever they were told."""
    path, shape = pair[0].path, pair[0].path.shape
    (link,) = path.measured(NetworkNeeds(rtt=0.04, loss=0.1, jitter=0.02))
    (slow,) = path.measured(NetworkNeeds(rtt=0.005, rate=1e7))
    monkeypatch.setattr(path, "shape", lambda needs: shape(dataclasses.replace(needs, loss=0.0)))

    assert link.traffic.loss.low <= 0.1 <= link.traffic.loss.high < 0.4
    assert link.traffic.jitter.unknown or link.traffic.jitter.high > 0.0178
    assert slow.traffic.rate.unknown or slow.traffic.rate.high > 0.9e7

    with pytest.raises(
        ProvisionError, match=r"node1 and node2 lose 0 % \(0 \.\. \S+\) of the packets each way, and 10 %"
    ):
        path.measured(NetworkNeeds(loss=0.1))


def test_a_guest_that_lost_its_power_delays_as_before(pair):
    """Its new kernel is told what the old one was told, and can be told something else."""
    path = pair[0].path
    path.shape(NetworkNeeds(rtt=0.2))

    pair[0].kill()

    assert path.round_trips(("node1", "node2"), 3).ping > 0.2
    (link,) = path.measured(NetworkNeeds(rtt=0.05))
    assert link.measured.ping < 0.1


def test_a_guest_that_ends_takes_the_path_with_it(pair):
    """A round that was running then is void, and says which guest ended."""
    assert pair[0].path.lost() == ""
    pair[1]._guest.cut()

    assert "node2" in pair[0].path.lost()
