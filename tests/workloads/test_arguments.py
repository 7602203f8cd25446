"""Values that a test gives: whole numbers, seconds and truth values, and the words for all else."""

from __future__ import annotations

import math

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.arguments import round_seconds, truth, whole
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.facts import missing


@pytest.mark.parametrize("given", ["4", True, 2.5, 4.0, None])
def test_what_is_no_whole_number_is_refused(given):
    """Text is none, nor is a truth value, nor a number with a point."""
    with pytest.raises(ConfigError) as caught:
        whole("tpcc threads", given, 1)

    assert missing(caught.value, f"tpcc threads={given!r}: ", "a whole number, 1 or more") == []


def test_a_whole_number_has_a_least():
    """It may be that one itself."""
    whole("sysbench point_selects", 0, 0)

    with pytest.raises(ConfigError, match=r"^sysbench point_selects=-1: it accepts 0 or more$"):
        whole("sysbench point_selects", -1, 0)


@pytest.mark.parametrize("given", ["2", True, None])
def test_what_is_no_number_of_seconds_is_refused(given):
    """With what it takes instead."""
    with pytest.raises(ConfigError) as caught:
        round_seconds("tpcc seconds", given)

    assert missing(caught.value, f"tpcc seconds={given!r}: ", "a number of seconds above 0") == []


@pytest.mark.parametrize("given", [0, -1.5, math.inf, math.nan])
def test_a_round_takes_a_while_and_ends(given):
    """Neither no time nor all of it; fractions are as good as whole seconds."""
    round_seconds("tpcc seconds", 0.1)
    round_seconds("tpcc seconds", 2)

    with pytest.raises(ConfigError, match=r": it accepts a finite number of seconds above 0$"):
        round_seconds("tpcc seconds", given)


@pytest.mark.parametrize("given", ["no", 0, 1, None])
def test_what_is_no_truth_value_is_refused(given):
    """A text such as "no" would count as True."""
    truth("tpcc thinking", False)
    truth("tpcc thinking", True)

    with pytest.raises(ConfigError) as caught:
        truth("tpcc thinking", given)

    assert missing(caught.value, f"tpcc thinking={given!r}: ", "True or False") == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MySQLSlap("write", rows="5000"), "mysqlslap rows='5000': it accepts a whole number, 1 or more"),
        (lambda: MySQLSlap("write", iterations=0), "mysqlslap iterations=0: it accepts 1 or more"),
        (lambda: MySQLSlap("write", seconds="5"), "mysqlslap seconds='5': it accepts a number of seconds above 0"),
        (lambda: MySQLSlap("write", quick_queries=1.5), "mysqlslap quick_queries=1.5: it accepts a whole number, 1 or"),
        (lambda: MySQLSlap(None), "unknown mysqlslap mode None; known: key, mixed, read, update, write"),
        (
            lambda: MySQLSlap("write", threads=4),
            "MySQLSlap(...): there is no argument threads=; write concurrency= in place of threads=; ",
        ),
        (
            lambda: SysBench(tables=4),
            "SysBench(...): there is no argument tables=; write table_count= in place of tables=; ",
        ),
        (lambda: SysBench(range_selects="no"), "sysbench range_selects='no': it accepts True or False"),
        (
            lambda: TPCC(warehouse=2),
            "TPCC(...): there is no argument warehouse=; write warehouses= in place of warehouse=; ",
        ),
        (lambda: TPCC(partitioned="no"), "tpcc partitioned='no': it accepts True or False"),
        (lambda: TPCC(attempts=None), "tpcc attempts=None: it accepts a whole number, 1 or more"),
        (lambda: SysBench().with_seconds(0), "sysbench seconds=0: it accepts a finite number of seconds above 0"),
        (lambda: SysBench(pause=1).at_rate(5), "sysbench pause=1 and rate=5: both decide when transactions start"),
    ],
)
def test_a_wrong_argument_of_a_workload_is_one_sentence(make, words):
    """It is raised where the workload is written."""
    with pytest.raises(ConfigError) as caught:
        make()

    assert str(caught.value).startswith(words)
