"""Which variants one running cluster serves, on real servers: those that a switch turns into each other and back."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.servers.data_template import template
from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.clusters.servers.variables import is_identity
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.variants import References, split
from tests.support.clusters import variant_of
from tests.support.facts import missing

LAZY = {"innodb_flush_log_at_trx_commit": "2"}
BUSY = {"innodb_io_capacity": "3000"}
BUFFERED = {"innodb_log_file_buffering": "ON"}
STUCK = {"innodb_monitor_enable": "all"}  # what cannot be taken back, whatever the disk


@pytest.fixture
def switchable(mariadb, provisioner, empty_references):
    """A variant of one server with these options, as a run divides them; asked of servers and not of a cache."""
    known = template(mariadb, lambda: pytest.fail("the template is there"), {}).variables

    def switchable(**options):
        variant = split(variant_of(ClusterSpec("standalone"), mariadb, options), known)
        return References(provisioner, switchable.said.append).make_switchable(variant, known)

    switchable.said = []
    return switchable


def differing(node, other):
    """The variables in which two servers differ, without those of their identity and the version's ending -log."""
    names = differences(node.variables(), other.variables())
    return [name for name in names if not is_identity(name) and name != "version"]


def test_only_the_option_that_stays_needs_a_start(switchable):
    """The others are switched as before, so the variant shares a cluster with those that start with that option."""
    both = switchable(**STUCK, lock_wait_timeout="40")

    assert (dict(both.static), dict(both.dynamic)) == (STUCK, {"lock_wait_timeout": "40"})
    assert both.cluster_key == switchable(**STUCK).cluster_key


NEED_EACH_OTHER = {"character_set_server": "utf8mb3", "collation_server": "utf8mb3_general_ci"}
READ_ONLY = {"max_connections": "256"}  # a start with it gives other values to variables that cannot be set


def test_options_that_need_each_other_are_divided_without_an_error(switchable):
    """No server starts with that collation and the default character set, so a start gets both."""
    variant = switchable(**NEED_EACH_OTHER, **STUCK, **READ_ONLY)

    assert dict(variant.static) == NEED_EACH_OTHER | STUCK | READ_ONLY
    assert variant.dynamic == ()


def test_many_options_that_cannot_be_switched_are_one_line(switchable):
    """A whole my.cnf is not tried option by option: its cluster starts with all of it, and the line names a few."""
    many = {f"{name}_buffer_size": "1M" for name in ("join", "sort", "read", "read_rnd")}
    variant = switchable(**READ_ONLY, **many)

    assert dict(variant.static) == READ_ONLY | many
    assert len([line for line in switchable.said if line.startswith("reading ")]) == 1
    (line,) = [line for line in switchable.said if not line.startswith("reading ")]
    assert missing(line, "cannot switch to the options of standalone1", "differ in those get separate clusters") == []
    assert "(join_buffer_size=1M, max_connections=256, read_buffer_size=1M and 2 more)" in line
    assert "read-only variables: back_log" in line


@pytest.mark.parametrize(
    ("one", "other"),
    [(LAZY, LAZY | BUSY), (BUFFERED, BUFFERED | LAZY), ({}, {"general_log": "ON"})],
    ids=["both_lazy", "both_buffered", "general_log"],
)
def test_one_cluster_serves_variants_that_a_switch_turns_into_each_other(one, other, pool, mariadb, briefly):
    """After each switch, there and back, its variables are those of a server that was started so."""
    specs = [ClusterSpec("standalone", release=mariadb.release_name, options=options) for options in (one, other)]
    variants = [pool.resolution.resolve(spec) for spec in specs]
    first, second = pool.running(variants)
    assert first is second

    cold = [briefly("standalone", **options).nodes[0] for options in (one, other)]
    node = first.cluster.nodes[0]
    for number in (0, 1, 0, 1):
        first.switch.to(pool.resolution.changes(variants[number]))
        assert differing(node, cold[number]) == []
    assert differing(*cold) != []


def test_a_log_that_a_start_buffers_is_as_after_a_start(pool, mariadb, briefly):
    """Where a running server cannot stop to buffer its log, flush=2 and the default have a cluster each."""
    specs = [ClusterSpec("standalone", release=mariadb.release_name, options=options) for options in ({}, LAZY)]
    variants = [pool.resolution.resolve(spec) for spec in specs]
    cold = [briefly("standalone", **options).nodes[0] for options in ({}, LAZY)]
    for number, running in enumerate(pool.running(variants)):
        running.switch.to(pool.resolution.changes(variants[number]))
        assert differing(running.cluster.nodes[0], cold[number]) == []
