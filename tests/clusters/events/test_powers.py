"""Events that need a power of hosts: how they are written, and who refuses them by the name of the power."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import FailOver, FillDisk, Isolate, LoseHost, PowerCut, Rtt, SlowDisk
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.hosts.provisioners.fake import FakeProvisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support.facts import missing

PAIR = ClusterSpec("drbd", nodes=2, proxy="haproxy")
ONE, THREE = ClusterSpec("standalone"), ClusterSpec("galera", nodes=3)
NEAR, LIMITED = THREE.with_needs(rtt=0.01), THREE.with_needs(iops=500)
LINKED = THREE.with_needs(links={("node1", "node3"): 0.02})


class Offering(FakeProvisioner):
    """Offers powers, on hosts of a provisioner that nobody starts."""

    def __init__(self, real, *offers):
        super().__init__(offers=frozenset(offers))
        self.missing = {"block-devices": "only virtual machines have separate disks"}
        self._real = real

    def host_type(self, spec):
        """As the real one."""
        return self._real.host_type(self, spec)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Isolate("node2", 10), "isolate node2 10 s from peers"),
        (Isolate("writer", 0.5, clients=True), "isolate writer 0.5 s from peers and clients"),
        (FailOver(), "fail over"),
        (LoseHost(), "lose host of writer"),
        (PowerCut(), "power cut of all"),
        (PowerCut("node2"), "power cut of node2"),
        (FillDisk("other", 15), "fill disk of other 15 s"),
        (SlowDisk("other", iops=100, seconds=5), "slow disk of other 100 iops 5 s"),
        (Rtt(20, seconds=5), "rtt 20 ms 5 s"),
    ],
)
def test_an_event_has_a_short_text(event, text):
    """Results and history have it beside the workload."""
    assert str(event) == text


@pytest.mark.parametrize(
    ("event", "spec", "fact"),
    [
        (Isolate("node4", 5), THREE, "has 3 nodes"),
        (Isolate("writer", 5), ONE, "has 1 node, and so no peers; use clients=True"),
        (Isolate("writer", 0), THREE, "seconds above 0 and up to 300"),
        (Isolate("writer", 5, clients="yes"), THREE, "it accepts True or False"),
        (LoseHost("primary"), THREE, '"writer", "other" or a name'),
        (PowerCut("every"), THREE, '"writer", "other" or a name'),
        (PowerCut(), ClusterSpec("drbd", nodes=2), "use FailOver()"),
        (FailOver(), THREE, "topology galera has no standby for its server; use drbd, or LoseHost(then=Promote())"),
        (FailOver(), ClusterSpec("drbd", nodes=2), 'clients do not follow the server: use proxy="haproxy"'),
        (FailOver(), PAIR.with_options(drbd_connected=False), "drbd_connected=OFF the standby is out of date"),
        (FailOver(), PAIR.with_options(drbd_connected="off"), "drbd_connected=OFF the standby is out of date"),
        (FillDisk("node4", 5), THREE, "has 3 nodes"),
        (SlowDisk("other", iops=0, seconds=5), LIMITED, "whole operations a second, from 1"),
        (
            SlowDisk("other", iops=100, seconds=5),
            THREE,
            "have no limit on writes; use ClusterSpec(...).with_needs(iops",
        ),
        (SlowDisk("other", iops=500, seconds=5), LIMITED, "have the limit iops=500"),
        (Rtt(0, seconds=5), NEAR, "milliseconds above 0 and up to 10000"),
        (Rtt(10, seconds=5), NEAR, "are 10 ms apart already"),
        (Rtt(10, seconds=5), LINKED, "are 20 ms apart already"),
        (Rtt(20, seconds=5), ONE, "has 1 node"),
        (Rtt(20, seconds=500), NEAR, "seconds above 0 and up to 300"),
    ],
)
def test_a_wrong_event_is_refused(event, spec, fact):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        event.check(spec, topology(spec.topology))
    assert fact in str(caught.value)


@pytest.mark.parametrize(
    ("event", "spec", "where", "facts"),
    [
        (Isolate("other", 5), THREE, (LocalProvisioner, "netem"), ("lack the power netem", "with_needs(rtt=0)")),
        (Isolate("other", 5), NEAR, (LocalProvisioner,), ("lack the power netem",)),
        (Isolate("other", 5, clients=True), THREE, (LocalProvisioner,), ("power Partitions", "with_needs(rtt=0)")),
        (Isolate("other", 5, clients=True), THREE, (SshProvisioner,), ("the power Partitions",)),
        (LoseHost(), THREE, (LocalProvisioner,), ("LoseHost('writer')", "lack the power Partitions")),
        (LoseHost(), THREE, (SshProvisioner,), ("the power Partitions", "--db-provisioner container or vm")),
        (PowerCut(), THREE, (LocalProvisioner,), ("lack the power Falls",)),
        (FailOver(), PAIR, (LocalProvisioner,), ("FailOver()", "lack the power Falls", "use --db-provisioner vm")),
        (PowerCut(), THREE, (ContainerProvisioner,), ("the power block-devices: only virtual machines",)),
        (FillDisk("other", 5), THREE, (ContainerProvisioner,), ("the power block-devices",)),
        (SlowDisk("other", 5, 5), LIMITED, (LocalProvisioner,), ("lack the power iops",)),
        (SlowDisk("other", 5, 5), LIMITED, (SshProvisioner, "iops"), ("lack the power LimitsWrites",)),
        (Rtt(20, 5), THREE, (ContainerProvisioner, "netem"), ("lack the power netem", "with_needs(rtt=0)")),
    ],
)
def test_hosts_without_a_power_are_refused_by_its_name(event, spec, where, facts):
    """Before anything starts, with what has the power."""
    event.check(spec, topology(spec.topology))
    with pytest.raises(ConfigError) as caught:
        event.check_hosts(spec, Offering(*where))
    assert missing(caught.value, *facts) == []


@pytest.mark.parametrize(
    ("event", "spec", "where"),
    [
        (Isolate("other", 5), NEAR, (LocalProvisioner, "netem")),
        (Isolate("other", 5, clients=True), NEAR, (LocalProvisioner, "netem")),
        (Isolate("other", 5, clients=True), THREE, (ContainerProvisioner,)),
        (LoseHost(), NEAR, (LocalProvisioner,)),
        (LoseHost(), THREE, (GuestProvisioner,)),
        (PowerCut(), THREE, (GuestProvisioner, "block-devices")),
        (FillDisk("other", 5), THREE, (GuestProvisioner, "block-devices")),
        (SlowDisk("other", 5, 5), LIMITED, (LocalProvisioner, "iops")),
        (SlowDisk("other", 5, 5), LIMITED, (ContainerProvisioner, "iops")),
        (SlowDisk("other", 5, 5), LIMITED, (GuestProvisioner, "iops")),
        (Rtt(20, 5), NEAR, (GuestProvisioner, "netem")),
    ],
)
def test_hosts_with_the_power_can_have_the_event(event, spec, where):
    """Containers, guests, and processes with a separate network or separate limits."""
    event.check_hosts(spec, Offering(*where))


@pytest.mark.parametrize(
    ("event", "spec", "only_writer", "leaves"),
    [
        (LoseHost(), THREE, True, False),
        (LoseHost(), THREE, False, True),
        (LoseHost("other"), THREE, True, True),
        (LoseHost(), ONE, True, False),
        (LoseHost(), ClusterSpec("async_replication", nodes=3), False, False),
        (PowerCut(), THREE, True, True),
        (Isolate("writer", 5, clients=True), THREE, True, True),
    ],
)
def test_a_load_must_have_a_server(event, spec, only_writer, leaves):
    """A lost host comes back after the load; nobody promotes a replica of its server."""
    assert event.leaves_load(spec, topology(spec.topology), only_writer=only_writer) is leaves
