"""How the delays of a path are measured back: what must hold, and what is said where it does not."""

from __future__ import annotations

import pytest

from pytest_dbcluster import network
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.network.path import MeasuredLink, path_of
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.network import KernelSettings, NetworkNeeds, RoundTrips
from tests.support.facts import missing
from tests.support.paths import FakePath

FAR = NetworkNeeds(rtt=0.01)


def test_a_delay_is_what_it_adds_to_the_path_at_rest():
    """The path at rest takes time too, and is measured once."""
    path = FakePath(["node1", "node2"], own=0.0004)
    (link,) = path.measure(FAR)
    path.measure(network.REST)

    assert link.asked == 0.01
    assert link.measured.ping == pytest.approx(0.01)
    assert link.measured.exchange == pytest.approx(0.01)
    assert path.shaped == [network.REST, FAR, network.REST]


def test_every_two_ends_are_measured():
    """Each with what is asked of this link."""
    path = FakePath(["node1", "node2", "node3"])
    links = path.measure(NetworkNeeds(rtt=0.001, links=((("node1", "node3"), 0.02),)))

    assert {link.pair: link.asked for link in links} == {
        ("node1", "node2"): 0.001, ("node1", "node3"): 0.02, ("node2", "node3"): 0.001,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "measured", "right"),
    [
        (0.01, 0.0109, True),
        (0.01, 0.0111, False),
        (0.01, 0.0089, False),
        (0.001, 0.00119, True),
        (0.001, 0.00121, False),
        (0.0, 0.00019, True),
        (0.0, 0.00021, False),
    ],
)
def test_a_link_is_wrong_beyond_a_tenth_and_a_fifth_of_a_millisecond(asked, measured, right):
    """Beyond both: a tenth of a short delay is less than what this machine's clock of events can do."""
    for trips in (RoundTrips(measured, asked), RoundTrips(asked, measured)):
        assert (MeasuredLink(("node1", "node2"), asked, trips).wrong() == "") is right


def test_jitter_that_was_asked_is_no_error():
    """The least of some round trips is shorter by as much."""
    link = MeasuredLink(("node1", "node2"), 0.01, RoundTrips(0.0085, 0.0085))

    assert link.wrong()
    assert link.wrong(more=0.002) == ""


def test_a_slow_link_takes_its_time_for_a_ping_too():
    """A hundred bytes are on a line of 1 Mbit/s for 0.8 ms."""
    path = FakePath(["node1", "node2"], adds=0.0014)

    assert path.measure(NetworkNeeds(rtt=0.001, rate=1e6))[0].asked == 0.001
    with pytest.raises(ProvisionError, match=r"is 2\.40 ms instead of 1\.00 ms"):
        path.measure(NetworkNeeds(rtt=0.001, rate=1e7))


def test_a_delay_that_is_not_what_was_asked_is_an_error():
    """It names both ends, both times, and the way it was measured."""
    path = FakePath(["node1", "node2"], adds=0.003)

    with pytest.raises(ProvisionError) as caught:
        path.measure(FAR)
    for fact in ("(rtt=0.01)", "node1 and node2 is 13.0 ms instead of 10.0 ms", "pings"):
        assert fact in str(caught.value)


def test_a_link_that_was_disturbed_once_is_measured_again():
    """What else runs on the machine only adds time, so the least of more samples is nearer to the truth."""
    path = FakePath(["node1", "node2"], disturbed=[0.0, 0.004])

    assert path.measure(FAR)[0].measured.ping == pytest.approx(0.01)


def test_a_rest_that_was_disturbed_is_measured_again():
    """It would make every delay too short; a link that seems too short tells."""
    path = FakePath(["node1", "node2"], disturbed=[0.004])

    assert path.measure(FAR)[0].measured.ping == pytest.approx(0.01)
    assert path.shaped == [network.REST, FAR, network.REST, FAR]


def test_a_delay_that_is_too_short_is_an_error():
    """However often the path at rest is measured."""
    path = FakePath(["node1", "node2"], adds=-0.003)

    with pytest.raises(
        ProvisionError, match=r"node1 and node2 is 7\.00 ms instead of 10\.0 ms \(shortest of the pings\)"
    ):
        path.measure(FAR)


def test_what_else_was_asked_is_read_from_the_kernel():
    """Of each link that asks for more than a delay."""
    (link,) = FakePath(["node1", "node2"]).measure(NetworkNeeds(loss=0.1, rate=1e8))

    assert link.kernel_settings == KernelSettings(loss=0.1, rate=1e8)
    assert FakePath(["node1", "node2"]).measure(FAR)[0].kernel_settings is None


@pytest.mark.parametrize("asked", [NetworkNeeds(loss=0.1), FAR])
def test_settings_that_were_not_asked_are_an_error(asked):
    """Also on a link that asks for none. The message names the ends, and what was asked and is set."""
    path = FakePath(["node1", "node2"])
    path.sets = {"loss": 0.3}

    with pytest.raises(ProvisionError) as caught:
        path.measure(asked)
    loss = (f"loss {100 * asked.loss:g} % was asked", "kernel has 30 % set")
    assert missing(caught.value, "differs from the cluster's request", f"({asked})", "from node1 to node2", *loss) == []


def test_only_hosts_that_are_on_a_path_have_one():
    """Other hosts are as near to each other as their provisioner has them."""
    assert path_of([FakeHost()]) is None
