"""Published: not measurable, because conflicts between nodes ended the tool. Ours retries, counts and goes on."""

import pytest

from fixtures.clusters import galera
from fixtures.loads import SCALES, oltp

pytestmark = pytest.mark.expected_seconds(120)


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_more_writers_conflict_more(measure, db_profile, nodes):
    """The same rows are written on several nodes, and only one of two writers passes certification."""
    threads = SCALES[db_profile].threads[-1]
    load = oltp("read_write", db_profile, threads, to="all")
    several, one = measure(load, on=[galera(nodes), galera(1)])

    assert one.lower("abort_share", than=several)
    several.against(one)  # goodput: nodes share the machine's cores, so it is shown and not claimed
