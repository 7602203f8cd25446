"""Runs on made-up rounds that are continued, and which loads they measure."""

from __future__ import annotations

from pathlib import Path

FAKE = Path(__file__).with_name("fake_session.py").read_text()
WORDS = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:benchmark"]
RESUME = [*WORDS, "--db-resume"]
# Each load whose rounds are drawn is a line of the file "drawn".
COUNTED = """
drawn = FakeSource.round


def counted(self, variant, **words):
    with open("drawn", "a") as file:
        file.write(self.load + "\\n")
    return drawn(self, variant, **words)


FakeSource.round = counted
"""


def drawn(suite):
    """The loads that were measured since the last call."""
    file = suite.path / "drawn"
    loads = set(file.read_text().splitlines()) if file.exists() else set()
    file.unlink(missing_ok=True)
    return loads
