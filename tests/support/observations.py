"""Extra rounds of made-up servers, for the tests of what compares them."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.measuring.why.comparison import compare_servers
from pytest_dbcluster.measuring.why.observation import (
    ObservedRound,
    ObservedVariant,
    PlanStep,
    ServerCounts,
    StatementCounts,
)

CUSTOMER = "select id from customers where email = ?"
PRODUCT = "select name from products where id = ?"
LOG = "wait/io/file/innodb/innodb_log_file"
RUN = ("dispatch_command", "run_statement")
BY_KEY = PlanStep("customers", "const", "email", 1, "Using index")
BY_SCAN = PlanStep("customers", "ALL", "", 2000, "Using where")
BY_ID = PlanStep("products", "const", "PRIMARY", 1, "")


def counts(ms, rows=1.0):
    """What 100 calls take, each so many milliseconds and rows."""
    return StatementCounts(calls=100, seconds=0.1 * ms, rows_examined=100 * rows, rows_sent=100)


def observed(name="indexed", customer=0.05, rows=1.0, product=0.04, *, plan=BY_KEY, wait=0.2, status=None, rounds=3):
    """A variant with rounds of 100 operations, each with both statements; the times are milliseconds of a call."""
    many = tuple(
        ObservedRound(
            100,
            ServerCounts(
                {CUSTOMER: counts(customer * growth, rows), PRODUCT: counts(product * growth)},
                {LOG: 0.1 * wait * growth, "idle": 100.0 * growth, "wait/io/table/sql/handler": customer * growth},
                {"innodb_data_fsyncs": 100.0, "innodb_buffer_pool_pages_dirty": 50.0, **(status or {})},
            ),
        )
        for growth in (1.0, 1.02, 0.98, 1.01)[:rounds]
    )
    return ObservedVariant(name, many, {CUSTOMER: (plan,), PRODUCT: (BY_ID,)})


def unindexed_comparison():
    """The comparison of a variant with an index, and of one without it, with the CPU time of some functions."""
    slow = observed("unindexed", customer=0.9, rows=2000, plan=BY_SCAN, status={"innodb_data_fsyncs": 300.0})
    read, send = (*RUN, "read_rows"), (*RUN, "send_rows")
    one, other = (
        dataclasses.replace(one, stacks={RUN: 1e-5, read: 1e-3 * reading, send: 2e-5})
        for one, reading in ((observed(), 0.04), (slow, 0.8))
    )
    return compare_servers(one, other, ["statements sent as text"])
