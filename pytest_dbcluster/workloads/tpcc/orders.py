"""The orders that terminals report, acknowledged or of unknown outcome, compared with the tables.

A terminal reports the number of each order and a digest of its customer and lines (workloads/lua/tpcc_orders.lua). The
server computes the same digests from its tables, as sums of a thousand orders. Only if a sum differs do we read orders.
"""

from __future__ import annotations

import array
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import wait
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

Order = tuple[int, int, int]  # warehouse, district, order number; all from 1
CHUNK = 1000  # orders in one sum
CHUNKS = 50  # per round trip
MOST_SHOWN = 3  # orders in a message
TWICE = "two acknowledged orders have its number"

# The arithmetic of tpcc_orders.lua; MOD keeps it within 64 bits for any values in the columns.
PRIME = 2**31 - 1
TERM = f"MOD(MOD(({{}} * 128 + {{}}) * 65536 + {{}}, {PRIME}) * ({{}} * 65521 + 4099), {PRIME})"
OF_ORDER = TERM.format("o_c_id", "o_ol_cnt", "o_all_local", 0)
OF_LINE = TERM.format("ol_i_id", "ol_quantity", "ol_supply_w_id", "ol_number")


@dataclasses.dataclass(frozen=True)
class WrongOrder:
    """An acknowledged order that a node does not have, or an order of a node that no terminal reported."""

    order: Order
    """The warehouse, district and number of the order."""

    instead: str = ""
    """What the node has instead; empty if it has nothing."""

    digest: int = dataclasses.field(default=0, compare=False)
    """The digest of the acknowledged order. After a promotion, another order may have its number."""

    def __str__(self) -> str:
        text = "warehouse {}, district {}, order {}".format(*self.order)
        return f"{text} ({self.instead})" if self.instead else text


def some(wrong: Sequence[WrongOrder]) -> str:
    """The first MOST_SHOWN orders, for a message."""
    return "; ".join([*map(str, wrong[:MOST_SHOWN]), *(["..."] if len(wrong) > MOST_SHOWN else [])])


@dataclasses.dataclass(frozen=True)
class OrderRow:
    """An order in the tables of a node."""

    customer: int
    """The number of its customer."""

    lines: int
    """The number of its lines."""

    digest: int
    """The sum of the digests of the order and its lines, modulo ``PRIME``."""

    def __str__(self) -> str:
        return f"customer {self.customer}, lines: {self.lines}"


@dataclasses.dataclass(frozen=True)
class Stretch:
    """Successive orders of one district."""

    warehouse: int
    """The number of the warehouse."""

    district: int
    """The number of the district."""

    first: int
    """The first order number."""

    last: int = 2**31 - 1
    """The last order number."""

    def within(self, prefix: str, number: str) -> str:
        """The SQL condition for these orders. prefix: of the columns. number: the column with the order number."""
        district = f"{prefix}w_id = {self.warehouse} AND {prefix}d_id = {self.district}"
        return f"WHERE {district} AND {number} BETWEEN {self.first} AND {self.last}"

    @property
    def count(self) -> str:
        """The statement that counts these orders."""
        return f"SELECT COUNT(*) FROM {SCHEMA}.orders {self.within('o_', 'o_id')}"

    def rows(self, node: Node) -> dict[int, OrderRow]:
        """Order number -> the row of a node."""
        orders, lines = node.batch(
            [
                f"SELECT o_id, o_c_id, {OF_ORDER} FROM {SCHEMA}.orders {self.within('o_', 'o_id')}",
                f"SELECT ol_o_id, COUNT(*), SUM({OF_LINE}) FROM {SCHEMA}.order_line "
                f"{self.within('ol_', 'ol_o_id')} GROUP BY ol_o_id",
            ],
            wait.SLOW_SECONDS,
        )
        contents = {int(number): (int(count), int(digest)) for number, count, digest in lines}
        found = {}
        for number, customer, head in orders:
            count, digest = contents.get(int(number), (0, 0))
            found[int(number)] = OrderRow(customer, count, (int(head) + digest) % PRIME)
        return found


@dataclasses.dataclass(frozen=True)
class _Chunk:
    """Digests of the orders of a stretch."""

    stretch: Stretch
    digests: Sequence[int]

    @property
    def total(self) -> int:
        """The sum of the digests, each times its position, so that exchanged orders change it."""
        return sum(place * digest for place, digest in enumerate(self.digests, 1)) % PRIME

    @property
    def totals(self) -> list[str]:
        """Two statements whose second columns add up to the total, modulo PRIME; the first counts the orders."""
        before, within = self.stretch.first - 1, self.stretch.within
        return [
            f"SELECT COUNT(*), SUM({OF_ORDER} * (o_id - {before})) FROM {SCHEMA}.orders {within('o_', 'o_id')}",
            f"SELECT COUNT(*), SUM({OF_LINE} * (ol_o_id - {before})) FROM {SCHEMA}.order_line "
            f"{within('ol_', 'ol_o_id')}",
        ]

    def holds(self, orders: Sequence[tuple[Any, ...]], lines: Sequence[tuple[Any, ...]]) -> bool:
        """Whether these results of ``totals`` match."""
        ((count, first),), ((_, second),) = orders, lines
        return int(count) == len(self.digests) and (int(first or 0) + int(second or 0)) % PRIME == self.total

    def missing_on(self, node: Node) -> Iterator[WrongOrder]:
        """The orders that the node does not have, one by one."""
        rows = self.stretch.rows(node)
        for number, wanted in enumerate(self.digests, self.stretch.first):
            if problem := compare((self.stretch.warehouse, self.stretch.district, number), wanted, rows.get(number)):
                yield problem


def compare(order: Order, wanted: int, row: OrderRow | None) -> WrongOrder | None:
    """The difference between an order with this digest and its row; None if they match."""
    if row is None:
        return WrongOrder(order, digest=wanted)
    return None if row.digest == wanted else WrongOrder(order, f"the node has another one: {row}", wanted)


class Orders:
    """Orders with their digests, eight bytes each. Iteration yields them sorted, by district."""

    def __init__(self) -> None:
        self._districts: dict[tuple[int, int], array.array[int]] = {}

    def add(self, warehouse: int, district: int, pairs: Sequence[int]) -> None:
        """Add orders of a district: number, digest, number, digest, and so on."""
        own = self._districts.setdefault((warehouse, district), array.array("Q"))
        own.extend(number << 32 | digest for number, digest in zip(pairs[::2], pairs[1::2], strict=True))

    def discard(self, lost: Iterable[WrongOrder]) -> None:
        """Forget these orders, which are lost. Other orders with their numbers stay."""
        for wrong in lost:
            warehouse, district, number = wrong.order
            own, packed = self._districts.get((warehouse, district)), number << 32 | wrong.digest
            if own and packed in own:
                own.remove(packed)

    def of_district(self, warehouse: int, district: int) -> list[tuple[int, int]]:
        """The number and the digest of each order of a district, sorted."""
        return [
            (packed >> 32, packed & 0xFFFFFFFF) for packed in sorted(self._districts.get((warehouse, district), ()))
        ]

    @property
    def counts(self) -> dict[tuple[int, int], int]:
        """The number of orders by warehouse and district."""
        return {place: len(own) for place, own in self._districts.items() if own}

    def __len__(self) -> int:
        return sum(map(len, self._districts.values()))

    def __iter__(self) -> Iterator[Order]:
        for (warehouse, district), own in sorted(self._districts.items()):
            for packed in sorted(own):
                yield warehouse, district, packed >> 32

    def missing_on(self, node: Node) -> list[WrongOrder]:
        """The orders that a node does not have, sorted. Of two orders with the same number, one is lost."""
        twice = [order for order, several in itertools.groupby(self) if len(list(several)) > 1]
        found = [WrongOrder(order, TWICE) for order in twice]
        chunks = iter(self._chunks(set(twice)))
        while part := list(itertools.islice(chunks, CHUNKS)):
            rows = node.batch([statement for chunk in part for statement in chunk.totals], wait.SLOW_SECONDS)
            for chunk, orders, lines in zip(part, rows[::2], rows[1::2], strict=True):
                if not chunk.holds(orders, lines):
                    found += chunk.missing_on(node)
        return sorted(found, key=lambda one: one.order)

    def _chunks(self, without: set[Order]) -> Iterator[_Chunk]:
        for (warehouse, district), own in sorted(self._districts.items()):
            first, digests = 0, list[int]()
            for packed in sorted(own):
                number, digest = packed >> 32, packed & 0xFFFFFFFF
                if (warehouse, district, number) in without:
                    continue
                if digests and (number != first + len(digests) or len(digests) == CHUNK):
                    yield _chunk(warehouse, district, first, digests)
                    digests = []
                if not digests:
                    first = number
                digests.append(digest)
            if digests:
                yield _chunk(warehouse, district, first, digests)


def _chunk(warehouse: int, district: int, first: int, digests: Sequence[int]) -> _Chunk:
    return _Chunk(Stretch(warehouse, district, first, first + len(digests) - 1), digests)


def from_reports(reports: Iterable[Mapping[str, Any]], kind: str, into: Orders | None = None) -> Orders:
    """The orders of all terminals' reports. kind: ``committed``, or ``unknown`` if the COMMIT did not return."""
    orders = Orders() if into is None else into
    for report in reports:
        for warehouse, district, pairs in report["orders"][kind]:
            orders.add(warehouse, district, pairs)
    return orders
