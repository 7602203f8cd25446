"""Does writing on all nodes perform better than writing on one node?"""

import dataclasses

import pytest

from fixtures.clusters import GALERA
from fixtures.loads import oltp, tpcc

pytestmark = pytest.mark.expected_seconds(90)

WORKLOADS = {
    "read_write": lambda profile, to: oltp("read_write", profile, to=to),
    "tpcc": lambda profile, to: tpcc(profile, to=to),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_one_writer_aborts_less(measure, db_profile, name):
    """Writers wait for row locks on one node; across nodes the later of two conflicting transactions aborts."""
    workloads = {f"{to}_writes": WORKLOADS[name](db_profile, to) for to in ("all", "writer")}
    # No proxy: only one of the two workloads would go through it.
    all_nodes, one_node = measure(workloads, on=[dataclasses.replace(GALERA, proxy=None)])

    assert one_node.lower("abort_share", than=all_nodes)
    assert one_node.lower("retries_per_commit", than=all_nodes)
    one_node.against(all_nodes)  # goodput: shown, not claimed, because the nodes share the machine's cores
