"""``LevelTestbed``: runs rounds of combinations of levels, on one running cluster or on a fresh one for each value."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster.claims.factorial import design
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed import round_runner
from pytest_dbcluster.testbed.options import levels
from pytest_dbcluster.testbed.options.levels import Levels
from pytest_dbcluster.testbed.pool import Running
from pytest_dbcluster.testbed.testbed import TURN, Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Setting, Workload

FRESH = 100  # the first number of a fresh cluster: others have small numbers
Changes = Mapping[str, str | None]  # variables with their values; None for that of a cold start


class LevelTestbed(Testbed):
    """The round source of several options.

    Its variants are the levels: of each option the first and the second one, with the first levels of the others. A
    round has a combination of levels. What a switch sets for it is composed of what it sets for each level. After the
    switch, all variables of every node must be as composed; otherwise the round is void.

    If servers take one of the options only at a start, each combination that is drawn gets a fresh cluster. Its rounds
    count as one value.

    Raises ConfigError for an option whose levels are the same to the servers, and for two that set the same.
    """

    def __init__(self, options: Levels, *arguments: Any, **keywords: Any) -> None:
        """options: as ``levels.read`` returns them. arguments, keywords: those of ``Testbed``."""
        super().__init__(*arguments, **keywords)
        self._options, self._of_pair = options, 2  # rounds: all options share them
        self._combination: int | None = None
        self._fresh = 0  # clusters that were started for a value
        self._started = levels.options_at_start([one.cluster_key for one in self.variants], options)
        base, self._steps = steps(options, self._changes, self._started)
        self._base = {name: value for name, value in base.items() if name not in self._started}

    @functools.cached_property
    def one_at_a_time(self) -> bool:
        """Whether each value has a start: servers do not take one of the options while they run."""
        if self._started:
            self._progress(
                f"{self.load}: running servers cannot switch {', '.join(self._started)}; each combination gets a fresh "
                f"cluster, and {TURN} rounds per start count as one value"
            )
        return bool(self._started)

    def _variants_needed(self, variant: int) -> list[Variant]:
        """A fresh cluster for the combination of the round, if it needs a start."""
        if self._combination is None or not self.one_at_a_time:
            return super()._variants_needed(variant)
        first, static = self.variants[0], dict(self.variants[0].static)
        for number, name in enumerate(self._options):
            if name in self._started:
                level = self.variants[2 * number + (self._combination >> number & 1)].options
                static.pop(name, None)
                static |= {name: level[name]} if name in level else {}
        made = dataclasses.replace(first, static=tuple(sorted(static.items())))
        return [made.on_instance(first.spec.instance + FRESH + self._fresh)]

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Run one round. variant: its combination, as in ``claims.factorial.design``."""
        self._begin(0)
        self._combination = variant
        self._fresh += 1
        try:
            done = self._draw(0, block, position, time.monotonic())
        finally:
            self._combination = None
        return dataclasses.replace(done, variant=design.name_of(variant, len(self._options)))

    def _on_path(self, running: Running, variant: int, block: int, position: int, began: float) -> Round:
        try:
            return super()._on_path(running, variant, block, position, began)
        except SwitchFailed as error:
            return round_runner.void_round(str(error), variant=self.names[variant], block=block, position=position)

    def _run_round(self, workload: Workload, setting: Setting, *, variant: str, block: int, position: int) -> Round:
        """The same; errors of the workload name the levels of the round."""
        if self._combination is not None:
            on = [self._combination >> number & 1 for number in range(len(self._options))]
            levels_of = ", ".join(self.names[2 * number + level] for number, level in enumerate(on))
            setting = dataclasses.replace(setting, variant=levels_of)
            variant = design.name_of(self._combination, len(self._options))  # as in the round and its timeline
        return super()._run_round(workload, setting, variant=variant, block=block, position=position)

    def _switch(self, running: Running, variant: int) -> None:
        """Switch to the combination of the round; outside of a round to a level."""
        if self._combination is None:
            super()._switch(running, variant)
            return
        names = {*self._base, *itertools.chain.from_iterable(self._steps)}
        self._shape(running, variant)
        try:
            running.switch.to(compose(self._base, self._steps, self._combination), among=names)
        except ProvisionError as error:
            raise SwitchFailed(str(error)) from error
        self._check_start(running, self._combination)

    def _check_start(self, running: Running, combination: int) -> None:
        """Raise SwitchFailed if a server started with the other level of an option. It may adjust a level."""
        wanted = {
            name: (pair[combination >> number & 1], pair[~combination >> number & 1])
            for number, (name, pair) in enumerate(self._options.items())
            if name in self._started
        }
        for node in running.cluster.nodes if wanted else ():
            have = node.variables()
            for name, (level, other) in wanted.items():
                if name in have and levels.same_value(have[name], other):
                    raise SwitchFailed(f"{node.name} has started with {name}={other}, not {level}")


class SwitchFailed(ProvisionError):
    """After a switch the variables are not those of the combination."""


def steps(
    options: Levels, changes: Sequence[Mapping[str, str] | None], started: Sequence[str] = ()
) -> tuple[dict[str, str], list[Changes]]:
    """What a switch sets for all first levels, and what each second level adds to it.

    changes: for each level what a switch sets for it. started: options that a start sets; a switch adds nothing for
    them. What another option sets itself is no part of a step. Raises ConfigError if a step is empty, and if two
    options are the same under two names. It raises it too if two options set another variable differently.
    """
    base, found = dict(changes[0] or {}), list[Changes]()
    for number, name in enumerate(options):
        if name in started:
            found.append({})
            continue
        own = changes[2 * number + 1] or {}
        step = {
            variable: own.get(variable)
            for variable in sorted(base.keys() | own.keys())
            if own.get(variable) != base.get(variable)
        }
        if not step:
            baseline, candidate = options[name]
            raise ConfigError(f"options: {name}={baseline} and {name}={candidate} give the servers the same variables")
        found.append(step)
    for (one, first), (other, second) in itertools.combinations(zip(options, found, strict=True), 2):
        both = first.keys() & second.keys()
        if first and first.keys() == second.keys():
            raise ConfigError(f"options: {one} and {other} set the same variables; keep one of them")
        if unclear := sorted(name for name in both if name not in options and first[name] != second[name]):
            raise ConfigError(f"options: {one} and {other} both change {', '.join(unclear)}; leave one of them out")
    return base, _own_last(options, found)


def _own_last(options: Levels, found: Sequence[Changes]) -> list[Changes]:
    """The steps, each without the variables that are options themselves, except its own."""
    return [
        {name: value for name, value in step.items() if name == option or name not in options}
        for option, step in zip(options, found, strict=True)
    ]


def compose(base: Mapping[str, str], added: Sequence[Changes], combination: int) -> dict[str, str]:
    """What a switch sets for a combination of levels."""
    found: dict[str, str | None] = dict(base)
    for number, step in enumerate(added):
        if combination >> number & 1:
            found |= step
    return {name: value for name, value in found.items() if value is not None}
