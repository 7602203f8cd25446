"""A run whose rounds are made up: the plugin's hooks and reports without any server.

It is the conftest of the runs that tests start. FASTER and SD of the environment say how fast the second
variant is and how much its rounds scatter.
"""

import math
import os
import random
import types

import pytest

from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.plugin import hooks
from pytest_dbcluster.plugin.session import DBSession
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.system.machine_lock import Turns


class FakeSource(RoundSource):
    """Rounds of 1000 operations; a load named ``dies`` fails its check."""

    instances = 1
    metric = "throughput"
    arrival_rate = None
    others_before = None

    def __init__(self, load, specs, release):
        self.load = str(load)
        self.names = [spec.short_name for spec in specs]
        self.mode = self.load.split()[-1]
        self.environment = {}
        release = types.SimpleNamespace(name=release, version=os.environ.get("VERSION", "1.2.3"), image="")
        self.variants = [
            types.SimpleNamespace(release=release, spec=spec, options=dict(spec.options), asked=dict(spec.options))
            for spec in specs
        ]
        self._noise = random.Random(7)

    def round(self, variant, *, block, position):
        """One made-up round."""
        faster = float(os.environ.get("FASTER", "1.5")) if variant else 1.0
        seconds = 0.5 / faster * math.exp(self._noise.gauss(0, float(os.environ.get("SD", "0.02"))))
        outcome = RunResult(seconds, 1000, 1000)
        return Round(self.names[variant], block, position, outcome, wall=seconds, started=1_700_000_000.0)

    def check(self):
        """All is well, unless the load says otherwise."""
        if self.load == "dies":
            raise SeriesVoid("tables differ on node db2")

    def blind_spot(self, *numbers, by_size=False):
        """Nothing hides what is measured."""
        return ""

    def notes(self, *numbers):
        """Nothing to add."""
        return ["durability: made up"]

    def delays(self, variant):
        """No network was asked for."""
        return []

    def durability(self, variant):
        """Nothing is written."""
        return "made up"

    def differences(self, candidate, baseline):
        """One variable."""
        return {"innodb_flush_log_at_trx_commit": ("1", "2")}

    def data_fits(self, candidate, baseline):
        """No buffer pool."""
        return ""


class FakeSession(DBSession):
    """A run on fake round sources; its real provisioner starts nothing, so it waits for nobody's turn."""

    def __init__(self, settings, config):
        super().__init__(settings, config)
        self.pool.turns = Turns(None)

    def testbed(self, workload, on, release, **permits):
        """Made-up rounds for these specs; what OVERRIDDEN says is overridden."""
        self.pool.resolution.overridden[:] = os.environ.get("OVERRIDDEN", "").split()
        return FakeSource(workload, on, release)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """The run's session is the fake."""
    if hooks.SESSION not in item.config.stash:
        item.config.stash[hooks.SESSION] = FakeSession(hooks.settings(item.config), item.config)
