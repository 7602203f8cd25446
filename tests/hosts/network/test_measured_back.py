"""The delays of one measurement: before its first round, after its last, and what a message says of them."""

from __future__ import annotations

import pytest

from pytest_dbcluster import network
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.network.measured_back import MeasuredBack, line
from pytest_dbcluster.network import NetworkNeeds
from tests.support.facts import missing
from tests.support.paths import FakePath

FAR = NetworkNeeds(rtt=0.01)


def test_a_delay_is_measured_before_and_after_the_rounds():
    """Before them once, however many rounds there are; after them what was measured before."""
    path, measured = FakePath(["node1", "node2"]), MeasuredBack()
    for name, needs in [("near", network.REST), ("far", FAR)] * 2:
        measured.before(name, path, needs)
    (delay,) = measured.of("far")
    assert (delay.pair, delay.asked, delay.after) == (("node1", "node2"), 0.01, None)
    measured.after(path)
    (delay,) = measured.of("far")

    assert delay.before.ping == pytest.approx(delay.after.ping) == pytest.approx(0.01)
    assert path.shaped == [network.REST, network.REST, FAR, network.REST, FAR]


def test_a_cluster_without_a_path_is_not_measured():
    """Nothing was asked of its network."""
    measured = MeasuredBack()
    measured.before("galera3", None, None)
    measured.after(None)

    assert measured.of("galera3") == []
    assert line("galera3", None, []) == ""


def test_variants_with_the_same_needs_have_delays_of_their_own():
    """Each has those of its own cluster: one server alone has no link to measure."""
    alone, pair, measured = FakePath(["node1"]), FakePath(["node1", "node2"]), MeasuredBack()
    measured.before("standalone", alone, network.REST)
    measured.before("pair", pair, network.REST)

    assert measured.of("standalone") == []
    assert [delay.pair for delay in measured.of("pair")] == [("node1", "node2")]


def test_a_delay_that_changes_during_the_rounds_is_an_error():
    """The rounds had another network than was asked, for nobody knows how long."""
    path, measured = FakePath(["node1", "node2"]), MeasuredBack()
    measured.before("far", path, FAR)
    path._adds = 0.005

    with pytest.raises(ProvisionError, match=r"node1 and node2 is 15\.0 ms"):
        measured.after(path)


def test_a_message_says_what_was_asked_and_measured():
    """By ping and over TCP, before and after; of links that are asked to be longer than none, if there are any."""
    path, measured = FakePath(["node1", "node2", "node3"]), MeasuredBack()
    far = NetworkNeeds(links=((("node1", "node3"), 0.02),))
    asked = "network of far: rtt=0, node1-node3=0.02;"
    assert missing(line("far", far, measured.of("far")), asked, "no link was measured") == []
    measured.before("far", path, far)
    measured.after(path)

    said = line("far", far, measured.of("far"))
    found = ("20.0 ms and 20.0 ms by ping", "20.0 ms and 20.0 ms over TCP")
    assert missing(said, asked, "node1-node3 20.0 ms required", *found) == []
    assert said.count("required") == 1


def test_a_message_says_what_else_the_kernel_has_set():
    """Also of links without a delay."""
    path, measured = FakePath(["node1", "node2", "node3"]), MeasuredBack()
    slow = NetworkNeeds(loss=0.01, jitter=0.0, rate=1e8)
    measured.before("slow", path, slow)
    measured.after(path)

    assert [delay.kernel_settings.rate for delay in measured.of("slow")] == [1e8] * 3
    last = line("slow", slow, measured.of("slow")).rpartition("; ")[2]
    assert last.startswith("node2-node3 0.00 ms required, 0.00 ms and 0.00 ms by ping, ")
    assert last.endswith(" over TCP, set in the kernel: loss 1 %, rate 100 Mbit/s")
