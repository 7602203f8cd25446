"""What identifies a claim over many runs."""

from __future__ import annotations

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.reporting.documents import claim_id


@pytest.mark.parametrize(
    ("test", "release", "left"),
    [
        ("t.py::test[mariadb:10.11-write]", "mariadb:10.11", "t.py::test[write]"),
        ("t.py::test[write-mariadb:10.11]", "mariadb:10.11", "t.py::test[write]"),
        ("t.py::test[a-mariadb:10.11-b]", "mariadb:10.11", "t.py::test[a-b]"),
        ("t.py::test[mariadb:10.11]", "mariadb:10.11", "t.py::test"),
        ("t.py::test[mariadb:10.11_1-write]", "mariadb:10.11", "t.py::test[write]"),
        ("t.py::test[mariadb:10.1-write]", "mariadb:10.11", "t.py::test[mariadb:10.1-write]"),
        ("t.py::test[write]", "mariadb:10.11", "t.py::test[write]"),
        ("t.py::test", "mariadb:10.11", "t.py::test"),
    ],
)
def test_the_release_is_taken_out_of_a_test(test, release, left):
    """Wherever it stands among the parameters; what is left is the same on every release."""
    assert claim_id.bare(test, release) == left


def test_changed_files_of_a_workload_make_another_id():
    """So a history never continues with another load; a workload without files has only its name."""
    ids = [claim_id.claim_id("t.py::test", [], "a.beats(b)", "sql shop t8", content) for content in ("", "1a", "2b")]

    assert ids == [f"t::test | a.beats(b) | {load}" for load in ("sql shop t8", "sql shop t8 1a", "sql shop t8 2b")]


def test_an_id_is_the_same_on_every_release_and_in_every_directory():
    """It can be read."""
    claim = kinds.beats().identity(("flush_2", "galera3"), "throughput")
    ids = {
        claim_id.claim_id(test, [release], claim, "mysqlslap write c50")
        for test, release in (
            ("suites/galera/test_flush.py::test_flush_2[write]", "mariadb:10.11"),
            ("suites/galera/test_flush.py::test_flush_2[mariadb:10.11-write]", "mariadb:10.11"),
            ("moved/test_flush.py::test_flush_2[mysql:8.4-write]", "mysql:8.4"),
        )
    }

    assert ids == {
        'test_flush::test_flush_2[write] | flush_2.beats(galera3, metric="throughput") | mysqlslap write c50'
    }


@pytest.mark.parametrize(
    ("identity", "words", "left"),
    [
        ("t::test[galera-write] | a.beats(galera3)", ["galera3", "galera"], "t::test[write] | a.beats()"),
        ("t::test[write-galera3] | a.beats(b)", ["galera3", "galera"], "t::test[write] | a.beats(b)"),
        ("test_galera::test[galera] | a.beats(b)", ["galera"], "test::test | a.beats(b)"),
        (
            "t::test | flush_2_gp2_100.beats(galera3_gp2_100)",
            ["gp2-100", "gp2_100"],
            "t::test | flush_2.beats(galera3)",
        ),
        ("t::test | galera30.beats(mygalera3)", ["galera3", "galera"], "t::test | galera30.beats(mygalera3)"),
    ],
)
def test_what_is_compared_is_taken_out_of_an_id(identity, words, left):
    """Wherever it is a word of its own, so that ids on two topologies or two storages are equal."""
    assert claim_id.without(identity, words) == left


def test_two_files_with_equal_tests_have_two_ids():
    """So have two methods of two classes."""
    tests = ("a/test_one.py::test_it", "a/test_two.py::test_it", "a/test_one.py::TestA::test_it")

    assert len({claim_id.key_of_test(test) for test in tests}) == len(tests)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (kinds.beats(), kinds.beats(0.5), True),
        (kinds.same_as(0.05), kinds.same_as(0.1), True),
        (kinds.beats(), kinds.no_slower_than(0.05), False),
        (kinds.beats(), kinds.differs(), False),
    ],
)
def test_a_margin_is_no_part_of_what_a_claim_is(first, second, same):
    """Its kind is, and its metric."""
    names = ("b", "a")

    assert (first.identity(names, "throughput") == second.identity(names, "throughput")) is same
    assert first.identity(names, "throughput") != first.identity(names, "p95")
    assert first.identity(names, "throughput") != first.identity(names[::-1], "throughput")
