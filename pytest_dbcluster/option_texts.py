"""Options in a spec: their normal names, and their values as text."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_dbcluster.errors import ConfigError


def normal_option(name: str) -> str:
    """The normal form of an option's name: lower case, underscores, no leading dashes."""
    return name.strip().lstrip("-").replace("-", "_").lower()


def option_text(value: object) -> str:
    """The value of an option as my.cnf text."""
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return str(value)


def option_pairs(
    options: object, argument: str = "options", example: str = '"innodb_io_capacity": 2000'
) -> dict[str, str]:
    """Options as normal name -> text, from a mapping or from pairs. Raises ConfigError for anything else.

    argument, example: for the error.
    """
    try:
        given = dict(options)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ConfigError(f"{argument}={options!r} of a cluster: it accepts a mapping, such as {{{example}}}") from None
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            raise ConfigError(
                f"option {name}={value!r} of a cluster: a name is a text, and a value a text, a number, True or False"
            )
    return {normal_option(name): option_text(value) for name, value in given.items()}


def label(options: Mapping[str, str]) -> str:
    """The short name of a spec with these options: ``innodb_io_capacity_3000``."""
    return re.sub(r"[^\w.]+", "_", "_".join(f"{name}_{value}" for name, value in options.items()))[:60]
