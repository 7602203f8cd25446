"""The budget of a claim: that of the run, or of the mark ``budget`` of its test; and the marks with seconds."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.settings import BUDGETS
from pytest_dbcluster.spec import PROFILES

if TYPE_CHECKING:
    from pytest_dbcluster.measuring.drawing.rules import Rules
    from pytest_dbcluster.plugin.settings import Settings

MARK = "budget"
MARK_HELP = (
    f"{MARK}(N): measured seconds that each claim of a test may use, in place of the budget of the profile; ten times "
    "as many with --db-profile paper; --db-budget on the command line wins"
)
NAME = f"mark {MARK}"  # the name of such a budget in a message


def own(item: Any, settings: Settings) -> float | None:
    """The budget in the mark of a test; None if no mark counts. Raises ConfigError for a wrong mark.

    The mark is for the profile ``quick``; in another profile, the ratio of the profiles' budgets scales it.
    """
    marked = seconds(item, MARK)
    if marked is None or settings.fixed_budget:
        return None
    return marked * settings.budget / BUDGETS[PROFILES[0]]


def of(item: Any, settings: Settings) -> float:
    """The maximum measured seconds of a claim of this test. Raises ConfigError for a wrong mark."""
    return own(item, settings) or settings.budget


def rules(item: Any, settings: Settings) -> Rules:
    """The options that limit the drawing of rounds, for the claims of this test."""
    budget, of_run = own(item, settings), settings.rules()
    return dataclasses.replace(of_run, budget=budget, budget_name=NAME) if budget else of_run


def seconds(item: Any, name: str) -> float | None:
    """The seconds in a mark; None without the mark. Raises ConfigError for anything but one number above 0."""
    mark = item.get_closest_marker(name)
    if mark is None:
        return None
    value = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        given = ", ".join([*map(repr, mark.args), *(f"{name}={argument!r}" for name, argument in mark.kwargs.items())])
        raise ConfigError(f"{item.nodeid}: {name}({given}) accepts one number of seconds above 0")
    return float(value)
