"""What a router is told: lines for ``ip`` and ``tc``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_dbcluster.hosts.network.router import Port, Router
from pytest_dbcluster.network import KernelSettings, NetworkNeeds


class Noted(Router):
    """A router that forwards nothing, and notes what ``tc`` is told."""

    def __init__(self, ends: Sequence[str]) -> None:
        self.ports = [
            Port(number, end, f"10.0.0.{number}", f"02::{number}", f"04::{number}")
            for number, end in enumerate(ends, start=1)
        ]
        self.told: list[str] = []
        self.shown = "[]"

    @staticmethod
    def interface(port):
        """Named after the port."""
        return f"p{port.number}"

    def start(self, ports):
        """Nothing to start."""

    def tc(self, lines):
        """Note them."""
        self.told = list(lines)

    def show_queues(self):
        """What the test says."""
        return self.shown

    def why_lost(self):
        """Never."""
        return ""

    def close(self):
        """Nothing to end."""


def test_a_router_is_told_where_each_end_is():
    """It never asks: an answer would be delayed, and come at times that nobody chose."""
    assert Noted(["node1", "node2"]).forwarding()[3:] == [
        "link set dev p2 up",
        "route replace 10.0.0.2/32 dev p2",
        "neighbour replace 10.0.0.2 lladdr 02::2 dev p2 nud permanent",
    ]


def test_each_port_has_a_queue_for_each_other_end():
    """A queue delays all that passes it, and links of one end may differ."""
    lines = Noted(["node1", "node2", "client"]).queues()

    assert [line for line in lines if " dev p3 " in line] == [
        "qdisc add dev p3 root handle 1: prio bands 16 priomap 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15",
        "qdisc add dev p3 parent 1:1 handle 11: netem limit 100000 delay 0us 0us loss 0% rate 0bit",
        "qdisc add dev p3 parent 1:2 handle 12: netem limit 100000 delay 0us 0us loss 0% rate 0bit",
        "filter add dev p3 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.1/32 flowid 1:1",
        "filter add dev p3 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.2/32 flowid 1:2",
    ]


def test_half_of_a_round_trip_is_waited_for_each_way():
    """All values are told each time, since a queue keeps what is left out."""
    router = Noted(["node1", "node2", "node3"])
    router.shape(NetworkNeeds(0.005, loss=0.01, jitter=0.001, rate=1e8, links=((("node1", "node3"), 0.02),)))
    varied = "500us loss 1% rate 100000000bit"

    assert router.told == [
        f"qdisc change dev p1 parent 1:1 handle 11: netem limit 100000 delay 2500us {varied}",
        f"qdisc change dev p1 parent 1:2 handle 12: netem limit 100000 delay 10000us {varied}",
        f"qdisc change dev p2 parent 1:1 handle 11: netem limit 100000 delay 2500us {varied}",
        f"qdisc change dev p2 parent 1:2 handle 12: netem limit 100000 delay 2500us {varied}",
        f"qdisc change dev p3 parent 1:1 handle 11: netem limit 100000 delay 10000us {varied}",
        f"qdisc change dev p3 parent 1:2 handle 12: netem limit 100000 delay 2500us {varied}",
    ]


def test_a_router_knows_which_queue_is_of_which_way():
    """By the port's interface and the number of the queue, in hexadecimal digits; others are left out."""
    router = Noted([f"node{number}" for number in range(1, 12)])
    queue = {"kind": "netem", "packets": 1, "options": {}}
    router.shown = json.dumps([queue | {"dev": "p11", "parent": "1:a"}, queue | {"dev": "p2", "parent": "1:f"}])

    assert router.settings() == {("node10", "node11"): KernelSettings()}
