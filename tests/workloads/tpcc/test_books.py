"""Books of orders: what is lost, invented, and there or gone of what nobody knows."""

from __future__ import annotations

import types

import pytest

from pytest_dbcluster.errors import ConfigError, NodeDied, NotReady
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.outages.load_times import LoadTimes
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import until_stopped
from pytest_dbcluster.workloads.tpcc import books
from pytest_dbcluster.workloads.tpcc.books import OrderBook
from pytest_dbcluster.workloads.tpcc.orders import TWICE, WrongOrder
from pytest_dbcluster.workloads.tpcc.workload import TPCC
from tests.support.facts import missing
from tests.workloads.tpcc.order_server import DISTRICT, OrderServer

FIRST = 3001
ALL = {number: number * 7919 for number in range(FIRST, FIRST + 40)}


def reports(committed=(), unknown=()):
    """The reports of one terminal: pairs of number and digest."""

    def parts(pairs):
        return [[*DISTRICT, [value for pair in pairs for value in pair]]] if pairs else []

    return [{"orders": {"committed": parts(list(committed)), "unknown": parts(list(unknown))}}]


def book(committed=(), unknown=()):
    """A book with the orders of one round."""
    made = OrderBook({DISTRICT: FIRST, (3, 5): FIRST})
    with made.round() as heard:
        heard(reports(committed, unknown))
    return made


def test_balanced_books_have_no_violation_and_read_no_rows():
    """Sums and counts are enough: one round trip each."""
    server = OrderServer({3000: 1, **ALL})
    balance = book(ALL.items()).balance(server)

    assert (balance.there, balance.expected, balance.violations) == (40, 40, [])
    assert server.asked == [2, 2]
    assert str(balance) == "40 acknowledged, 0 lost, 0 invented, 0 unknown and there, 0 unknown and gone"


def test_orders_of_unknown_outcome_are_there_or_gone():
    """The number of one that is gone is that of another order, which is acknowledged or unknown too."""
    there = {**ALL, 3050: 50, 3051: 51}
    unknown = [(3050, 50), (3051, 77), (3051, 51), (3002, 99), (3060, 60)]
    balance = book(ALL.items(), unknown).balance(OrderServer(there))

    assert (balance.unknown_there, balance.unknown_gone) == (2, 3)
    assert (balance.lost, balance.invented, balance.violations) == ([], [], [])
    assert balance.there == balance.expected == 42


def test_an_order_that_nobody_reported_is_invented():
    """Such as one that was written twice: its digest is known, its number is not."""
    balance = book(ALL.items()).balance(OrderServer({**ALL, 3041: ALL[3040]}))

    assert balance.invented == [WrongOrder((*DISTRICT, 3041), "customer 7, lines: 7")]
    assert balance.there == balance.expected == 41
    order, sums = balance.violations
    assert missing(order, "1 order on node1", "no terminal wrote, or wrote twice") == []
    assert order.endswith(": warehouse 3, district 4, order 3041 (customer 7, lines: 7)")
    counts = "40 acknowledged, 0 lost, 1 invented, 0 unknown and there, 0 unknown and gone"
    assert missing(sums, "the orders of node1", f": {counts}") == []


def test_lost_orders_are_told_with_the_first_ones():
    """Another order with the number of a lost one is invented."""
    lacks = {number: digest for number, digest in ALL.items() if number > 3004} | {3001: 5}
    balance = book(ALL.items()).balance(OrderServer(lacks))

    assert [wrong.order[2] for wrong in balance.lost] == [3001, 3002, 3003, 3004]
    assert [wrong.order[2] for wrong in balance.invented] == [3001]
    assert balance.there == balance.expected == 37
    assert balance.violations[0].startswith("4 of 40 acknowledged orders are lost on node1: warehouse 3, district 4, ")
    assert balance.violations[0].endswith("order 3003; ...")
    assert "40 acknowledged, 4 lost, 1 invented" in balance.violations[-1]


def test_of_two_acknowledged_orders_with_one_number_one_is_lost():
    """Both, if neither is there."""
    twice = book([*ALL.items(), (3040, 8)])

    assert twice.balance(OrderServer(ALL)).lost == [
        WrongOrder((*DISTRICT, 3040), "the node has another one: customer 7, lines: 7")
    ]
    assert twice.balance(OrderServer({**ALL, 3040: 8})).there == 40
    assert len(twice.balance(OrderServer({**ALL, 3040: 9})).lost) == 2
    again = book([*ALL.items(), (3040, ALL[3040])]).balance(OrderServer(ALL))
    assert again.lost == [WrongOrder((*DISTRICT, 3040), TWICE)]


def test_an_order_that_one_node_lacks_is_lost():
    """Whichever node it is: a host that lost its power may come back without what the others have."""
    lacks = OrderServer({number: digest for number, digest in ALL.items() if number != 3040})
    adds = OrderServer({**ALL, 3041: 5})

    for nodes in ([lacks, adds, OrderServer(ALL)], [OrderServer(ALL), adds, lacks]):
        found, gone = book(ALL.items()).balance_all(nodes)
        assert [wrong.order[2] for wrong in found.lost] == [3040]
        assert gone == []
        assert [wrong.order[2] for wrong in found.invented] == [3041]
        assert found.acknowledged == 40
    assert book(ALL.items()).balance_all([OrderServer(ALL)] * 3)[0].violations == []
    assert [wrong.order[2] for wrong in book(ALL.items()).balance_all([lacks, lacks])[1]] == [3040]


@pytest.mark.parametrize("there", [ALL[3040], 8])
def test_a_lost_order_is_forgotten_and_another_one_with_its_number_stays(there):
    """After a promotion, the new primary gives the number of a lost order to another one."""
    server, twice = OrderServer({**ALL, 3040: there}), book([*ALL.items(), (3040, 8)])
    twice.discard(twice.balance(server).lost)
    balance = twice.balance(server)

    assert (balance.acknowledged, balance.lost, balance.invented, balance.violations) == (40, [], [], [])


def test_figures_that_do_not_add_up_are_a_violation():
    """An order that is written while the books are compared."""

    class Growing(OrderServer):
        def batch(self, statements, *limit):
            found = super().batch(statements, *limit)
            self.has = {**self.has, 3041: 1}
            return found

    balance = book(ALL.items(), [(3090, 1)]).balance(Growing(dict(ALL)))
    made = books.OrderBalance("node2", 5, there=7)

    assert balance.violations
    figures, sums = made.violations
    assert missing(figures, "node2 has 7 orders", "books 5") == []
    counts = "5 acknowledged, 0 lost, 0 invented, 0 unknown and there, 0 unknown and gone"
    assert missing(sums, "the orders of node2", f": {counts}") == []


def test_without_all_reports_nothing_is_said_to_be_invented():
    """Lost orders are found as before; a run that could not begin changes nothing."""
    made = book(ALL.items())
    with pytest.raises(ConfigError), made.round():
        raise ConfigError("too many threads")
    assert made.whole
    with pytest.raises(NodeDied), made.round():
        raise NodeDied("node1", "was ended", "log", [])
    lacks = {number: digest for number, digest in ALL.items() if number != 3001}
    balance = made.balance(OrderServer({**lacks, 3099: 1}))

    assert (balance.there, balance.invented) == (None, [])
    assert [wrong.order[2] for wrong in balance.lost] == [3001]
    with made.round() as heard:
        heard(reports())
    assert not made.whole


def test_orders_of_a_cluster_are_kept_until_its_tables_are_dropped():
    """Over all rounds, from the number of the next order when the book was begun; other clusters have their own."""

    def cluster():
        node = types.SimpleNamespace(query=lambda sql: [(3, 4, 3011), (3, 5, 3001)])
        return types.SimpleNamespace(acknowledged={}, writers=[node])

    one, other = cluster(), cluster()
    for pair in ((3011, 5), (3012, 6)):
        with books.book_of(one).round() as heard:
            heard(reports([pair]))

    assert books.book_of(one).first == {(3, 4): 3011, (3, 5): 3001}
    assert list(books.book_of(one).acknowledged) == [(3, 4, 3011), (3, 4, 3012)]
    assert len(books.book_of(other).acknowledged) == 0
    books.forget(one)
    assert one.acknowledged == {}


def healthy(server, problems=()):
    """A cluster whose only node is this server."""
    return types.SimpleNamespace(spec="galera3", nodes=[server], problems=lambda: list(problems), backlog=list)


LEDGER = Ledger({"new_order": LedgerEntry(committed=1, unknown=3), "payment": LedgerEntry(unknown=1)})


def test_a_round_knows_what_became_of_its_unknown_orders():
    """They are looked up when the cluster has applied everything; those of other types are not."""
    left = reports([(3010, ALL[3010])], [(3011, ALL[3011]), (3012, 1), (3090, 1)])
    ledger = books.look_up(healthy(OrderServer(ALL)), LEDGER, left)

    assert ledger.entries["payment"] == LEDGER.entries["payment"]
    assert ledger.entries["new_order"] == LedgerEntry(committed=1, unknown=3, unknown_there=1, unknown_gone=2)
    assert ledger.total.unknown_gone == 2


def test_a_cluster_that_does_not_recover_is_not_asked(monkeypatch):
    """The outcomes stay unknown; without any nobody is asked."""
    server = OrderServer(ALL)
    monkeypatch.setattr(books, "LOOK_UP_SECONDS", 0.05)

    assert books.look_up(healthy(server, ["node1: not Synced"]), LEDGER, reports([], [(3011, 1)])) == LEDGER
    assert books.look_up(healthy(server), LEDGER, reports([(3011, 1)])) is LEDGER
    assert server.asked == []

    def died():
        raise NotReady("a node", 1, ["dead"])

    dead = types.SimpleNamespace(spec="galera3", nodes=[server], problems=died)
    assert books.look_up(dead, LEDGER, reports([], [(3011, 1)])) == LEDGER


class Districts(OrderServer):
    """The same, with the number of the district's next order."""

    def query(self, statement):
        """The next order comes after all that are there."""
        return [(*DISTRICT, max([*self.has, FIRST - 1]) + 1)]


def test_an_order_that_is_invented_in_an_event_is_reported_once(monkeypatch):
    """The books of the repetition have it. A new book of the cluster begins after it, for later checks."""
    server = Districts({})
    cluster = types.SimpleNamespace(nodes=[server], writers=[server], acknowledged={})
    told = reports(ALL.items())

    def observe(load, setting, **how):
        with books.book_of(cluster).round() as heard:
            heard(told)
        server.has |= {**ALL, 3041: ALL[3040]}
        return RunResult(1.0, 40), told

    monkeypatch.setattr(TPCC, "observe", observe)
    monkeypatch.setattr(until_stopped, "load_times", lambda reports, reading: LoadTimes(0.0, 1.0, {}))
    monkeypatch.setitem(told[0], "lost", 0)
    stopped = TPCC().run_until_stopped(types.SimpleNamespace(cluster=cluster), until_stopped.UntilStopped())
    found = stopped.balance()

    assert (found.acknowledged, found.lost, found.invented) == (40, 0, 1)
    assert books.book_of(cluster).balance(server).violations == []
