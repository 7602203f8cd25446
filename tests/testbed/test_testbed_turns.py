"""When the real testbed has the machine for itself, and when it shares it with others."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.system.machine_lock import MachineLock, Turns
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from tests.support.fakes import Idle
from tests.support.testbeds import ONE, OTHER, source


@dataclasses.dataclass(frozen=True)
class Watching(Idle):
    """A load that takes no time and notes who has the machine at each of its steps."""

    machine: MachineLock = dataclasses.field(compare=False)
    seen: list[tuple[str, str]] = dataclasses.field(default_factory=list, compare=False)
    name = "watching"
    metric = "throughput"
    writes = True
    tables: tuple[str, ...] = ()

    def note(self, step):
        """What is done, and as what this process has the machine."""
        self.seen.append((step, " ".join(one.does for one in self.machine.holders())))

    def prepare(self, setting):
        """Noted."""
        self.note("prepare")

    def reset(self, setting):
        """Noted."""
        self.note("reset")

    def run(self, setting):
        """Noted."""
        self.note("run")
        return RunResult(0.01, 10, 10)

    def violations(self, cluster):
        """Noted."""
        self.note("violations")
        return []


@pytest.fixture
def load(tmp_path):
    """The load, on a machine of its own."""
    return Watching(MachineLock(tmp_path / "machine"))


@pytest.fixture
def pool(provisioner, tmp_path, load):
    """A pool of real servers; what it starts is noted too."""

    def progress(line):
        if line.startswith("starting"):
            load.note("start")

    made = Pool(Resolution(provisioner, fragments=tmp_path, below={}, progress=progress))
    made.turns = Turns(load.machine)
    yield made
    made.close()


def test_what_is_built_shares_the_machine_and_what_is_measured_has_it_alone(load, pool):
    """Starting, preparing and checking may run beside others' builds; reset and run of a round may not."""
    one, other = series_of(Measurement(source(pool, load, ONE, OTHER), Rules(seed=1, cap=6)))
    other.against(one)

    assert set(load.seen) == {
        ("start", "building"),
        ("prepare", "building"),
        ("reset", "measuring"),
        ("run", "measuring"),
        ("violations", "building"),
    }
    assert load.machine.holders() == []


def test_the_rounds_of_a_block_are_one_turn(load, pool):
    """Nobody gets in between the variants that are compared."""
    made = source(pool, load, ONE, OTHER)
    with made.exclusive():
        for number in (0, 1):
            made.round(number, block=0, position=number)
            load.note("between")

    assert [has for step, has in load.seen if step == "between"] == ["measuring"] * 2
