"""Whether the budget of a claim (``--db-budget``) suffices for the rounds of the tests, checked before any test runs.

The seconds of a round are known only where the code of a test shows them. The same check is made again when a claim is
asked, with the workload as it is: ``measuring.reach``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pytest_dbcluster.claims.critical_values import ALPHAS
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import counted
from pytest_dbcluster.measuring import reach
from pytest_dbcluster.plugin.collection.code_of_test import CLAIMS, code_of

Budget = Callable[[Any], float]

VARIANTS = 2  # of a claim, at least
# Seconds of a round with a fixed amount of work, by profile: mysqlslap on a machine of two cores.
WORK_SECONDS: Mapping[str, float] = MappingProxyType({"quick": 0.5, "paper": 30.0})


def refuse(items: Sequence[Any], budget: Budget, alpha: float = ALPHAS[0]) -> None:
    """Raise ConfigError when no claim of a test can ever reach its first look within the budget.

    A guard has an earlier look than other claims. budget: the maximum measured seconds of a claim of each test. alpha:
    the chance of a wrong verdict (``--db-alpha``). The error names the test that needs the largest budget, so that one
    change of the option suffices.
    """
    unreachable = sorted(
        ((seconds, item.nodeid, load, why) for item in items for seconds, load, why in _too_long(item, budget, alpha)),
        key=lambda found: -found[0],
    )
    claiming = [found for found in unreachable if found[1] in {i.nodeid for i in items if code_of(i).claims}]
    if claiming:
        _, name, load, why = claiming[0]
        tests = len({found[1] for found in claiming})
        more = f" ({counted(tests, 'test')} of this run cannot be decided; this one needs most)" if tests > 1 else ""
        raise ConfigError(f"{name}: a claim about {load} cannot be decided: {why}{more}")


def warnings(items: Sequence[Any], budget: Budget, profile: str, alpha: float = ALPHAS[0]) -> list[str]:
    """The lines about a budget that may be too small; none where it suffices, as far as is known.

    The first is about tests whose own code makes no claim, the second about rounds of a fixed amount of work.
    """
    lines = []
    others = [item for item in items if not code_of(item).claims]
    unclaimed = [(item, found) for item in others for found in _too_long(item, budget, alpha)]
    if unclaimed:
        item, (_, load, why) = max(unclaimed, key=lambda found: found[1][0])
        lines.append(f"{item.nodeid}: if it claims something about {load}, it will not be decided: {why}")
    seconds = WORK_SECONDS.get(profile, WORK_SECONDS["quick"])
    unknown = sorted(((first_look(item, alpha), budget(item)) for item in items if not _lengths(item)), reverse=True)
    whys = (reach.beyond_budget(look, VARIANTS, seconds, most, given=False) for look, most in unknown)
    if why := next(filter(None, whys), ""):
        lines.append(
            f"claims about rounds with a fixed amount of work, such as mysqlslap's, may not be decided: a round takes "
            f"about {seconds:g} s here; {why}"
        )
    return lines


def _too_long(item: Any, budget: Budget, alpha: float) -> Iterator[tuple[float, str, str]]:
    """Each workload of a test whose rounds are too long: seconds until its first look, its name, and why."""
    look = first_look(item, alpha)
    for name, seconds, given in _lengths(item):
        if why := reach.beyond_budget(look, VARIANTS, seconds, budget(item), given=given):
            yield look * seconds, name, why


def first_look(item: Any, alpha: float) -> int:
    """The pairs before which no claim of a test can be decided; a test that shows no claim may make any."""
    return reach.earliest(code_of(item).claims or CLAIMS, alpha)


def _lengths(item: Any) -> list[tuple[str, float, bool]]:
    """The workloads of a test whose rounds last for a time: name, seconds of the shortest round, whether given."""
    from pytest_dbcluster.workloads.workload import Timed

    loads = [load for call in code_of(item).calls for load in call.workloads if isinstance(load, Timed)]
    lengths = [(str(load), load.seconds, reach.shortest(load.seconds, load.seconds is None)) for load in loads]
    return [(name, shortest, given is not None) for name, given, shortest in lengths if shortest is not None]
