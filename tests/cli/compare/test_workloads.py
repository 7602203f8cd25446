"""Workloads of a comparison: their names, their data, and the line about data that fit into the buffer pool."""

from __future__ import annotations

import argparse
import types

import pytest

from pytest_dbcluster.cli.compare import workloads
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.facts import missing
from tests.workloads.sql.directories import directory


def given(*names, **changes):
    """The options for workloads and their data."""
    return argparse.Namespace(
        **{"workload": list(names), "threads": None, "size": None, "warehouses": None, "capacity": None, **changes}
    )


def scaled(*names, **changes):
    """The workloads of options for their data."""
    return workloads.workloads_of(given(*names, **changes))


def with_pools(*pools):
    """Variants with these buffer pools; None for the default of the server."""
    return [types.SimpleNamespace(options={"innodb_buffer_pool_size": pool} if pool else {}) for pool in pools]


def test_the_data_of_each_workload_have_an_option():
    """``--size`` is the data of sysbench in eight tables, ``--warehouses`` the scale of tpcc."""
    sysbench, tpcc = scaled(size="1G", warehouses=12)

    assert (sysbench.script, sysbench.table_count) == ("oltp_read_write", 8)
    assert 0.99 * 2**30 < sysbench.data_set_bytes <= 2**30
    assert tpcc == TPCC(warehouses=12)
    assert scaled() == [SysBench("oltp_read_write"), TPCC()]


def test_other_data_change_the_text_about_the_data_and_not_the_name():
    """Records have the text, and the id of a claim has the name."""
    small, large = scaled(), scaled(size="1G", warehouses=12)

    assert [str(one) for one in small] == [str(small[0]), "tpcc w1 t4"]
    assert str(small[0]) == str(large[0]) == "sysbench oltp_read_write t16"
    assert [one.data_text for one in small] == ["1 table of 100000 rows, about 25 MiB", "1 warehouse, about 96 MiB"]
    assert [one.data_text for one in large] == [
        "8 tables of 516222 rows, about 1024 MiB",
        "12 warehouses, about 1145 MiB",
    ]


def test_a_script_that_reads_one_table_has_one_table_of_the_size():
    """The other scripts have eight."""
    (points,) = scaled("sysbench:select_random_points", size="64M")

    assert (points.table_count, points.data_set_bytes // 2**20) == (1, 63)


@pytest.mark.parametrize(
    ("names", "changes", "message"),
    [
        (["tpcc"], {"size": "1G"}, "--size is for sysbench, and this comparison has only tpcc"),
        (["mysqlslap:key"], {"warehouses": 2}, "--warehouses is for tpcc, and this comparison has only mysqlslap:key"),
        ([], {"size": "1.5G"}, "--size '1.5G': it accepts 1M or more, such as 512M or 2G"),
        ([], {"size": "100"}, "--size '100': it accepts 1M or more, such as 512M or 2G"),
        ([], {"warehouses": 0}, "tpcc warehouses=0: "),
    ],
)
def test_data_of_no_workload_are_refused(names, changes, message):
    """Nobody believes that a workload has more data than it has."""
    with pytest.raises(ConfigError) as error:
        scaled(*names, **changes)

    assert str(error.value).startswith(message)


def test_data_that_fit_into_the_buffer_pool_are_named_with_the_options_for_more():
    """The suggested data are larger than the pool; data that do not fit get no line."""
    line = workloads.data_line(scaled(), 2**27)

    pool = (
        "fit into a buffer pool of 128 MiB",
        "sysbench oltp_read_write t16 25 MiB of tables",
        "tpcc w1 t4 96 MiB of",
    )
    assert missing(line, *pool, "--size 192M and --warehouses 3", "a longer --seconds", "first load") == []
    assert workloads.data_line(scaled(size="192M", warehouses=3), 2**27) == ""
    assert "tpcc" not in workloads.data_line(scaled(warehouses=3), 2**27)
    assert workloads.data_line(scaled("mysqlslap:key"), 2**27) == ""


def test_own_data_that_fit_get_the_advice_to_add_rows(tmp_path):
    """No option gives a directory of SQL files more data."""
    own = SQLFiles(directory(tmp_path / "shop", {}))
    line = workloads.data_line([own], 2**27)

    assert line.startswith("the data fit into a buffer pool of 128 MiB: sql shop t16 ")
    assert "for more data than that: more rows in shop, and a longer --seconds" in line


@pytest.mark.parametrize(
    ("pools", "shown"), [(["64M", None], "128 MiB"), (["128M", "1G"], "1024 MiB"), (["16M", "8M"], "")]
)
def test_the_larger_buffer_pool_of_both_variants_counts(pools, shown):
    """A server without the option has 128 MiB."""
    line = workloads.fitting_line(scaled(), with_pools(*pools))

    assert (f"a buffer pool of {shown}:" in line) if shown else line == ""


@pytest.mark.parametrize(
    ("pools", "data"),
    [
        (["16M", "64M"], [95, 190]),
        ([None, "256M"], [383, 476]),
        (["1G", "64M"], [24, 95]),
        (["64M", "64M"], [24, 95]),
        (["128M", None], [24, 95]),
    ],
    ids=["both", "one", "large", "equal", "the default"],
)
def test_different_buffer_pools_get_more_data_than_the_larger_one(pools, data):
    """If both are equal, or the data would be large, the usual data stay."""
    made = workloads.beyond_pools(scaled(), with_pools(*pools), given())

    assert [one.data_set_bytes // 2**20 for one in made] == data


def test_an_option_for_the_data_counts_before_the_buffer_pools():
    """Each option is for its own workload; other workloads have no option."""
    pools, options = with_pools("16M", "256M"), {"size": "4M", "warehouses": 1}
    names = ("sysbench:oltp_read_write", "tpcc", "mysqlslap:key")
    made = workloads.beyond_pools(scaled(*names, **options), pools, given(*names, **options))
    larger = workloads.beyond_pools(scaled(*names, size="4M"), pools, given(*names, size="4M"))

    assert made == scaled(*names, **options)
    assert [larger[0], larger[2]] == [made[0], made[2]]
    assert larger[1] == TPCC(warehouses=5)


def test_an_objective_is_a_percentile_with_a_time():
    """As other options write times; without the option there is none."""
    found = [
        workloads.objective_of(argparse.Namespace(capacity=text), [SysBench()])
        for text in ("p95=20ms", "p99=.1s", None)
    ]

    assert found == [Objective("p95", 0.02), Objective("p99", 0.1), None]


@pytest.mark.parametrize("other", [{"why": True}, {"by_option": True}, {"cnf": ["a", "b", "c"]}])
def test_capacities_are_those_of_two_variants_as_a_whole(other):
    """They have no extra rounds, no effects of options and no race."""
    with pytest.raises(ConfigError, match=r"^--capacity "):
        workloads.objective_of(argparse.Namespace(capacity="p95=20ms", **other), [SysBench()])


@pytest.mark.parametrize(
    ("text", "names", "facts"),
    [
        ("p95", ["tpcc"], ("--capacity p95= ''", "such as 20ms")),
        ("p95=fast", ["tpcc"], ("--capacity p95= 'fast'",)),
        ("p90=20ms", ["tpcc"], ("unknown percentile 'p90'",)),
        ("p95=2s", ["tpcc"], ("--capacity: p95=2.0 must be seconds",)),
        ("p95=20ms", ["tpcc", "mysqlslap:write"], ("mysqlslap write", "has no open loop")),
    ],
)
def test_another_objective_is_refused(text, names, facts):
    """Before anything starts."""
    with pytest.raises(ConfigError) as error:
        scaled(*names, capacity=text)
    assert missing(str(error.value), *facts) == []
