"""Preferences of apt: which version it chooses if several sources have the same package."""

from __future__ import annotations

from collections.abc import Sequence

# Above every other source: apt then chooses this version even if another source has a newer one.
_VENDOR, _EXACT = 1001, 1002
_REST = 100
# Another archive in the machine's sources must not override the version of the suite.
DISTRIBUTIONS = """\
Package: *
Pin: release o=Debian
Pin-Priority: 990

Package: *
Pin: release o=Ubuntu
Pin-Priority: 990
"""


def of_vendor(patterns: Sequence[str], label: str) -> str:
    """The vendor's own packages come from the vendor; all others come from the distribution if it has them."""
    return _stanza(" ".join(patterns), f"release o={label}", _VENDOR) + _stanza("*", f"release o={label}", _REST)


def of_version(patterns: Sequence[str], version: str) -> str:
    """These packages have exactly this version if a source has it. ``version``: as Debian writes it, with its epoch."""
    return _stanza(" ".join(patterns), f"version {version}", _EXACT)


def _stanza(packages: str, pin: str, priority: int) -> str:
    return f"Package: {packages}\nPin: {pin}\nPin-Priority: {priority}\n\n"
