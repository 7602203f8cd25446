"""Published: tuning Group Replication gave nothing, or up to 10 % less."""

import pytest

from fixtures.clusters import GROUP, with_appliers
from fixtures.loads import cluster_slap

pytestmark = pytest.mark.releases("mysql:9.7")
TUNED = {
    "compression_off": {"group_replication_compression_threshold": 0},
    "poll_spin": {"group_replication_poll_spin_loops": 1000},
}
OTHERS = {
    "before": {"group_replication_consistency": "BEFORE"},
    "flow_control_off": {"group_replication_flow_control_mode": "DISABLED"},
    "flow_control_100": {
        "group_replication_flow_control_applier_threshold": 100,
        "group_replication_flow_control_certifier_threshold": 100,
    },
    "paxos_single_leader": {"group_replication_paxos_single_leader": "ON"},
}


@pytest.mark.parametrize("name", TUNED)
def test_tuning_the_group_gains_nothing(measure, name):
    """Neither compressing no message nor spinning before sleeping makes writes a tenth faster."""
    default, tuned = measure(cluster_slap("write"), on=[GROUP, GROUP.with_options(TUNED[name]).named(name)])

    assert default.no_slower_than(tuned, by=0.10)


def test_waiting_until_all_have_applied_costs_throughput(measure):
    """With AFTER a commit returns when every member has applied it; the default waits for a majority to receive it."""
    eventual = GROUP.with_options(group_replication_consistency="EVENTUAL").named("eventual")
    after = GROUP.with_options(group_replication_consistency="AFTER").named("after")
    eventual_, after_ = measure(cluster_slap("write"), on=[eventual, after])

    assert eventual_.beats(after_)


def test_an_applier_for_each_writer_spares_the_coordinator(measure, db_release):
    """While all four appliers of a member are busy its coordinator spins: cores that servers beside it would use."""
    default, many = measure(cluster_slap("write"), on=[GROUP, with_appliers(GROUP, db_release, 32)])

    assert many.beats(default)


@pytest.mark.parametrize("name", OTHERS)
def test_other_settings_beside(measure, name):
    """What they do depends on the lag that a machine allows: measured and printed, not claimed."""
    default, other = measure(cluster_slap("write"), on=[GROUP, GROUP.with_options(OTHERS[name]).named(name)])

    other.against(default)
