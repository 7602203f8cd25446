"""What variants of a cluster share, and what a server has after a cold start with their options, on real servers."""

from __future__ import annotations

import dataclasses
import json

import pytest

from pytest_dbcluster.clusters.servers.data_template import template
from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.clusters.servers.variables import GROUP_FOLLOWED, is_identity
from pytest_dbcluster.clusters.startup import ready_template
from pytest_dbcluster.clusters.switch import Switch
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioners.fake import FakeProvisioner
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from pytest_dbcluster.testbed.variants import References, split
from tests.support.clusters import running, variant_of
from tests.support.fakes import variable

GALERA = ClusterSpec("galera", nodes=2)
ONE = ClusterSpec("standalone")


@pytest.fixture(scope="module")
def variables(mariadb, provisioner, standalone):
    """What the server says of its own variables."""
    return template(mariadb, lambda: pytest.fail("the template is there"), {}).variables


@pytest.fixture
def changes(mariadb, provisioner, variables, empty_references):
    """What a switch to a spec with these options sets, asked of servers and not of a cache; None: static."""
    said = []

    def changes(spec, release=mariadb, known=variables, /, **options):
        variant = split(variant_of(spec, release, options), known)
        return References(provisioner, said.append).changes(variant, known)

    changes.said = said
    return changes


REPLICATING = {"log_bin": "binlog", "relay_log": "relay"}
GTID = {"gtid_mode": "ON", "enforce_gtid_consistency": "ON"}
PLUGINS = {"plugin_load_add": "group_replication.so;semisync_source.so;semisync_replica.so;mysql_clone.so"}


@pytest.mark.parametrize(
    ("vendor", "shape", "own"),
    [
        ("mariadb", "standalone", REPLICATING),
        pytest.param("mysql", "standalone", REPLICATING | PLUGINS | GTID, marks=pytest.mark.thorough),
        pytest.param("mysql", "group_replication", {}, marks=pytest.mark.thorough),
    ],
)
def test_servers_with_the_same_options_differ_in_their_identity_only(vendor, shape, own, briefly, request):
    """Two of them say the same, when one has written too, of everything else that a variant is compared by."""
    release = request.getfixturevalue(vendor)
    one, other = (briefly(shape, 1, release, **own).nodes[0] for _ in range(2))
    one.query("CREATE DATABASE written")

    differ = differences(one.variables(), other.variables())
    assert [name for name in differ if not is_identity(name)] == []
    assert len(differ) > 10


@pytest.mark.thorough
def test_mysql_is_switched_between_durabilities(changes, mysql, briefly, provisioner):
    """How it flushes log and binlog changes while it runs, and nothing else moves along."""
    known = ready_template(mysql, provisioner, {}, print).variables
    cluster = briefly("standalone", 1, mysql)
    found = changes(ONE, mysql, known, innodb_flush_log_at_trx_commit="2", sync_binlog="0")
    assert found == {"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0"}

    switch = Switch(cluster)
    switch.to(found)
    assert running(cluster, "sync_binlog") == [0]
    switch.to({})
    assert running(cluster, "sync_binlog") == [1]


@pytest.mark.parametrize(
    ("vendor", "option", "value"),
    [
        ("mariadb", "slave_parallel_threads", "4"),
        ("mysql", "replica_parallel_workers", "2"),
        ("mysql", "replica_preserve_commit_order", "OFF"),
        ("mysql", "group_replication_poll_spin_loops", "1000"),
    ],
)
def test_what_replication_reads_at_its_start_needs_a_start(vendor, option, value, request, provisioner):
    """The server takes another value while it runs, and its appliers go on as before."""
    release = request.getfixturevalue(vendor)
    known = ready_template(release, provisioner, {}, print).variables
    variant = split(variant_of(ONE, release, {option: value}), known)

    assert not known[option].read_only
    assert (variant.static, variant.dynamic) == (((option, value),), ())


@pytest.mark.parametrize(
    ("vendor", "option", "value", "moved"),
    [
        ("mariadb", "slave_parallel_threads", "4", {"slave_parallel_workers": "4"}),
        ("mariadb", "slave_parallel_mode", "conservative", {}),
        ("mysql", "replica_parallel_workers", "2", {"slave_parallel_workers": "2"}),
        ("mysql", "replica_preserve_commit_order", "OFF", {"slave_preserve_commit_order": "OFF"}),
    ],
)
def test_replicas_share_a_cluster_if_a_restart_of_appliers_suffices(
    vendor, option, value, moved, changes, request, provisioner
):
    """Two servers that replicate are switched there and back."""
    release = request.getfixturevalue(vendor)
    known = ready_template(release, provisioner, {}, print).variables

    assert changes(ClusterSpec("async_replication", nodes=2), release, known, **{option: value}) == {
        option: value,
        **moved,
    }
    assert changes.said == [f"reading the cold-start reference of async_replication2 on {release.name}"]


def test_a_running_member_follows_the_flow_control_of_its_group(mysql, provisioner):
    """These are options of the server, and a switch sets them."""
    known = ready_template(mysql, provisioner, {}, print).variables
    options = {"group_replication_flow_control_mode": "DISABLED", "group_replication_consistency": "BEFORE"}

    assert known.keys() >= GROUP_FOLLOWED
    assert dict(split(variant_of(ONE, mysql, options), known).dynamic) == options


def test_the_redo_log_of_mysql_needs_a_start(changes, mysql, provisioner):
    """The server would resize it while it runs; a smaller log goes on holding what is in it."""
    known = ready_template(mysql, provisioner, {}, print).variables

    assert not known["innodb_redo_log_capacity"].read_only
    assert changes(ONE, mysql, known, innodb_redo_log_capacity="64M") == {}
    assert changes.said == []


def test_options_are_split_by_what_the_server_can_change(mariadb):
    """Read-only variables and those that are no variables need a start; sizes and a node's role always do."""
    known = {
        "innodb_io_capacity": variable("innodb_io_capacity"),
        "innodb_autoinc_lock_mode": variable("innodb_autoinc_lock_mode", read_only=True),
        "innodb_buffer_pool_size": variable("innodb_buffer_pool_size"),
        "read_only": variable("read_only"),
    }
    options = {
        "innodb_io_capacity": "3000",
        "innodb_autoinc_lock_mode": "2",
        "innodb_buffer_pool_size": "1G",
        "read_only": "ON",
        "skip_name_resolve": "",
    }
    variant = split(variant_of(ONE, mariadb, options), known)

    assert variant.dynamic == (("innodb_io_capacity", "3000"),)
    assert [name for name, _ in variant.static] == [
        "innodb_autoinc_lock_mode",
        "innodb_buffer_pool_size",
        "read_only",
        "skip_name_resolve",
    ]
    assert variant.options == options


def test_a_group_follows_few_of_its_options_at_once(mariadb):
    """A running member takes a new poll_spin_loops and does nothing about it, so a switch would measure nothing."""
    names = ("poll_spin_loops", "paxos_single_leader", "consistency", "flow_control_mode")
    known = {f"group_replication_{name}": variable(f"group_replication_{name}") for name in names}
    found = split(variant_of(ONE, mariadb, dict.fromkeys(known, "1")), known)

    assert [name for name, _ in found.dynamic] == [
        "group_replication_consistency",
        "group_replication_flow_control_mode",
    ]
    assert [name for name, _ in found.static] == [
        "group_replication_paxos_single_leader",
        "group_replication_poll_spin_loops",
    ]


def test_variants_with_the_same_static_options_share_a_cluster(mariadb):
    """Dynamic options make no difference to where a variant runs; nodes, proxy and static options do."""
    known = {"innodb_io_capacity": variable("innodb_io_capacity")}
    default = split(variant_of(ONE, mariadb, {}), known)

    assert split(variant_of(ONE, mariadb, {"innodb_io_capacity": "1"}), known).cluster_key == default.cluster_key
    assert split(variant_of(ONE, mariadb, {"skip_networking": ""}), known).cluster_key != default.cluster_key
    assert split(variant_of(GALERA, mariadb, {}), known).cluster_key != default.cluster_key


def test_a_switch_sets_what_moves_along(changes, briefly):
    """innodb_io_capacity=3000 raises innodb_io_capacity_max; back again both are what a cold start has."""
    cluster = briefly("standalone")
    cold = cluster.nodes[0].variables()
    found = changes(ONE, innodb_io_capacity="3000")
    assert found == {"innodb_io_capacity": "3000", "innodb_io_capacity_max": "6000"}

    switch = Switch(cluster)
    switch.to(found)
    assert running(cluster, "innodb_io_capacity_max") == [6000]
    switch.to({})
    assert cluster.nodes[0].variables() | {"timestamp": ""} == cold | {"timestamp": ""}


@pytest.mark.thorough
def test_a_commit_that_waits_for_two_replicas_is_tried_with_two(changes, mysql, provisioner):
    """A switch to the option and back, on a reference of MySQL with as many replicas as the spec."""
    known = ready_template(mysql, provisioner, {}, print).variables
    asked = {"rpl_semi_sync_source_wait_for_replica_count": "2"}

    assert changes(ClusterSpec("semisync", nodes=3), mysql, known, **asked) == asked


def test_a_read_only_option_is_static(changes, variables):
    """Nothing but a start changes innodb_autoinc_lock_mode, so no server is asked."""
    assert variables["innodb_autoinc_lock_mode"].read_only
    assert changes(GALERA, innodb_autoinc_lock_mode="2") == {}
    assert changes.said == []


def test_what_a_switch_cannot_take_back_is_static(changes):
    """The way there and back is tried; where it does not end at a cold start, the variant gets its own servers."""
    assert changes(ONE, innodb_monitor_enable="all") is None
    assert (
        "running servers cannot switch to the options of standalone1 and back (innodb_monitor_enable=all), because "
        in (changes.said[-1])
    )


def test_a_reference_is_read_once_for_each_kind_of_disk(changes, empty_references, provisioner, monkeypatch):
    """The cache answers for equal options, without a server; what a spec is called has no part in it.

    Servers choose options by the disk: MariaDB turns innodb_log_file_buffering on where no write is unbuffered.
    """
    first = changes(ONE, lock_wait_timeout="40")
    changes.said.clear()

    assert first == {"lock_wait_timeout": "40"}
    for again in (ONE, ONE.named("other"), dataclasses.replace(ONE, proxy="haproxy", instance=1)):
        assert changes(again, lock_wait_timeout="40") == first
    assert changes.said == []
    assert len(list(empty_references.glob("*.json"))) == 1
    monkeypatch.setattr(type(provisioner), "disk", "tmpfs on no disk")

    changes(ONE, lock_wait_timeout="40")

    assert len(list(empty_references.glob("*.json"))) == 2


def test_a_half_written_reference_is_read_anew(changes, empty_references):
    """As one is that another program has left."""
    first = changes(ONE, lock_wait_timeout="40")
    file = next(empty_references.glob("*.json"))
    file.write_text('{"changes": {"lock_wait_')

    assert changes(ONE, lock_wait_timeout="40") == first
    assert json.loads(file.read_text()) == {"changes": first, "obstacle": ""}


def test_galera_of_any_size_has_one_reference(changes, empty_references):
    """Its nodes are alike, so one of them answers for two and for three."""
    first = changes(GALERA, lock_wait_timeout="40")

    assert changes(dataclasses.replace(GALERA, nodes=3), lock_wait_timeout="40") == first
    assert len(list(empty_references.glob("*.json"))) == 1


class Refuses(FakeProvisioner):
    """Hosts that are asked for, and never come."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def acquire(self, spec):
        """Note what was asked for."""
        self.asked.append(spec)
        raise ProvisionError("no host today")


@pytest.mark.parametrize(("topology", "expected"), [("semisync", 3), ("galera", 1)])
def test_a_reference_has_as_many_replicas_as_the_spec(topology, expected, mariadb, variables, empty_references):
    """A commit that waits for two replicas cannot be tried with one; nodes of Galera are alike."""
    variant = split(variant_of(ClusterSpec(topology, nodes=3), mariadb, {"lock_wait_timeout": "40"}), variables)
    hosts = Refuses()

    with pytest.raises(ProvisionError, match="no host today"):
        References(hosts, lambda line: None).changes(variant, variables)
    (asked,) = hosts.asked
    assert asked.nodes == expected


def test_a_reference_server_has_the_memory_of_its_variant(mariadb, variables, empty_references):
    """Its options may need that much: a buffer pool of 1536 MiB does not fit into the usual host."""
    spec = ONE.with_needs(memory="3G", disk="8G", rtt=0.01)
    options = {"innodb_buffer_pool_size": "1536M", "lock_wait_timeout": "40"}
    variant = split(variant_of(spec, mariadb, options), variables)
    hosts = Refuses()

    with pytest.raises(ProvisionError, match="no host today"):
        References(hosts, lambda line: None).changes(variant, variables)
    (asked,) = hosts.asked
    assert asked.needs == HostNeeds(memory=3 * 2**30)
