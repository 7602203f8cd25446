"""What the topology says before anything starts: its shape, its settings, and what a commit is worth."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topologies.drbd import TOPOLOGY
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.hosts.provisioner import NO_DISKS
from pytest_dbcluster.hosts.provisioners.fake import FakeProvisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.evidence.durability import Durability
from pytest_dbcluster.testbed.resolution import look_up, settings_of
from tests.support.facts import missing

PAIR = ClusterSpec("drbd", nodes=2)


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_pair_is_two_nodes(nodes):
    """One has the server, the other one its disk."""
    offers = FakeProvisioner(offers=frozenset({"block-devices"}))

    with pytest.raises(ConfigError, match=rf"^drbd needs 2 nodes, .*, not {nodes}: use nodes=2$"):
        look_up(ClusterSpec("drbd", nodes=nodes), offers)
    assert look_up(PAIR, offers)[0].servers(2) == 1


@pytest.mark.parametrize(
    "hosts", [LocalProvisioner, lambda: SshProvisioner(machines=["db1", "db2"])], ids=["local", "ssh"]
)
def test_hosts_without_disks_are_refused_before_anything_starts(hosts):
    """The message says which hosts have them; machines elsewhere are not even asked."""
    with pytest.raises(Unsupported) as caught:
        look_up(PAIR, hosts())
    assert missing(caught.value, "drbd needs block-devices", "does not offer", NO_DISKS) == []


def test_options_of_the_topology_are_told_from_those_of_the_server():
    """In the spellings that options have."""
    options = {"drbd_protocol": "a", "drbd_connected": "0", "sync_binlog": "1"}

    assert settings_of(TOPOLOGY(), options, "drbd") == {"drbd_protocol": "A", "drbd_connected": "OFF"}
    with pytest.raises(ConfigError) as caught:
        settings_of(TOPOLOGY(), {"drbd_protocol": "D"}, "drbd")
    assert missing(caught.value, "drbd_protocol='D'", "of the topology drbd", "accepts C or B or A") == []


@pytest.mark.parametrize(
    ("settings", "label"),
    [
        ({}, "on the disks of both hosts, DRBD protocol C"),
        ({"drbd_version": "8.4.11"}, "on the disks of both hosts, DRBD 8.4.11 protocol C"),
        ({"drbd_protocol": "B"}, "one host, received by the standby, DRBD protocol B"),
        ({"drbd_protocol": "A"}, "one host, sent towards the standby, DRBD protocol A"),
        ({"drbd_connected": "OFF", "drbd_protocol": "A"}, "one host, DRBD disconnected"),
    ],
)
def test_the_label_says_which_hosts_have_a_commit(settings, label):
    """With the version of the kernel's module, once it runs."""
    made = Durability.of(TOPOLOGY(), {"innodb_flush_log_at_trx_commit": "1", **settings}, 2)

    assert str(made) == f"flush=1, binlog off, {label}"


def test_a_round_in_which_something_changed_is_void():
    """Also a change that was undone before its end: the kernel has logged it."""
    before = {"DRBD on node1": "Connected", "changes on node1": "7, the last: x"}
    after = {"DRBD on node1": "Connected", "changes on node1": "9, the last: conn( WFReportParams -> Connected )"}

    assert TOPOLOGY().void(before, dict(before)) == ""
    readings = (f"from {before['changes on node1']!r}", f"to {after['changes on node1']!r}")
    assert missing(TOPOLOGY().void(before, after), "changes on node1", *readings) == []
