"""A second interface of guests, for replication alone: what goes over it, and what becomes of it."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import CommandFailed
from pytest_dbcluster.hosts.host import replication_address
from pytest_dbcluster.hosts.provisioners.vm import host as vm_host
from pytest_dbcluster.network import NetworkNeeds
from pytest_dbcluster.spec import ClusterSpec
from tests.support import guests
from tests.support.guests import reachable

FAR = NetworkNeeds(rtt=0.2, links=((("client", "node1"), 0.05),))

pytestmark = pytest.mark.skipif(bool(guests.missing()), reason=guests.missing() or "there can be guests")


@pytest.fixture(scope="module")
def pair(provisioner):
    """Two guests with such a link, which tests leave as they found them, and a client on their path."""
    spec = ClusterSpec("drbd", nodes=2).with_needs(memory="64M", links={("client", "node1"): 0})
    return provisioner.acquire(dataclasses.replace(spec, needs=dataclasses.replace(spec.needs, replication_link=True)))


def pinged(host, address, *options):
    """Seconds of the shortest of three pings from a guest. Raises CommandFailed."""
    said = host.run(["/bin/ping", "-q", "-c", "3", "-i", "0.01", "-W", "2", *options, address], seconds=60).stdout
    return float(said.rpartition(" = ")[2].split("/")[0]) / 1000


def test_nodes_have_a_link_for_replication_in_a_subnet_of_its_own(pair, provisioner):
    """A load generator among the guests has none, nor have the hosts of a topology that does not ask for it."""
    first, second = pair
    client = first.path.host("client")

    assert len({first.address, second.address, replication_address(first), replication_address(second)}) == 4
    assert replication_address(client) == client.address
    assert "vec1" not in client.run(["cat", "/proc/net/dev"]).stdout
    assert pinged(first, replication_address(second)) < 0.1
    for address, link in ((second.address, "vec0"), (replication_address(second), "vec1"), (client.address, "vec0")):
        assert f"{address} dev {link} " in first.run(["/sbin/ip", "route", "get", address]).stdout


def test_the_round_trip_of_nodes_is_that_of_their_link_alone(pair):
    """A link to the client is on the first interface, as are all packets between the nodes that replicate nothing."""
    first, second = pair
    path = first.path

    links = {link.pair: link.measured.ping for link in path.measure(FAR)}

    assert links["node1", "node2"] == pytest.approx(0.2, rel=0.1)
    assert links["client", "node1"] == pytest.approx(0.05, rel=0.1)
    assert pinged(first, replication_address(second)) > 0.19
    assert pinged(first, second.address) < 0.04
    assert min(reachable(first) for _ in range(5)) < 0.1


def test_both_links_are_back_after_a_power_cut(pair):
    """With their addresses and delays."""
    first, second = pair
    first.path.shape(FAR)

    first.kill()

    assert pinged(second, replication_address(first)) > 0.19
    assert pinged(first, replication_address(second)) > 0.19
    assert pinged(first, second.address) < 0.04
    assert pinged(first, first.path.host("client").address) > 0.04


def test_a_partitioned_guest_is_out_of_reach_on_both_links(pair):
    """Until it heals."""
    first, second = pair
    second.partition()
    for address in (second.address, replication_address(second)):
        with pytest.raises(CommandFailed):
            pinged(first, address)

    second.heal()

    assert pinged(first, replication_address(second))
    assert reachable(second)


def test_bytes_of_both_links_are_counted(pair, monkeypatch):
    """What goes over the one is no less traffic than what goes over the other."""
    monkeypatch.setattr(vm_host, "LOOK_SECONDS", 30.0)
    first, second = pair
    for address in (second.address, replication_address(second)):
        before = first.usage()
        pinged(first, address, "-s", "1000", "-c", "50")
        after = first.usage()
        for name in ("network_sent_bytes", "network_received_bytes"):
            assert 50 * 1000 < after[name] - before[name] < 70 * 1000
