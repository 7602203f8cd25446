"""Checks of the values that a test passes to a workload, when the workload is constructed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError


def check_fields(
    tool: str,
    given: object,
    *,
    least: Mapping[str, int],
    seconds: Sequence[str],
    choices: Mapping[str, Sequence[str | None]],
    truths: Sequence[str] = (),
) -> None:
    """Raise ConfigError for a wrong value of a field of ``given``. A field whose default is None may be None.

    tool: begins the names of fields in messages. least: a field with a whole number -> its smallest value. seconds:
    fields with times. choices: field -> its values. truths: fields with truth values.
    """
    for name, allowed in choices.items():
        if (value := getattr(given, name)) not in allowed:
            raise registry.unknown(f"{tool} {name}", value, filter(None, allowed))

    def is_set(name: str) -> bool:
        return getattr(given, name) is not None or getattr(type(given), name, 0) is not None

    for name in filter(is_set, least):
        whole(f"{tool} {name}", getattr(given, name), least[name])
    for name in filter(is_set, seconds):
        round_seconds(f"{tool} {name}", getattr(given, name))
    for name in truths:
        truth(f"{tool} {name}", getattr(given, name))


def whole(field: str, given: object, least: int) -> None:
    """Raise ConfigError unless ``given`` is a whole number of at least ``least``. field: such as ``tpcc threads``."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise ConfigError(f"{field}={given!r}: it accepts a whole number, {least} or more")
    if given < least:
        raise ConfigError(f"{field}={given!r}: it accepts {least} or more")


def round_seconds(field: str, given: object) -> None:
    """Raise ConfigError unless ``given`` is a finite number of seconds above 0."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ConfigError(f"{field}={given!r}: it accepts a number of seconds above 0")
    if not 0 < given < math.inf:
        raise ConfigError(f"{field}={given!r}: it accepts a finite number of seconds above 0")


def truth(field: str, given: object) -> None:
    """Raise ConfigError unless ``given`` is True or False. A text such as "no" would count as True."""
    if not isinstance(given, bool):
        raise ConfigError(f"{field}={given!r}: it accepts True or False")
