"""Which tests belong together because they use the same clusters, as far as can be told before they run."""

from __future__ import annotations

import types

import pytest

from pytest_dbcluster.plugin import grouping
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

GALERA = ClusterSpec("galera", nodes=3, proxy="haproxy")
RELEASE = ReleaseName.parse("mariadb:10.11")
OTHER = ReleaseName.parse("mysql:9.7")


def item(module="suites/test_a.py", *, names=None, params=None, marks=()):
    """A test of a module with these names in it."""
    return types.SimpleNamespace(
        nodeid=f"{module}::test_it",
        module=types.SimpleNamespace(**(names or {})),
        callspec=types.SimpleNamespace(params=params or {}),
        iter_markers=lambda name: [types.SimpleNamespace(args=args) for args in marks if name == "clusters"],
    )


def grouped(*items):
    """The group of each test."""
    return grouping.groups([grouping.keys(one, RELEASE) for one in items])


def test_tests_of_a_module_belong_together():
    """They mostly share their clusters, named or not."""
    first, second, other = grouped(item(), item(), item("suites/test_b.py"))

    assert first == second != other


@pytest.mark.parametrize(
    "names",
    [
        {"MINE": GALERA},
        {"MINE": GALERA.with_cnf("flush_2")},
        {"MINE": [GALERA.with_options(x=1)]},
        {"MINE": {"a": GALERA.named("x")}},
    ],
)
def test_modules_that_name_a_cluster_belong_together(names):
    """Clusters that differ in options alone may be one, which is switched between them."""
    first, second = grouped(item(names={"GALERA": GALERA}), item("suites/test_b.py", names=names))

    assert first == second


def test_a_parameter_may_be_the_cluster():
    """Only what can be read before the test runs counts."""
    first, second = grouped(item(names={"GALERA": GALERA}), item("suites/test_b.py", params={"spec": GALERA}))

    assert first == second


@pytest.mark.parametrize(
    "other",
    [
        ClusterSpec("galera", nodes=2, proxy="haproxy"),
        ClusterSpec("galera", nodes=3),
        ClusterSpec("standalone"),
        GALERA.with_proxy_options(fall=2),
    ],
)
def test_clusters_that_no_switch_turns_into_each_other_are_apart(other):
    """Another number of nodes, another proxy or option of it, another topology."""
    first, second = grouped(item(names={"ONE": GALERA}), item("suites/test_b.py", names={"ONE": other}))

    assert first != second


def test_releases_are_apart():
    """A cluster has one; that of the run is meant where none is named."""
    mine = [item(params={"db_release": release}) for release in (RELEASE, OTHER)]
    named = item("suites/test_b.py", names={"ONE": GALERA.on_release(OTHER)})
    plain = item("suites/test_c.py", names={"ONE": GALERA})
    asked = item("suites/test_d.py", names={"ONE": GALERA}, params={"db_release": OTHER})

    assert len(set(grouped(*mine))) == 2
    assert len(set(grouped(named, plain))) == 2
    assert len(set(grouped(named, asked))) == 1
    assert len(set(grouped(plain, item("suites/test_e.py", names={"ONE": GALERA.on_release(RELEASE)})))) == 1


def test_a_mark_says_it_instead():
    """It joins modules that build their clusters in the test, and parts the tests of one module."""
    one, other = item(marks=[("galera3",)]), item(marks=[("async2",)])
    elsewhere = item("suites/test_b.py", marks=[("galera3", "galera4")], names={"GALERA": GALERA})

    assert grouped(one, elsewhere, other) == ["galera3 on mariadb:10.11"] * 2 + ["async2 on mariadb:10.11"]


def test_who_belongs_together_with_one_belongs_to_all():
    """One test uses both clusters, so all three go where they are."""
    several = [frozenset(keys) for keys in (("a",), ("b",), ("x",), ("b", "a"), ("y", "x"))]

    assert grouping.groups(several) == ["a", "a", "x", "a", "x"]


def test_tests_of_a_group_run_one_after_the_other():
    """From the place of its first; the order within a group stays, and tests that measure nothing keep their places."""
    items = ["a1", "plain", "b1", "a2", "c1", "b2", "last"]
    group = {one: one[0] for one in items if one[-1].isdigit()}

    assert grouping.sort_by_group(items, group) == ["a1", "plain", "a2", "b1", "b2", "c1", "last"]
