"""The options of ``measure.factorial`` and their levels, read and checked before anything starts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.factorial import chances
from pytest_dbcluster.claims.factorial.design import PER_LEVEL, ROUNDS
from pytest_dbcluster.clusters.servers import path_options
from pytest_dbcluster.clusters.servers.variables import equal, meaning
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.spec import ClusterSpec

Levels = dict[str, tuple[str, str]]

LEAST_LEFT = 2  # rounds for each option beyond its first: with fewer, effects of options cannot be told apart
EXAMPLE = 'options={"sync_binlog": (1, 0), "innodb_flush_log_at_trx_commit": (1, 2)}'


def read(options: object) -> Levels:
    """The options by normal name, each with its two levels as text, the baseline first.

    Raises ConfigError for anything else than a mapping of names to two different levels. It raises it too for an option
    that is there twice, in whatever spelling.
    """
    if not isinstance(options, Mapping) or not options:
        raise ConfigError(f"measure.factorial(..., options={options!r}): it accepts options with two levels: {EXAMPLE}")
    found: Levels = {}
    spelled: dict[str, str] = {}
    for name, levels in options.items():
        first, second = _two(name, levels)
        pairs = formatting.option_pairs({name: first}), formatting.option_pairs({name: second})
        [(normal, baseline)], [(_, candidate)] = (list(pair.items()) for pair in pairs)
        plain = path_options.bases(normal)[-1]
        if plain in spelled:
            raise ConfigError(f"options: {name!r} and {spelled[plain]!r} are the same option; keep one of them")
        if same_value(baseline, candidate):
            raise ConfigError(f"options: both levels of {normal} are {baseline}; an option needs two different levels")
        spelled[plain] = name
        found[normal] = (baseline, candidate)
    return found


def _two(name: object, levels: object) -> tuple[object, object]:
    """The two levels of an option. Raises ConfigError for another number of levels."""
    if not isinstance(name, str):
        raise ConfigError(f"options: {name!r} is not the name of an option: {EXAMPLE}")
    if not isinstance(levels, tuple | list):
        raise ConfigError(f"options: {name!r}: {levels!r} is one level; give two, the baseline first: {EXAMPLE}")
    if len(levels) == 2:
        return levels[0], levels[1]
    if len(levels) < 2:
        raise ConfigError(f"options: {name!r} has {quantity(len(levels), 'level')}; give two, the baseline first")
    steps = [f"{name!r}: ({one!r}, {other!r})" for one, other in itertools.pairwise(levels)]
    raise ConfigError(
        f"options: {name!r} has {len(levels)} levels, and an option has two; compare neighbours in "
        f"{quantity(len(steps), 'call')} of measure.factorial: {' and '.join(f'options={{{step}}}' for step in steps)}"
    )


def same_value(one: str, other: str) -> bool:
    """Whether two values of an option mean the same: 128M and 134217728, ON and 1."""
    return equal(one, other) or meaning(one) == meaning(other)


def read_pairs(pairs: object, options: Mapping[str, object]) -> list[tuple[str, str]]:
    """The pairs of options whose interaction may be claimed, by normal name. Raises ConfigError for others."""
    if not isinstance(pairs, tuple | list):
        raise ConfigError(f"pairs={pairs!r}: it accepts pairs of options, such as pairs=[{tuple(options)[:2]!r}]")
    found: list[tuple[str, str]] = []
    for pair in pairs:
        names = [normal_name(name) for name in pair] if isinstance(pair, tuple | list) else []
        if len(set(names)) != 2 or not set(names) <= options.keys():
            raise ConfigError(f"pairs: {pair!r} is not a pair of these options: {', '.join(options)}")
        if set(names) in map(set, found):
            raise ConfigError(f"pairs: {pair!r} is there twice")
        found.append((names[0], names[1]))
    return found


def normal_name(name: object) -> str:
    """The name of an option as ``read`` gives it; other objects as text."""
    return next(iter(formatting.option_pairs({name: ""}))) if isinstance(name, str) else str(name)


def check_number(options: int, pairs: int, alpha: float, cap: int) -> None:
    """Raise ConfigError for more options than the rounds allow. cap: the maximum number of rounds of each level."""
    blocks, parts = cap // PER_LEVEL, options + pairs
    most = (ROUNDS - 1) * blocks // (1 + LEAST_LEFT)
    can = options <= most and any(
        chances.critical_value([(PER_LEVEL, PER_LEVEL)] * look, chances.at_look(alpha / parts)) is not None
        for look in chances.LOOKS
        if look <= blocks
    )
    if not can:
        least = PER_LEVEL * max(chances.LOOKS[0], -(-options * (1 + LEAST_LEFT) // (ROUNDS - 1)))
        raise ConfigError(
            f"options: {options} of them need {least} rounds of each level or more, and --db-max-pairs allows {cap}; "
            "leave some options out, or measure them in two calls"
        )


def specs(on: ClusterSpec, options: Levels, usual: Mapping[str, str]) -> list[ClusterSpec]:
    """The specs of all levels: of each option its first and its second one, with the first levels of the others.

    usual: the values that the servers have without these options; a first level that is one of them is left out.
    """
    first = {
        name: levels[0]
        for name, levels in options.items()
        if name in dict(on.options) or not (name in usual and same_value(levels[0], usual[name]))
    }
    base, found = on.with_options(first) if first else on, list[ClusterSpec]()
    for name, (baseline, candidate) in options.items():
        found.append(base.named(f"{name}={baseline}"))
        found.append(base.with_options({name: candidate}).named(f"{name}={candidate}"))
    return found


def options_at_start(keys: Sequence[object], options: Levels) -> list[str]:
    """The options that servers take only at a start. keys: the ``cluster_key`` of the variant of each of ``specs``."""
    return [name for number, name in enumerate(options) if keys[2 * number + 1] != keys[2 * number]]
