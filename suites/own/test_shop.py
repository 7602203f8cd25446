"""A workload in SQL files: does a shop take more orders if the log is flushed once a second?"""

from pathlib import Path

import pytest

from fixtures.clusters import FLUSH_2, GALERA
from pytest_dbcluster import SQLFiles

pytestmark = pytest.mark.expected_seconds(60)

SHOP = Path(__file__).parent / "shop"


def test_the_shop_flushes_less(measure):
    """One transaction in ten is an order. Its commit writes the log, and does not flush it."""
    default, flush_2 = measure(SQLFiles(SHOP, threads=16), on=[GALERA, FLUSH_2])

    assert flush_2.lower("fsyncs_per_commit", than=default)
    flush_2.against(default)  # goodput: shown, not claimed, because most transactions only read
