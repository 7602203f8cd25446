"""Parts of the conftest of runs that tests start."""

from __future__ import annotations

# Options of runs in which other plugins have no part: importing them takes longer than a run on made-up rounds.
PLAIN = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:benchmark", "-p", "no:allure_pytest")
# The environment of runs that load our plugin and pytest-xdist, and do not look for others among all packages.
ONLY_OURS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_dbcluster.plugin.hooks,xdist.plugin"}
# A run on a machine of its own waits for no other run of this one, and none for it. Its servers start from copies with
# holes where the template has zeros.
OWN_MACHINE = """
from pathlib import Path

from pytest_dbcluster.hosts import local_host
from pytest_dbcluster.system import machine_lock

local_host.COPY = (*local_host.COPY, "--sparse=always")
own = machine_lock.MachineLock(Path(__file__).with_name("machine"))
machine_lock.this = lambda: own
"""
# matplotlib takes each process of a run longer to import than all else.
NO_CHARTS = """
import pytest

from pytest_dbcluster.reporting.charts import drawing


def pytest_sessionstart(session):
    patch = pytest.MonkeyPatch()
    patch.setattr(drawing, "available", lambda: False)
    session.config.add_cleanup(patch.undo)
"""
# mysqlslap prints milliseconds, so a round repeats its statements for .2 s: ten times longer than these tests need.
SHORT_ROUNDS = """
from pytest_dbcluster.rounds import round_length

round_length.STEPS = 20
"""
# A claim about counters looks at no times, so a round of mysqlslap has its statements once.
COUNTED_ROUNDS = """
from pytest_dbcluster.rounds import round_length

round_length.STEPS = 1
"""
# Rounds of SQL files and of scripts, whose length a claim chooses, are as short as they may be.
SHORT_TIMES = """
from pytest_dbcluster.rounds import round_length

round_length.LONGEST = round_length.USUAL = round_length.WARM_UP = round_length.SHORTEST
"""
# For claims whose answer depends on no speed, or on a clear difference, rounds may be shorter still.
BRIEF_TIMES = (
    """
from pytest_dbcluster.rounds import round_length

round_length.SHORTEST = 0.15
"""
    + SHORT_TIMES
)
# The capacity of a variant, of which a rate is a share, need not be precise.
FEW_BLOCKS = """
from pytest_dbcluster.rounds import open_loop

open_loop.BLOCKS = (2, 2)
"""
# The provisioner of the run, as a file. It follows ``fake_session``.
PROVISIONER = """
from pathlib import Path

kept = DBSession.__init__


def began(self, settings, config):
    Path(__file__).with_name("provisioner").write_text(settings.provisioner)
    kept(self, settings, config)


PATCHES["pytest_dbcluster.plugin.session.DBSession.__init__"] = began
"""
