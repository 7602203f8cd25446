"""Wrong arguments of a public call become a ConfigError that shows how the call is written.

Python's own TypeError names the wrong argument, but not the right one, and comes with a traceback of our code.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pytest_dbcluster.errors import ConfigError

Called = TypeVar("Called", bound=Callable[..., Any])
MARGINS = ("by", "within", "at_least", "step")  # the margins of the claims; each claim has one of them
NONE: Mapping[str, str] = MappingProxyType({})


def check_arguments(usage: str, *, instead: Mapping[str, str] = NONE) -> Callable[[Called], Called]:
    """Decorate a function, a method or a class: wrong arguments raise ConfigError.

    usage: the call as a test writes it. instead: a wrong name that users may write -> the name of the argument.
    """

    def decorate(called: Called) -> Called:
        function: Callable[..., Any] = called.__init__ if isinstance(called, type) else called  # type: ignore[misc]
        checked = _with_checks(function, usage, instead)
        if not isinstance(called, type):
            return cast(Called, checked)
        called.__init__ = checked  # type: ignore[misc]
        return cast(Called, called)

    return decorate


def _with_checks(function: Callable[..., Any], usage: str, instead: Mapping[str, str]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    known = [parameter for parameter in signature.parameters if parameter != "self"]
    takes_only_known = all(one.kind is not one.VAR_KEYWORD for one in signature.parameters.values())

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError:
            if not (error := _binding_error(signature, arguments, keywords)):
                raise
            unknown = [name for name in keywords if name not in known] if takes_only_known else []
            # Python would name a missing argument first, even if the call has it under another name.
            reason = f"there is no argument {'=, '.join(unknown)}=" if unknown else str(error)
            hint = _instead(unknown, known, instead)
            raise ConfigError(f"{_name(usage)}(...): {reason}; {hint}usage: {usage}") from None

    return call


def _binding_error(signature: inspect.Signature, arguments: Any, keywords: Any) -> TypeError | None:
    """Why a function does not accept these arguments; None if it does. Only errors are worth the time that it takes."""
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        return error
    return None


def _name(usage: str) -> str:
    """The name of the function: ``measure.sweep`` of ``curve = measure.sweep(workload, ...)``."""
    return usage.partition("(")[0].rpartition(" ")[2]


def _instead(unknown: list[str], known: list[str], instead: Mapping[str, str]) -> str:
    """What to write in place of unknown arguments; empty if nothing is similar."""
    margin = next((name for name in MARGINS if name in known), "")
    meant = {**(dict.fromkeys(MARGINS, margin) if margin else {}), **instead}
    close = {name: difflib.get_close_matches(name, known, n=1) for name in unknown if name not in meant}
    meant |= {name: matches[0] for name, matches in close.items() if matches}
    hints = [f"{meant[name]}= in place of {name}=" for name in unknown if name in meant]
    return f"write {', '.join(hints)}; " if hints else ""
