"""Plans and ratios in words."""

from __future__ import annotations

from pytest_dbcluster.measuring.why import wording
from pytest_dbcluster.measuring.why.observation import PlanStep


def test_a_plan_is_read_in_words():
    """Each kind of access, with the expected rows and what the optimizer adds."""
    steps = {
        PlanStep("c", "ALL", "", 2000, "Using where"): "full scan of c, about 2000 rows [Using where]",
        PlanStep("c", "index", "email", 1, ""): "full scan of the index email of c, about 1 row",
        PlanStep("c", "ref", "country", 0, ""): "key country of c (ref)",
        PlanStep("", "", "", 0, "No tables used"): "no table [No tables used]",
    }

    assert {step: wording.plan_text([step]) for step in steps} == steps
    assert (
        wording.plan_text(list(steps)[1:3])
        == "full scan of the index email of c, about 1 row, then key country of c (ref)"
    )
    assert wording.plan_text([]) == "-"


def test_a_ratio_to_nothing_is_in_words():
    """There is no number for it."""
    assert [wording.ratio_text(*two) for two in ((1.0, 2.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0))] == [
        "2.00x",
        "from 0",
        "to 0",
        "-",
    ]
