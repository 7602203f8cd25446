"""What the kernel has set for a link: how it is read, and when it is not what was asked."""

from __future__ import annotations

import dataclasses
import json

import pytest

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.network import kernel_settings
from pytest_dbcluster.network import KernelSettings, LinkShape
from tests.support.facts import missing

PAIR = ("node1", "node2")
ASKED = LinkShape(rtt=0.04, loss=0.05, jitter=0.02, rate=2e7)
# What tc of iproute2 7.3 printed in a guest.
NETEM = """{"kind":"netem","handle":"11:","dev":"vec0","parent":"1:1","options":{"limit":100000,
"delay":{"delay":0.01993,"jitter":0.01,"correlation":0},"loss-random":{"loss":0.05,"correlation":0},"rate":{"rate":2500000,"packetoverhead":0,
"cellsize":0,"celloverhead":0},"seed":16529289880780638213,"ecn":false,"gap":0},"bytes":3826,"packets":68,"drops":2}"""
OTHERS = """{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{},"bytes":0,"packets":0},
{"kind":"prio","handle":"1:","dev":"vec0","root":true,"refcnt":2,"options":{"bands":16,"priomap":[15,15],
"multiqueue":false},"bytes":4022,"packets":70,"drops":2,"overlimits":0,"requeues":0,"backlog":0,"qlen":0}"""


def test_what_is_set_each_way_is_read_as_it_is_asked():
    """The jitter is that of a round trip, and the rate is in bits; queues of other kinds are left out."""
    found = kernel_settings.read(f"[{OTHERS},{NETEM}]")

    assert found == {("vec0", "1:1"): KernelSettings(loss=0.05, jitter=0.02, rate=2e7)}
    assert str(found["vec0", "1:1"]) == "loss 5 %, jitter 20 ms, rate 20 Mbit/s"


def test_what_is_not_set_is_not_printed():
    """Only a queue through which packets went is known to be that of a link."""
    queue = json.loads(NETEM) | {"options": {"limit": 100000, "ecn": False, "gap": 0}}

    assert kernel_settings.read(json.dumps([queue])) == {("vec0", "1:1"): KernelSettings()}
    assert kernel_settings.read(json.dumps([queue | {"packets": 0}])) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Option -j is unknown",
        "[qdisc netem 11: dev vec0 parent 1:1]",
        '{"kind": "netem"}',
        NETEM.replace("jitter", "varies").join("[]"),
        NETEM.replace('{"rate":2500000', '{"bits":2500000').join("[]"),
        NETEM.replace('"packets":68,', "").join("[]"),
    ],
)
def test_a_text_of_another_form_is_an_error(text):
    """It is not taken for a link without settings. The message has the command, the versions and the text."""
    with pytest.raises(ProvisionError, match=r"^tc -s -j qdisc show did not print .* 5\.3 .*: ") as caught:
        kernel_settings.read(text)
    assert str(caught.value).endswith(repr(text[:300]))


@pytest.mark.parametrize(
    ("have", "facts"),
    [
        ({}, ()),
        ({"loss": 0.0500000012, "jitter": 0.0200001, "rate": 19999992.0}, ()),
        ({"loss": 0.0501}, ("loss 5 % was asked", "has 5.01 % set")),
        ({"loss": 0.0}, ("loss 5 % was asked", "has 0 % set")),
        ({"jitter": 0.01}, ("jitter 20 ms was asked", "has 10 ms set")),
        ({"rate": 2e6}, ("rate 20 Mbit/s was asked", "has 2 Mbit/s set")),
        ({"rate": None}, ("rate 20 Mbit/s was asked", "has no limit set")),
    ],
)
def test_each_way_has_what_was_asked(have, facts):
    """Up to the steps of the kernel and the digits of tc. The message names the ends, what was asked, what is set."""
    right = KernelSettings(loss=0.05, jitter=0.02, rate=2e7)
    ways = {PAIR: right, PAIR[::-1]: dataclasses.replace(right, **have)}

    reason = kernel_settings.wrong(PAIR, ASKED, ways)
    assert bool(reason) is bool(facts)
    assert not facts or missing(reason, "from node2 to node1", *facts) == []


@pytest.mark.parametrize(
    ("asked", "have", "facts"),
    [
        (LinkShape(rtt=0.01), KernelSettings(rate=8.0), ("rate no limit was asked", "has 8e-06 Mbit/s set")),
        (LinkShape(loss=1e-12), KernelSettings(), ("loss 1e-10 % was asked", "has 0 % set")),
        (LinkShape(jitter=1e-6), KernelSettings(), ("jitter 0.001 ms was asked", "has 0 ms set")),
    ],
)
def test_nothing_is_not_the_same_as_very_little(asked, have, facts):
    """What the kernel cannot set is an error, and what nobody asked for too."""
    ways = dict.fromkeys((PAIR, PAIR[::-1]), have)

    assert missing(kernel_settings.wrong(PAIR, asked, ways), "from node1 to node2", *facts) == []


def test_packets_that_pass_no_queue_are_an_error():
    """Then nothing is set for them."""
    ways = {PAIR: KernelSettings()}

    assert missing(kernel_settings.wrong(PAIR, LinkShape(), ways), "from node2 to node1", "no queue") == []
