"""What does a proxy far from the node that takes the writes cost?"""

import pytest

from fixtures.clusters import GALERA, GROUP, far_proxy
from fixtures.loads import commits

pytestmark = pytest.mark.expected_seconds(120)


@pytest.mark.releases("mariadb:10.11")
def test_a_far_haproxy_slows_every_statement(measure):
    """Each statement crosses the distance between HAProxy and the writer, beside what its commit waits for."""
    near, far = measure(commits(), on=[GALERA, far_proxy(GALERA)])

    assert near.beats(far, by=0.5)


@pytest.mark.releases("mysql:9.7")
def test_a_far_router_slows_every_statement(measure):
    """MySQL Router passes each statement to the primary."""
    near, far = measure(commits(), on=[GROUP, far_proxy(GROUP)])

    assert near.beats(far, by=0.5)
