"""A server that has the orders of one district, for tests of what is looked up."""

from __future__ import annotations

import itertools

from pytest_dbcluster.workloads.tpcc.orders import Orders

DISTRICT = (3, 4)


class OrderServer:
    """Answers as a server that has the orders of one district, number -> digest, and as many lines as it has orders."""

    def __init__(self, has):
        self.has = has
        self.name = "node1"
        self.asked = []

    def batch(self, statements, *limit):
        """The rows of each statement; all of a digest comes from the lines."""
        self.asked.append(len(statements))
        return [self._rows(statement) for statement in statements]

    def _rows(self, statement):
        low, high = map(int, statement.partition(" BETWEEN ")[2].split(" GROUP ")[0].split(" AND "))
        of_district = f"w_id = {DISTRICT[0]} AND " in statement and f"d_id = {DISTRICT[1]} AND " in statement
        there = {number: digest for number, digest in self.has.items() if low <= number <= high and of_district}
        lines = "order_line" in statement
        if statement.startswith("SELECT COUNT(*) FROM"):
            return [(len(there),)]
        if statement.startswith("SELECT COUNT"):
            total = sum((number - low + 1) * digest for number, digest in there.items()) if lines else 0
            return [(len(there), total or None)]
        return [(number, 7, digest if lines else 0) for number, digest in there.items()]


def those(digests):
    """The orders with these digests, number -> digest."""
    made = Orders()
    made.add(*DISTRICT, list(itertools.chain.from_iterable(digests.items())))
    return made
