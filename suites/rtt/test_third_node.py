"""What does a third node far away cost, beside two that are near each other?"""

import pytest

from fixtures.clusters import GALERA_DIRECT, GROUP_DIRECT, far_third
from fixtures.loads import commits

pytestmark = pytest.mark.expected_seconds(120)


@pytest.mark.releases("mariadb:10.11")
def test_galera_waits_for_the_farthest_node(measure):
    """Every node has to receive a commit before it returns on the first."""
    near, far = measure(commits(), on=[GALERA_DIRECT.with_needs(rtt=0).named("near"), far_third(GALERA_DIRECT)])

    assert near.beats(far, by=1.0)


@pytest.mark.releases("mysql:9.7")
def test_a_group_waits_for_a_majority(measure):
    """Two near members are a majority of three, so a far third one costs less than all being far."""
    third, all_far = measure(
        commits(), on=[far_third(GROUP_DIRECT), GROUP_DIRECT.with_needs(rtt=0.02).named("all_far")]
    )

    assert third.beats(all_far)
