"""Runs that continue others load our plugin and pytest-xdist alone."""

import pytest

from tests.support import conftests


@pytest.fixture(autouse=True)
def only_ours(monkeypatch):
    """A run that looks at another plugin names it."""
    for name, value in conftests.ONLY_OURS.items():
        monkeypatch.setenv(name, value)
