"""Margins that equal clusters can differ by, found before any test runs."""

from __future__ import annotations

import ast
import types

import pytest

from pytest_dbcluster import ClusterSpec, MySQLSlap
from pytest_dbcluster.claims import claim
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.collection import small_margins
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.testbed import cluster_differences
from tests.support.command import ROOT

GALERA = ClusterSpec("galera", nodes=2)
POOL = GALERA.with_options(innodb_buffer_pool_size="1G")
SHARED = GALERA.with_options(innodb_io_capacity=3000)


def guarded(measure):
    """A guard of 4 % between clusters of their own."""
    a, b = measure(MySQLSlap("write"), on=[GALERA, POOL])
    assert b.no_slower_than(a, by=0.04)


def beside(measure):
    """Claims whose margins suffice, or are none of speed."""
    a, b = measure(MySQLSlap("write"), on=[GALERA, POOL])
    assert b.no_slower_than(a, by=0.10)
    assert b.beats(a)
    assert b.lower("fsyncs_per_commit", than=a, by=0.01)
    b.against(a)


def shared(measure):
    """A guard of 5 % on one cluster."""
    a, b = measure(MySQLSlap("write"), on=[GALERA, SHARED])
    assert b.same_as(a, within=0.05)


def several(measure):
    """A guard of 5 % with four instances of each variant."""
    a, b = measure(MySQLSlap("write"), on=[GALERA, POOL], instances=4)
    assert b.same_as(a, within=0.05)


def unknown(measure):
    """Two measurements: which one a claim is about is not known here."""
    a, b = measure(MySQLSlap("write"), on=[GALERA, POOL])
    c, d = measure(MySQLSlap("write"), on=[GALERA, SHARED])
    assert b.beats(a)
    assert d.same_as(c, within=0.05)


def queued(measure):
    """A claim about a queue's largest length since the start, on separate clusters."""
    a, b = measure(MySQLSlap("write"), on=[GALERA, POOL])
    assert b.lower("recv_queue_max", than=a)


def queued_on_one(measure):
    """The same on one cluster, whose queue both variants share."""
    a, b = measure(MySQLSlap("write"), on=[GALERA, SHARED])
    assert b.lower("recv_queue_max", than=a)


@pytest.fixture
def settings(pytestconfig, tmp_path):
    """The settings of a run."""
    return Settings.read(pytestconfig.option, tmp_path)


def item(function):
    """A measuring test."""
    return types.SimpleNamespace(nodeid=f"test_it.py::{function.__name__}", path="test_it.py", function=function)


def test_a_margin_that_equal_clusters_differ_by_is_refused(settings):
    """The error names the test, f and where it comes from; nothing was started."""
    with pytest.raises(ConfigError) as caught:
        small_margins.refuse([item(beside), item(guarded)], settings)
    assert str(caught.value).startswith(
        "test_it.py::guarded: no_slower_than: its margin, 4.2 % as a ratio of speeds, is not larger than 5.1 %, by "
        "which equal clusters can differ (1 in 200; default, measured elsewhere: 12 pairs of clusters, "
    )


def test_a_status_of_a_server_is_refused_across_clusters(settings):
    """Before a test runs; the error says what to compare instead."""
    with pytest.raises(ConfigError, match=r"^test_it.py::queued: lower on separate clusters: recv_queue_max is the la"):
        small_margins.refuse([item(beside), item(queued)], settings)


@pytest.mark.parametrize("function", [beside, shared, several, unknown, queued_on_one])
def test_other_claims_are_collected(settings, function):
    """A larger margin, counters, one cluster, more instances; and what the code does not show."""
    small_margins.refuse([item(function)], settings)


MARGINS = {"no_slower_than": "by", "same_as": "within", "beats": "by", "scales": "at_least"}


def margins_of_the_suites():
    """Each claim about speed in the suites that has a margin: where it stands, and the claim."""
    for path in sorted((ROOT / "suites").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            option = MARGINS.get(node.func.attr)
            for keyword in node.keywords:
                if option and keyword.arg == option:
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    yield where, getattr(claim, node.func.attr)(ast.literal_eval(keyword.value))


@pytest.mark.parametrize("kind", sorted(cluster_differences.DEFAULTS))
def test_every_margin_of_the_suites_lies_above_what_equal_clusters_can_differ_by(kind):
    """Also with one instance of each variant: no option that becomes static makes a claim of the suites impossible."""
    difference = cluster_differences.default(kind, frozenset({"shared-cores"}), "throughput")
    found = list(margins_of_the_suites())

    assert len(found) >= 8
    assert {where: why for where, made in found if (why := difference.refuses(made.kind, made.margins))} == {}
