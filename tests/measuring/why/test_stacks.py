"""Stacks of two variants: what is compared of them, and what is too little to be shown."""

from __future__ import annotations

import pytest

from pytest_dbcluster.measuring.why import wording
from pytest_dbcluster.measuring.why.stacks import ComparedStack, compare_stacks, function_times

RUN, READ, SORT = ("run",), ("run", "read"), ("run", "sort")


def test_each_function_has_its_time_on_both_variants():
    """A function that only one variant has takes no time on the other one."""
    found = compare_stacks({RUN: 1e-3, READ: 4e-3}, {RUN: 1e-3, SORT: 2e-3})

    assert found == (
        ComparedStack(RUN, 1e-3, 1e-3),
        ComparedStack(READ, 4e-3, 0.0),
        ComparedStack(SORT, 0.0, 2e-3),
    )


def test_a_function_with_little_time_counts_for_its_caller():
    """Little on both variants, with all that it calls; what only one variant has enough of stays."""
    small, inner = (*READ, "compare"), (*READ, "compare", "copy")
    little = {READ: 1.0, small: 0.002, inner: 0.001}

    (alone,) = compare_stacks(little, little)
    assert (alone.functions, alone.baseline) == (READ, pytest.approx(1.003))
    kept = compare_stacks(little, {READ: 1.0, inner: 0.5})
    assert [one.functions for one in kept] == [READ, small, inner]
    assert sum(one.candidate for one in kept) == pytest.approx(1.5)


def test_a_function_is_summed_over_its_callers():
    """The largest difference comes first, whichever variant has more; a function that calls itself counts once."""
    twice = (("a", "copy"), ("b", "copy"), ("b", "b"))
    stacks = compare_stacks(dict.fromkeys(twice, 1.0), {twice[0]: 3.0, twice[1]: 2.0, twice[2]: 0.5})

    assert [(one.name, one.baseline, one.candidate) for one in function_times(stacks)] == [
        ("copy", 2.0, 5.0),
        ("b", 1.0, 0.5),
    ]


def test_a_sentence_names_the_function_that_differs_most():
    """With the whole time of the servers, per operation."""
    stacks = compare_stacks({READ: 1e-3, SORT: 1e-3}, {READ: 5e-3, SORT: 1e-3})

    assert wording.cpu(stacks) == (
        "CPU of the servers: 2 v 6 ms per operation (3.00x); most different: read, 1 v 5 ms per operation (5.00x)"
    )
    unnamed = compare_stacks({("[mysqld]",): 1e-3}, {("[mysqld]",): 2e-3})
    assert "most different: functions without a name in mysqld, 1 v 2 ms" in wording.cpu(unnamed)
    assert wording.cpu(()) == ""
