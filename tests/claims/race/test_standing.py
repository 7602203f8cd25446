"""The places of a race."""

from pytest_dbcluster.claims.race import standing
from pytest_dbcluster.claims.race.standing import Standing

PLACES = (
    Standing("c", 1.0, 1.0, 1.0, 24, wins=True),
    Standing("a", 0.98, 0.96, 1.004, 24),
    Standing("b", 0.712, 0.65, 0.77, 17, beaten_by="c"),
)


def test_each_variant_has_a_row():
    """The winner has no ratio, since it is that of the others; one that left says when and by whom."""
    assert standing.columns(PLACES) == ("variant", "speed / c", "rounds", "end")
    assert standing.rows(PLACES) == [
        ("c", "-", "24", "wins"),
        ("a", "0.98x (0.96 .. 1.004)", "24", "remains"),
        ("b", "0.71x (0.65 .. 0.77)", "17", "left after 17 rounds, beaten by c"),
    ]


def test_a_leader_that_has_not_won_remains():
    """As every other variant that nobody has beaten."""
    assert Standing("c", 1.0, 1.0, 1.0, 24).end == "remains"
