"""Checks, messages and order of the measuring tests of a run, before the first of them begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.plugin.collection.past_runs import Past, PastRuns
    from pytest_dbcluster.plugin.settings import Settings

PAST: pytest.StashKey[PastRuns] = pytest.StashKey()


def refuse(config: pytest.Config, settings: Settings, measuring: Sequence[pytest.Item]) -> None:
    """Raise ConfigError for tests whose verdicts would mean nothing, or that could have none.

    ``python -O`` skips assert statements. A repeated test would pass at some time by chance.
    """
    if not __debug__:
        raise ConfigError("python -O removes assert statements, so no test would read a claim: run without -O")
    reruns = _reruns(config)
    for item in measuring:
        if item.get_closest_marker("flaky") or reruns:
            raise ConfigError(
                f"{item.nodeid}: a measuring test must not run again until it passes; remove the flaky mark or --reruns"
            )
    from pytest_dbcluster.plugin.collection import expected_time

    if not config.option.collectonly:  # a list of tests stays fast
        from pytest_dbcluster.plugin.collection import expected_cost, refusals

        refusals.check(settings, measuring)
        refusals.refuse_equal_tests(measuring, settings.releases[0])
        expected_cost.refuse(settings, [item for item in measuring if not has_skip_mark(item)])
    expected_time.check_marks(measuring)


def _reruns(config: pytest.Config) -> bool:
    """Whether pytest-rerunfailures repeats all tests, by its option or by that of pytest.ini."""
    if getattr(config.option, "reruns", None):
        return True
    try:
        return str(config.getini("reruns") or "0").strip() != "0"
    except (KeyError, ValueError):  # the plugin is not there
        return False


def has_skip_mark(item: pytest.Item) -> bool:
    """Whether a mark ``skip`` or ``skipif`` skips a test; False for a mark that pytest will refuse."""
    from _pytest.skipping import evaluate_skip_marks

    try:
        return evaluate_skip_marks(item) is not None
    except pytest.fail.Exception:
        return False


def estimate_lines(config: pytest.Config, settings: Settings, measuring: Sequence[pytest.Item]) -> list[str]:
    """The lines about the expected time and cost of the measuring tests. Raises ConfigError for a wrong mark."""
    from pytest_dbcluster.plugin.collection import budgets, expected_cost, expected_time

    running = [item for item in measuring if not has_skip_mark(item)]
    seconds = {item: past.seconds for item in running if (past := _past(config, settings, item))}
    own = {item: found for item in running if (found := budgets.own(item, settings))}
    skipped = len(measuring) - len(running)
    times = expected_time.estimate(running, settings.profile, seconds.get, own.get, skipped=skipped)
    lines = expected_time.lines(times, settings.budget, [*own.values()])
    return [*lines, *expected_cost.lines(settings, running)] if lines else []


def by_cost(
    config: pytest.Config, settings: Settings, items: list[pytest.Item], group: Mapping[pytest.Item, str]
) -> list[pytest.Item]:
    """In a run with a budget, the items with cheap and undecided tests first; otherwise in their order."""
    if settings.run_budget is None:
        return items
    from pytest_dbcluster.plugin.collection import budget_order, budgets, expected_time

    def seconds(item: pytest.Item) -> float:
        past = _past(config, settings, item)
        own = budgets.own(item, settings)
        return past.seconds if past else expected_time.seconds_of(item, settings.profile, own)

    def is_decided(item: pytest.Item) -> bool:
        past = _past(config, settings, item)
        return past is not None and past.decided

    return budget_order.cheapest_first(items, group, seconds, is_decided)


def _past(config: pytest.Config, settings: Settings, item: pytest.Item) -> Past | None:
    """The earlier runs of a test in the history of this run; None for a test without any."""
    if not config.option.db_history:
        return None
    from pytest_dbcluster.plugin import grouping
    from pytest_dbcluster.plugin.collection import past_runs

    if PAST not in config.stash:
        config.stash[PAST] = past_runs.PastRuns.read(settings, Path(config.option.db_history))
    chosen = grouping.params(item).get("db_release")
    return config.stash[PAST].of(item, str(chosen or settings.releases[0]))
