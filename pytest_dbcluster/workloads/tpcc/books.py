"""The books of orders: the New-Orders that terminals reported, compared with the tables of a node. They must balance.

Each acknowledged order must be in the tables; otherwise it is lost. Each other order in the tables must have an unknown
outcome: the connection broke at COMMIT, or the server was cut off from its peers. Otherwise the order is invented, for
example because it was written twice. An order of unknown outcome may be in the tables or not. We look it up by number
and digest. The next order of the district reuses the number of an order that is gone.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.rounds.ledger import Ledger
from pytest_dbcluster.workloads.tpcc import orders
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA
from pytest_dbcluster.workloads.tpcc.orders import TWICE, Order, Orders, Stretch, WrongOrder

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node

KIND = "new_order"
COUNTS = 100  # districts per round trip
LOOK_UP_SECONDS = 60.0  # timeout until a cluster has applied everything, so that a missing row is gone


@dataclasses.dataclass(frozen=True)
class OrderBalance:
    """The books of a node."""

    node: str
    """The name of the node."""

    acknowledged: int
    """Number of orders whose COMMIT returned."""

    lost: Sequence[WrongOrder] = ()
    """Acknowledged orders that the node does not have."""

    invented: Sequence[WrongOrder] = ()
    """Orders of the node that no terminal reported."""

    unknown_there: int = 0
    """Number of orders in the tables whose COMMIT did not return."""

    unknown_gone: int = 0
    """Number of orders whose COMMIT did not return and that are not in the tables."""

    there: int | None = None
    """Number of orders in the tables, counted by the server. None if a terminal left no report, because then we cannot
    find invented orders.
    """

    @property
    def expected(self) -> int:
        """The number of orders that the node should have by the other fields."""
        return self.acknowledged - len(self.lost) + self.unknown_there + len(self.invented)

    @property
    def violations(self) -> list[str]:
        """A line each for lost orders, invented orders and a wrong sum, and a line with all figures; or nothing."""
        found = []
        if self.lost:
            lost = f"{len(self.lost)} of {self.acknowledged} acknowledged orders are lost on {self.node}"
            found.append(f"{lost}: {orders.some(self.lost)}")
        if self.invented:
            invented = f"{quantity(len(self.invented), 'order')} on {self.node} that no terminal wrote, or wrote twice"
            found.append(f"{invented}: {orders.some(self.invented)}")
        if self.there not in (None, self.expected):
            found.append(f"{self.node} has {quantity(self.there or 0, 'order')}, and the books {self.expected}")
        return [*found, f"the orders of {self.node}: {self}"] if found else []

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} acknowledged, {len(self.lost)} lost, {len(self.invented)} invented, "
            f"{self.unknown_there} unknown and there, {self.unknown_gone} unknown and gone"
        )


class OrderBook:
    """The orders that terminals reported in all rounds since the book was started.

    first: warehouse and district -> the number of the next order at the start. whole: whether all rounds since then
    left their reports.
    """

    def __init__(self, first: Mapping[tuple[int, int], int]) -> None:
        self.first = dict(first)
        self.acknowledged = Orders()
        self.unknown = Orders()
        self.whole = True

    @classmethod
    def start(cls, node: Node) -> OrderBook:
        """Start a book for the rounds from now on; no other workload may write."""
        rows = node.query(f"SELECT d_w_id, d_id, d_next_o_id FROM {SCHEMA}.district")
        return cls({(int(warehouse), int(district)): int(number) for warehouse, district, number in rows})

    @contextlib.contextmanager
    def round(self) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
        """The context of a round. It yields the function that takes the reports; without them ``whole`` is False."""
        before, self.whole = self.whole, False

        def add(reports: Sequence[Mapping[str, Any]]) -> None:
            orders.from_reports(reports, "committed", into=self.acknowledged)
            orders.from_reports(reports, "unknown", into=self.unknown)
            self.whole = before

        try:
            yield add
        except ConfigError:  # nothing was started
            self.whole = before
            raise

    def discard(self, lost: Iterable[WrongOrder]) -> None:
        """Forget acknowledged orders that are known to be lost: other orders get their numbers."""
        self.acknowledged.discard(lost)

    def balance(self, node: Node) -> OrderBalance:
        """Compare the book with a node that has applied everything. Reads only the districts that differ."""
        lost = self.acknowledged.missing_on(node)
        counts = self._counts(node)
        acknowledged = self.acknowledged.counts
        doubtful = {wrong.order[:2] for wrong in lost} | self.unknown.counts.keys()
        doubtful |= {place for place, count in counts.items() if count != acknowledged.get(place, 0)}
        parts = [self.district(node, *place) for place in sorted(doubtful)]
        return OrderBalance(
            node.name,
            len(self.acknowledged),
            [wrong for part in parts for wrong in part.lost],
            [wrong for part in parts for wrong in part.invented] if self.whole else [],
            sum(part.unknown_there for part in parts),
            sum(part.unknown_gone for part in parts),
            sum(counts.values()) if self.whole else None,
        )

    def balance_all(self, nodes: Sequence[Node]) -> tuple[OrderBalance, Sequence[WrongOrder]]:
        """Compare the book with each node. Lost is what any node lacks, invented what any node has.

        The other figures are those of the last node. Returns also the lost orders that no node has.
        """
        with wait.threads(len(nodes)) as asking:
            found = list(asking.map(self.balance, nodes))
        lost = {(wrong.order, wrong.digest): wrong for one in found for wrong in one.lost}
        invented = {wrong.order: wrong for one in found for wrong in one.invented}
        gone = [key for key in lost if all(key in [(wrong.order, wrong.digest) for wrong in one.lost] for one in found)]
        whole = dataclasses.replace(found[-1], lost=[*lost.values()], invented=[*invented.values()])
        return whole, [lost[key] for key in gone]

    def _counts(self, node: Node) -> dict[tuple[int, int], int]:
        """The number of orders of each district on a node since the start of the book."""
        found = dict[tuple[int, int], int]()
        districts = sorted(self.first.items())
        for start in range(0, len(districts), COUNTS):
            places = districts[start : start + COUNTS]
            answers = node.batch([Stretch(*place, number).count for place, number in places], wait.SLOW_SECONDS)
            found |= {place: int(rows[0][0]) for (place, _), rows in zip(places, answers, strict=True)}
        return found

    def district(self, node: Node, warehouse: int, district: int) -> OrderBalance:
        """The books of one district, order by order, without the count of acknowledged orders."""
        rows = Stretch(warehouse, district, self.first.get((warehouse, district), 1)).rows(node)
        lost, taken = list[WrongOrder](), set[int]()
        for number, digest in self.acknowledged.of_district(warehouse, district):
            order: Order = (warehouse, district, number)
            if number in taken:
                lost.append(WrongOrder(order, TWICE, digest))
            elif problem := orders.compare(order, digest, rows.get(number)):
                lost.append(problem)
            else:
                taken.add(number)
        there, gone = 0, 0
        for number, digest in self.unknown.of_district(warehouse, district):
            if number not in taken and number in rows and rows[number].digest == digest:
                there += 1
                taken.add(number)
            else:
                gone += 1
        invented = [
            WrongOrder((warehouse, district, number), str(row)) for number, row in rows.items() if number not in taken
        ]
        return OrderBalance(node.name, 0, lost, invented, there, gone)


def book_of(cluster: Cluster) -> OrderBook:
    """The book of a cluster since it loaded its tables, or since its first round with loaded tables."""
    if SCHEMA not in cluster.acknowledged:
        cluster.acknowledged[SCHEMA] = OrderBook.start(cluster.writers[0])
    book: OrderBook = cluster.acknowledged[SCHEMA]
    return book


def forget(cluster: Cluster) -> None:
    """Forget the orders of a cluster that drops its tables."""
    cluster.acknowledged.pop(SCHEMA, None)


def look_up(cluster: Cluster, ledger: Ledger, reports: Sequence[Mapping[str, Any]]) -> Ledger:
    """Add to the ledger of a round which New-Orders of unknown outcome are in the tables, and which are gone.

    Waits until the cluster is healthy and has applied everything; if that does not happen, it adds nothing.
    """
    asked = OrderBook({})
    with asked.round() as heard:
        heard(reports)
    if not len(asked.unknown):
        return ledger
    asked.first = {place: asked.unknown.of_district(*place)[0][0] for place in asked.unknown.counts}
    try:
        wait.until(
            lambda: cluster.problems() or cluster.backlog(),
            f"cluster {cluster.spec}, to look up {quantity(len(asked.unknown), 'order')} of unknown outcome,",
            seconds=LOOK_UP_SECONDS,
        )
    except ProvisionError:
        return ledger
    parts = [asked.district(cluster.nodes[-1], *place) for place in asked.first]
    there, gone = sum(part.unknown_there for part in parts), sum(part.unknown_gone for part in parts)
    entry = dataclasses.replace(ledger.entries[KIND], unknown_there=there, unknown_gone=gone)
    return dataclasses.replace(ledger, entries={**ledger.entries, KIND: entry})
