"""A run whose rounds are made up: the plugin's hooks and reports without any server.

It is the conftest of the runs that tests start. FASTER and SD of the environment say how fast the second
variant is and how much its rounds scatter. What a test adds to ``PATCHES`` is replaced until the run ends, because most
runs share the process of their test: starting another one takes longer than the run.
"""

import itertools
import math
import os
import random

import pytest

from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.evidence import Evidence, ResolvedSpec
from pytest_dbcluster.plugin import hooks
from pytest_dbcluster.plugin.session import DBSession
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.system.machine_lock import Turns
from pytest_dbcluster.testbed.evidence.specs import spec_document

# Dotted name -> what stands there during the run.
PATCHES = {}


class FakeSource(RoundSource):
    """Rounds of 1000 operations; a load named ``dies`` fails its check."""

    metric = "throughput"
    arrival_rate = None

    def __init__(self, load, specs, release, parity):
        self.load = str(load)
        several = len({spec.release for spec in specs}) > 1
        self.names = [f"{spec}@{spec.release}" if several else spec.short_name for spec in specs]
        version = os.environ.get("VERSION", "1.2.3")
        documents = [spec_document(spec, str(spec.release or release), version, parity) for spec in specs]
        self.resolved = [
            ResolvedSpec(name, document, document.options) for name, document in zip(self.names, documents, strict=True)
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

    def evidence(self, question):
        """Nothing is written, and one variable differs."""
        names = [self.names[number] for number in question.variants]
        variables = {"innodb_flush_log_at_trx_commit": ("1", "2")}
        return Evidence(
            durability=dict.fromkeys(names, "made up"),
            differences=dict.fromkeys(itertools.pairwise(names), variables),
            specs={self.names[number]: self.resolved[number] for number in question.variants},
            mode=self.load.split()[-1],
            notes=("durability: made up",),
        )


class FakeSession(DBSession):
    """A run on fake round sources; its real provisioner starts nothing, so it waits for nobody's turn."""

    def __init__(self, settings, config):
        super().__init__(settings, config)
        self.pool.turns = Turns(None)

    def testbed(self, workload, on, release, **permits):
        """Made-up rounds for these specs; what OVERRIDDEN says is overridden."""
        self.pool.resolution.overridden[:] = os.environ.get("OVERRIDDEN", "").split()
        return FakeSource(workload, on, release, self.pool.resolution.parity)

    def available(self, releases, on):
        """The releases in the given order, without those in MISSING."""
        lacking = os.environ.get("MISSING", "").split()
        lines = [f"{name} is left out: made up" for name in releases if str(name) in lacking]
        return [name for name in releases if str(name) not in lacking], lines


def pytest_configure(config):
    """Replace what ``PATCHES`` names."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    for name, value in PATCHES.items():
        patch.setattr(name, value)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """The run's session is the fake."""
    if hooks.SESSION not in item.config.stash:
        item.config.stash[hooks.SESSION] = FakeSession(hooks.settings(item.config), item.config)
