"""Checks of the values that a test passes to a workload, when the workload is constructed."""

from __future__ import annotations

import math

from pytest_dbcluster.errors import ConfigError


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
