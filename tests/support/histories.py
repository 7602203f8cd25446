"""Histories of made-up runs, for the tests of everything that reads them."""

import dataclasses
import random

from pytest_dbcluster.reporting.history.entry import entry_of
from tests.support.records import record
from tests.support.run_documents import run_document

CLAIM = "test_flush::test_flush_2[write] | flush_2.beats(galera3) | mysqlslap write c50"
DAY = 86_400.0


def run(number, **changes):
    """The run of a day."""
    return run_document(**{"run_id": f"run{number:02}", "began": 1_700_000_000.0 + number * DAY, **changes})


def claimed(faster=1.84, claim_id=CLAIM, **changes):
    """A claim with this ratio."""
    return record(faster=faster, sd=0.01, pairs=20, claim_id=claim_id, provisioner="local", **changes)


def entries(ratios, *, anchor=None, first=0, **changes):
    """An entry for each of these ratios, one run a day. ``changes``: of the entry."""
    made = entry_of(claimed(), run(0), anchor)
    return [
        dataclasses.replace(
            made, **{"ratio": ratio, "run": f"run{number:02}", "time": 1_700_000_000.0 + number * DAY, **changes}
        )
        for number, ratio in enumerate(ratios, first)
    ]


def healthy(number, seed=1, level=1.84, sd=0.02):
    """Ratios of runs that differ by so much, and by nothing else."""
    drawn = random.Random(seed)
    return [level * drawn.lognormvariate(0, sd) for _ in range(number)]


def simulated(seed, number=20, between=0.03, machine=0.15):
    """A healthy history: nothing changes but the noise between runs, and how fast the machine is on that day.

    between: the spread of ratio, of each variant's speed, and of the anchor. machine: that of the day, which all of
    them share.
    """
    drawn = random.Random(seed)
    made = entry_of(claimed(), run(0), 1000.0)
    found = []
    for day in range(number):
        speed, noise = drawn.lognormvariate(0, machine), [drawn.lognormvariate(0, between / 2**0.5) for _ in range(2)]
        medians = {name: 700.0 * speed * own for name, own in zip((made.baseline, made.candidate), noise, strict=True)}
        medians[made.candidate] *= 1.84
        changes = {
            "run": f"run{day:02}",
            "time": 1_700_000_000.0 + day * DAY,
            "medians": medians,
            "ratio": medians[made.candidate] / medians[made.baseline],
            "anchor": 1000.0 * speed * drawn.lognormvariate(0, between / 2**0.5),
        }
        found.append(dataclasses.replace(made, **changes))
    return found
