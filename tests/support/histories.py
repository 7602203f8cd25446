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
