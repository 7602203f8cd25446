"""A path between guests: each delays what it sends to its peers, and only that."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.network import guest_path, kernel_settings
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.network import LinkShape, NetworkNeeds
from pytest_dbcluster.spec import ClusterSpec
from tests.support import guests
from tests.support.facts import missing
from tests.support.guests import reachable

pytestmark = pytest.mark.skipif(bool(guests.missing()), reason=guests.missing() or "there can be guests")


@pytest.fixture(scope="module")
def pair():
    """Two guests on a path. Each test sets its delays, and the last one ends a guest; afterwards nothing is left."""
    provisioner = GuestProvisioner()
    hosts = provisioner.acquire(ClusterSpec("galera", nodes=2).with_needs(rtt=0, memory="64M"))
    yield hosts
    provisioner.give_back(hosts)
    provisioner.close()


def test_packets_between_guests_wait_and_ours_do_not(pair, monkeypatch):
    """By ping alone: a guest has no program that exchanges bytes over TCP. Lost packets are lost, and found again."""
    path = pair[0].path
    (link,) = path.measure(NetworkNeeds(rtt=0.2))

    assert (link.pair, link.asked, link.measured.exchange) == (("node1", "node2"), 0.2, None)
    assert min(reachable(pair[0]) for _ in range(5)) < 0.1
    path.shape(NetworkNeeds(loss=0.999999))
    monkeypatch.setattr(guest_path, "WAIT", 1)  # no packet comes, however long one waits
    with pytest.raises(ProvisionError, match=r"^no answer to pings from node1 to node2: "):
        path.round_trips(("node1", "node2"), 1)
    monkeypatch.undo()
    path.measure(NetworkNeeds(rtt=0.05))


def test_loss_jitter_and_rate_are_read_from_the_kernels_of_guests(pair):
    """Both guests have what was asked, or it is an error that names the way between them."""
    path = pair[0].path
    (link,) = path.measure(NetworkNeeds(rtt=0.04, loss=0.1, jitter=0.02, rate=1e7))
    path._tc("node2", path._queues("change", "node2", NetworkNeeds(loss=0.01)))

    assert (link.kernel_settings.loss, link.kernel_settings.jitter) == pytest.approx((0.1, 0.02), rel=1e-3)
    assert link.kernel_settings.rate == 1e7
    reason = kernel_settings.wrong(link.pair, LinkShape(0.04, 0.1, 0.02, 1e7), path.settings())
    assert missing(reason, "from node2 to node1", "loss 10 % was asked", "kernel has 1 % set") == []


def test_a_guest_that_lost_its_power_delays_as_before(pair):
    """Its new kernel is told what the old one was told, and can be told something else."""
    path = pair[0].path
    path.shape(NetworkNeeds(rtt=0.2))

    pair[0].kill()

    assert path.round_trips(("node1", "node2"), 3).ping > 0.2
    (link,) = path.measure(NetworkNeeds(rtt=0.05))
    assert link.measured.ping < 0.1


def test_a_guest_that_ends_takes_the_path_with_it(pair):
    """A round that was running then is void, and says which guest ended."""
    assert pair[0].path.why_lost() == ""
    pair[1]._guest.cut()

    assert "node2" in pair[0].path.why_lost()
