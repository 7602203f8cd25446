"""``ProxyOption``: an option of a proxy, set by ``proxy_options`` of a spec. The proxy's class lists all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity

SECONDS, CHECKS, SWITCH = "s", "checks", ""  # units
SWITCHES = {"ON": True, "1": True, "OFF": False, "0": False}


@dataclasses.dataclass(frozen=True)
class ProxyOption:
    """An option with its default and the values that it accepts."""

    name: str
    """Its name in ``proxy_options``."""

    default: float
    """The value of a proxy without this option; True or False for ON or OFF."""

    what: str
    """What it does, in a sentence."""

    unit: str = SWITCH
    """``s`` for seconds, ``checks`` for whole numbers; empty for ON or OFF."""

    least: float = 0
    """The smallest accepted number."""

    most: float = 1
    """The largest accepted number."""

    @property
    def accepts(self) -> str:
        """The accepted values as text, such as ``seconds from 0.1 to 60``."""
        if self.unit == SWITCH:
            return "ON or OFF"
        kind = "seconds" if self.unit == SECONDS else "whole numbers"
        return f"{kind} from {self.least:g} to {self.most:g}"

    def text(self, value: float) -> str:
        """A value as text with its unit: ``ON``, ``5 s``, ``3 checks``."""
        if self.unit == CHECKS:
            return quantity(int(value), "check")
        return ("ON" if value else "OFF") if self.unit == SWITCH else f"{value:g} {self.unit}"

    def read(self, text: str, proxy: str) -> float:
        """The value of a text. proxy: the name of the proxy for the error. Raises ConfigError."""
        value: float | None = SWITCHES.get(text.upper())
        if self.unit != SWITCH:
            try:
                value = float(text) if self.unit == SECONDS else int(text)
            except ValueError:
                value = None
        if value is None or not self.least <= value <= self.most:
            raise ConfigError(f"proxy_options {self.name}={text} of {proxy}: it accepts {self.accepts}")
        return value


def read_options(proxy: str, known: Sequence[ProxyOption], given: Mapping[str, str]) -> dict[str, float]:
    """The value of each option of a proxy, by name. given: the texts of a spec. Raises ConfigError."""
    names = [option.name for option in known]
    if given and not known:
        raise ConfigError(f"proxy {proxy} has no options, got proxy_options {', '.join(given)}")
    if wrong := next((name for name in given if name not in names), ""):
        listed = ", ".join(f"{option.name} ({option.text(option.default)})" for option in known)
        meant = registry.suggestion("proxy option", wrong, names)
        raise ConfigError(f"unknown option {wrong!r} of the proxy {proxy}; known, with their defaults: {listed}{meant}")
    return {one.name: one.read(given[one.name], proxy) if one.name in given else one.default for one in known}
