"""A workload in SQL files: does a shop take more orders if the log is flushed once a second?"""

from pathlib import Path

import pytest

from fixtures.clusters import FLUSH_2, GALERA
from pytest_dbcluster import SQLFiles

pytestmark = pytest.mark.expected_seconds(30)

SHOP = Path(__file__).parent / "shop"


def test_flush_2_beats_the_default(measure):
    """One transaction in ten is an order, and its commit waits for the log."""
    default, flush_2 = measure(SQLFiles(SHOP, threads=16), on=[GALERA, FLUSH_2])

    assert flush_2.beats(default)
