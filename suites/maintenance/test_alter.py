"""Which way of changing a table stops the clients least?"""

import dataclasses

import pytest

from fixtures.clusters import GALERA
from fixtures.loads import tpcc
from pytest_dbcluster.events import Alter, Nothing

pytestmark = [pytest.mark.releases("mariadb:10.11"), pytest.mark.expected_seconds(600)]

TERMINALS = 8
INDEX = "ALTER TABLE stock ADD INDEX by_quantity (s_quantity)"
COLUMN = "ALTER TABLE stock ADD COLUMN s_note VARCHAR(20)"
WAREHOUSES = 6  # 600 000 rows of stock: each node builds the index in more than a second


@pytest.fixture
def load(db_profile):
    """TPC-C on a table that is large enough for a change to take time."""
    return dataclasses.replace(tpcc(db_profile, TERMINALS), warehouses=WAREHOUSES)


def test_an_index_by_rsu_stalls_less_than_by_toi(measure, load):
    """By TOI all nodes build the index at one place in the order of transactions, and everything waits for it."""
    ways = {"toi": Alter(INDEX, method="TOI"), "rsu": Alter(INDEX, method="RSU"), "none": Nothing()}
    toi, rsu, _ = measure.event(load, ways, on=GALERA)

    assert rsu.shorter("stall", than=toi)
    assert toi.loses_nothing()
    assert rsu.loses_nothing()


def test_an_index_by_pt_osc_stalls_less_than_by_toi(measure, load):
    """The tool copies the table in small parts, and needs an exclusive moment only to exchange the tables."""
    ways = {"toi": Alter(INDEX, method="TOI"), "pt_osc": Alter(INDEX, method="pt-osc")}
    toi, tool = measure.event(load, ways, on=GALERA)

    assert tool.shorter("stall", than=toi)
    assert tool.loses_nothing()


def test_an_instant_column_stalls_less_than_a_copy(measure, load):
    """The one changes a definition, the other writes the table again."""
    ways = {method.lower(): Alter(COLUMN, method=method) for method in ("INSTANT", "COPY")}
    instant, copy = measure.event(load, ways, on=GALERA)

    assert instant.shorter("stall", than=copy)
    assert copy.loses_nothing()
