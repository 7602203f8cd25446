"""The order of tests in a run whose time is limited."""

from pytest_dbcluster.plugin.collection.budget_order import cheapest_first

SECONDS = {"slow": 90.0, "quick": 5.0, "middle": 40.0, "known": 1.0, "far": 20.0}
GROUP = {"slow": "one", "quick": "one", "known": "one", "middle": "two", "far": "three"}


def ordered(items, decided=(), group=GROUP):
    """The items in the order of a run with a budget."""
    return cheapest_first(items, group, SECONDS.__getitem__, lambda item: item in decided)


def test_cheap_tests_come_first_and_groups_stay_together():
    """The group whose tests cost least on average is first."""
    assert ordered(["slow", "middle", "far", "quick"]) == ["far", "middle", "quick", "slow"]


def test_what_was_decided_comes_last():
    """Within its group; a group in which nothing is open comes after all others."""
    assert ordered(["known", "slow", "quick"], decided={"known"}) == ["quick", "slow", "known"]
    assert ordered(["far", "middle"], decided={"far"}) == ["middle", "far"]


def test_tests_that_do_not_measure_keep_their_places():
    """They cost nothing that the budget could save."""
    assert ordered(["a", "middle", "b", "far"]) == ["a", "far", "b", "middle"]
