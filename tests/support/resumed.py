"""Runs on made-up rounds that are continued, and which loads they measure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import conftests

FAKE = Path(__file__).with_name("fake_session.py").read_text()
WORDS = ["--db-seed=5", "-p", "no:cacheprovider"]
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


class Killed:
    """A run that a signal ended. It runs once, at the first use, and each test goes on from a copy of what it left."""

    def __init__(self, place, suite, conftest, words, **environment):
        self.place = place
        (place / "test_suite.py").write_text(suite)
        (place / "conftest.py").write_text(conftest)
        subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=place,
            env={**os.environ, **conftests.ONLY_OURS, "HOME": str(place), "COLUMNS": "400", **environment},
            stdout=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )

    def continued(self, pytester, *words):
        """Continue the run to its end in the place of a test. It is done once; later tests get a copy."""
        kept = self.place.with_name(f"{self.place.name}-continued")
        if kept.exists():
            shutil.copytree(kept, pytester.path, dirs_exist_ok=True)
        else:
            pytester.runpytest_inprocess(*words)
            shutil.copytree(pytester.path, kept, ignore=shutil.ignore_patterns("__pycache__"))

    def copied(self, pytester):
        """The place of a test with the suite and what the run left; compiled code would name the other place."""
        shutil.copytree(self.place, pytester.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        return pytester


def drawn(suite):
    """The loads that were measured since the last call."""
    file = suite.path / "drawn"
    loads = set(file.read_text().splitlines()) if file.exists() else set()
    file.unlink(missing_ok=True)
    return loads
