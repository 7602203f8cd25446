"""The comparison of what servers did, on made-up observations."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.measuring.why.comparison import compare_servers, has_moved
from pytest_dbcluster.measuring.why.observation import ObservedVariant, PlanStep
from tests.support.facts import missing
from tests.support.observations import BY_KEY, BY_SCAN, CUSTOMER, LOG, PRODUCT, observed


def test_a_dropped_index_comes_first():
    """Even if another statement lost more time, because the scans keep the CPU busy."""
    found = compare_servers(observed(), observed("unindexed", customer=0.9, rows=2000, product=2.0, plan=BY_SCAN))
    first, second, *_ = found.largest

    plans = ("indexed key email of customers (const)", "unindexed full scan of customers, about 2000 rows")
    assert missing(first, CUSTOMER, *plans, "0.05", "0.9", "18", "rows examined 1 v 2000") == []
    assert missing(second, PRODUCT, "0.04", "2") == []
    assert found.statements[0].statement == CUSTOMER
    assert found.statements[0].has_other_plan
    assert not found.statements[1].has_other_plan


def test_an_added_index_comes_first_too():
    """The direction of the difference does not matter."""
    found = compare_servers(observed("unindexed", customer=0.9, rows=2000, plan=BY_SCAN), observed())

    assert missing(found.largest[0], CUSTOMER, "full scan of customers", "key email of customers", "2000 v 1") == []


def test_another_plan_without_an_effect_is_in_the_table_only():
    """It takes as long and reads as many rows."""
    found = compare_servers(observed(), observed("other", plan=dataclasses.replace(BY_KEY, extra="Using where")))

    assert found.largest == ()
    assert [one.statement for one in found.statements if one.has_other_plan] == [CUSTOMER]


def test_the_largest_time_comes_first_if_no_plan_differs():
    """Statements and waits have one order; waits that repeat the time of statements are left out."""
    found = compare_servers(observed(), observed("slow", product=0.5, wait=3.0))

    assert [text.partition(":")[0] for text in found.largest] == [LOG, PRODUCT]
    assert [one.name for one in found.waits if one.moved] == [LOG]


def test_status_follows_what_takes_time():
    """The largest ratio comes first; readings such as dirty pages do not count anything."""
    status = {"innodb_data_fsyncs": 1000.0, "handler_read_rnd_next": 5e6, "innodb_buffer_pool_pages_dirty": 9e9}
    other = observed("slow", wait=3.0, status=status)
    found = compare_servers(observed(status={"handler_read_rnd_next": 0.0}), other)

    assert [text.partition(":")[0] for text in found.largest] == [LOG, "handler_read_rnd_next", "innodb_data_fsyncs"]
    assert missing(found.largest[1], "0 v 50000 per operation", "from 0") == []
    assert [one.name for one in found.status] == ["handler_read_rnd_next", "innodb_data_fsyncs"]


def test_rare_status_is_not_compared():
    """Two fsyncs instead of one in all rounds are no difference."""
    found = compare_servers(observed(status={"innodb_rare": 1.0}), observed("other", status={"innodb_rare": 2.0}))

    assert found.status == ()


def test_equal_servers_have_no_difference():
    """The line says so."""
    found = compare_servers(observed(), observed("other"), ["statements sent as text"])
    (line,) = found.lines

    assert missing(line, "indexed v other", "3 extra rounds of each", "statements sent as text", "no statement") == []


def test_a_statement_of_one_variant_is_compared_with_nothing():
    """Its ratio says from where it came."""
    other = observed("other")
    added = [
        dataclasses.replace(
            done,
            counts=dataclasses.replace(
                done.counts, statements={**done.counts.statements, "DO ?": done.counts.statements[CUSTOMER]}
            ),
        )
        for done in other.rounds
    ]
    found = compare_servers(observed(), ObservedVariant("other", tuple(added), {}))

    assert missing(found.largest[0], "DO ?", "from 0") == []


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"key": "name"}, True),
        ({"access": "ref"}, True),
        ({"table": "clients"}, True),
        ({"rows": 9}, False),
        ({"rows": 10}, True),
        ({"extra": " Using index "}, False),
        ({"extra": "Using index; Using filesort"}, True),
    ],
)
def test_plans_differ_in_access_keys_magnitude_and_extra(change, differs):
    """The number of rows is an estimate, so only its order of magnitude counts."""
    found = compare_servers(observed(), observed("other", plan=dataclasses.replace(BY_KEY, **change)))

    assert [one.has_other_plan for one in found.statements if one.statement == CUSTOMER] == [differs]


def test_only_differing_steps_of_a_plan_are_shown():
    """The plan of a join is long; an added step shows all of them."""
    joined = PlanStep("orders", "ref", "customer_id", 3, "")
    one, other = observed(), observed("unindexed", customer=0.9, rows=2000)
    of_join = (
        dataclasses.replace(one, plans={CUSTOMER: (joined, BY_KEY)}),
        dataclasses.replace(other, plans={CUSTOMER: (joined, BY_SCAN)}),
    )

    assert missing(compare_servers(*of_join).largest[0], "full scan of customers") == []
    assert "orders" not in compare_servers(*of_join).largest[0]
    longer = compare_servers(of_join[0], dataclasses.replace(other, plans={CUSTOMER: (BY_SCAN,)}))
    assert (
        missing(longer.largest[0], "key customer_id of orders (ref), about 3 rows, then key email of customers") == []
    )


def test_a_figure_moves_if_no_rounds_overlap():
    """And if the means differ by more than a tenth."""
    assert has_moved([1.0, 1.1, 1.2], [1.5, 1.6, 1.7])
    assert has_moved([1.5, 1.6, 1.7], [1.0, 1.1, 1.2])
    assert not has_moved([1.0, 1.1, 1.6], [1.5, 1.6, 1.7])
    assert not has_moved([1.0, 1.0], [1.05, 1.05])
    assert not has_moved([0.0, 0.0], [0.0, 0.0])
