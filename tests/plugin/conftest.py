"""Runs of pytest on made-up rounds."""

import pytest

from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.plugin.session import DBSession
from pytest_dbcluster.reporting.charts import drawing
from tests.support import conftests
from tests.support.fakes import FakeSource, noisy


@pytest.fixture(autouse=True)
def only_ours(monkeypatch):
    """Runs load our plugin and pytest-xdist alone; a module whose runs need another one names it."""
    for name, value in conftests.ONLY_OURS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a suite on made-up rounds: ``measure(load, on=[seconds, ...])``. No chart or page is made."""

    def measurement(self, call):
        if isinstance(call.workload, Exception):
            raise call.workload
        source = FakeSource(tuple(f"v{n}" for n in range(len(call.on))), noisy(*call.on, sd=0.1))
        return Measurement(source, self.settings.rules(), test=call.item.nodeid, number=call.number)

    monkeypatch.setattr(DBSession, "measurement", measurement)
    monkeypatch.setattr(drawing, "available", lambda: False)
    monkeypatch.setenv("COLUMNS", "400")  # no line of ours is wrapped

    def run(source, *options):
        pytester.makepyfile(test_suite=source)
        return pytester.runpytest_inprocess(*conftests.PLAIN, "--db-seed=5", *options)

    return run
