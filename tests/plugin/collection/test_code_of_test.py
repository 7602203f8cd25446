"""What the code of a test shows before it runs."""

from __future__ import annotations

import types

import pytest

from pytest_dbcluster import TPCC, ClusterSpec, MySQLSlap, SysBench
from pytest_dbcluster.plugin.collection.code_of_test import Call, Code, Unseen, code_of

ONE = ClusterSpec("galera", nodes=3)
BOTH = [ONE, ONE.with_options(innodb_flush_log_at_trx_commit=2)]
LOADS = {"a": TPCC(seconds=1.0)}
SHAPES = types.SimpleNamespace(ONE=ONE)


def helper(number):
    """A function of the test's own: nobody calls it before the test does."""
    pytest.fail(f"called with {number}")


def item(function, **params):
    """A test of this function with these parameters."""
    return types.SimpleNamespace(function=function, callspec=types.SimpleNamespace(params=params))


def test_names_lists_and_values_of_this_package_are_seen():
    """A spec and its variants, a workload, several calls in their order."""

    def sample(measure):
        two = ONE.with_options(x=1)
        default, other = measure(SysBench("oltp_read_only", seconds=3), on=[ONE, two], instances=3)
        assert other.beats(default)
        measure.sweep(LOADS["a"], on=BOTH, threads=(1, 4))

    assert code_of(item(sample)) == Code(
        (
            Call((SysBench("oltp_read_only", seconds=3),), (ONE, ONE.with_options(x=1)), 3),
            Call((TPCC(seconds=1.0),), tuple(BOTH), sweep=True),
        ),
        claims=frozenset({"beats"}),
    )


def test_parameters_are_seen():
    """By name, also where they are more than one cluster."""

    def sample(measure, load, specs, number):
        measure(load, on=[*specs, specs[0]])
        measure(workload=TPCC(threads=number), on=specs)

    found = code_of(item(sample, load=MySQLSlap("write"), specs=(ONE,), number=4))
    assert found == Code((Call((MySQLSlap("write"),), (ONE, ONE)), Call((TPCC(threads=4),), (ONE,))))


def test_workloads_of_a_mapping_are_seen():
    """Each of them runs on the same cluster."""

    def sample(measure):
        measure({"one": TPCC(), "all": TPCC(to="all")}, on=[ONE])

    assert code_of(item(sample)).calls == (Call((TPCC(), TPCC(to="all")), (ONE,)),)


def test_functions_of_the_test_are_not_called():
    """Their value is unseen: text and values of parameters tell equal ones from others."""

    def sample(measure, nodes):
        measure(helper(0), on=[helper(nodes), helper(2), SHAPES.ONE, undefined, ONE.with_options(x=helper(1))])  # noqa: F821

    (call,) = code_of(item(sample, nodes=3)).calls
    assert call.workloads == (Unseen("helper(0)"),)
    assert call.on == tuple(
        map(Unseen, ["helper(3)", "helper(2)", "SHAPES.ONE", "undefined", "ONE.with_options(x=helper(1))"])
    )


def test_a_wrong_value_is_unseen():
    """The test itself will raise its error, with its own line."""

    def sample(measure):
        measure(TPCC(threads=-1), on=[ONE])

    assert code_of(item(sample)).calls == (Call((Unseen("TPCC(threads=-1)"),), (ONE,)),)


def test_code_that_cannot_be_read_shows_nothing():
    """A test without a source, and one without a function."""
    source = "def sample(measure):\n    measure(0, on=[])\n"
    made: dict[str, object] = {}
    exec(source, made)

    assert code_of(item(made["sample"])) == code_of(types.SimpleNamespace()) == Code()
