"""Does writing on all nodes gain anything over writing on one?"""

import dataclasses

import pytest

from fixtures.clusters import GALERA
from fixtures.loads import oltp, tpcc

pytestmark = pytest.mark.expected_seconds(90)

LOADS = {
    "read_write": lambda profile, to: oltp("read_write", profile, to=to),
    "tpcc": lambda profile, to: tpcc(profile, to=to),
}


@pytest.mark.parametrize("name", LOADS)
def test_one_writer_aborts_less(measure, db_profile, name):
    """On one node writers wait for each other's locks; between nodes the later one fails and has to start again."""
    loads = {f"{to}_writes": LOADS[name](db_profile, to) for to in ("all", "writer")}
    everywhere, one = measure(loads, on=[dataclasses.replace(GALERA, proxy=None)])  # no hop for one of them alone

    assert one.lower("abort_share", than=everywhere)
    assert one.lower("retries_per_commit", than=everywhere)
    one.against(everywhere)  # goodput: the nodes share the machine's cores here
