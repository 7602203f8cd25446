"""Quantity: a number that a test gives a load, refused where it is written when it is none."""

from __future__ import annotations

import math

from pytest_dbcluster.errors import ConfigError


def whole(field: str, given: object, least: int) -> None:
    """Raise ConfigError for what is no whole number, or less than ``least``; ``field`` is ``tpcc threads``."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise ConfigError(f"{field}={given!r}: it takes a whole number, {least} or more")
    if given < least:
        raise ConfigError(f"{field}={given!r}: it takes {least} or more")


def round_seconds(field: str, given: object) -> None:
    """Raise ConfigError for what is no number of seconds that a round may take."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ConfigError(f"{field}={given!r}: it takes a number of seconds above 0")
    if not 0 < given < math.inf:
        raise ConfigError(f"{field}={given!r}: a round takes more than 0 s, and ends")
