"""Loss, jitter and rate of a link: what is measured, what is as asked, and what is said."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from pytest_dbcluster.hosts.network import traffic
from pytest_dbcluster.hosts.network.traffic import Figure, Pings, Traffic
from pytest_dbcluster.network import Shape

SHAPE = Shape(rtt=0.02, loss=0.02, jitter=0.004)
PAIR = ("node1", "node2")


def pinged(shape, count=1000, seed=1):
    """Pings on a link that is as this shape says."""
    draw = random.Random(seed)

    def way():
        return max(0.0, shape.rtt / 2 + draw.uniform(-1, 1) * shape.jitter / 2)

    kept = [way() + way() for _ in range(count) if draw.random() > shape.loss and draw.random() > shape.loss]
    return Pings(count, tuple(kept))


@dataclasses.dataclass
class Link:
    """A link that is as this shape says, and notes what it is asked."""

    shape: Shape
    asked: list[tuple[int, float]] = dataclasses.field(default_factory=list)

    def pings(self, pair, count, interval):
        """As the shape says."""
        self.asked.append((count, interval))
        return pinged(self.shape, count)

    def throughput(self, pair, rate, loss):
        """At the rate of the link, or as fast as packets are sent."""
        return min(self.shape.rate or math.inf, 1.3 * rate)


def test_the_loss_is_that_of_one_way():
    """A ping needs both ways; most links that are as asked lie in their interval."""
    found = [traffic.lost(SHAPE, pinged(SHAPE, seed=seed)) for seed in range(100)]

    assert sum(one.measured for one in found) / 100 == pytest.approx(0.02, rel=0.1)
    assert sum(one.beyond(0.0) for one in found) <= 1
    assert traffic.lost(SHAPE, Pings(100, ())).measured == 1.0


@pytest.mark.parametrize("rtt", [0.02, 0.005, 0.001, 0.0])
def test_the_jitter_is_how_far_a_round_trip_varies(rtt):
    """Also where it is longer than the delay, which cannot be less than nothing."""
    shape = Shape(rtt=rtt, jitter=0.004)
    found = [traffic.varied(shape, pinged(shape, seed=seed)) for seed in range(50)]

    assert sum(one.measured for one in found) / 50 == pytest.approx(0.004, rel=0.05)
    assert not any(one.beyond(0.0002) for one in found)
    assert all(one.low < one.measured < one.high for one in found)


def test_a_link_without_an_answer_has_any_jitter():
    """It is the loss that tells of it."""
    found = traffic.varied(SHAPE, Pings(100, ()))

    assert (math.isnan(found.measured), found.low, found.high) == (True, 0.0, math.inf)
    assert not found.beyond(0.0)


@pytest.mark.parametrize(
    ("real", "said"),
    [
        ({}, ""),
        ({"loss": 0.08}, "lose "),
        ({"jitter": 0.010}, "have round trips that vary by "),
        ({"jitter": 0.0}, "have round trips that vary by 0.00 ms"),
        ({"loss": 0.0, "jitter": 0.0}, "lose 0 % (0 .. 0.38) of the packets each way, and 2 % were asked"),
    ],
)
def test_a_link_is_wrong_where_chance_does_not_explain_it(real, said):
    """Each property is told with what was asked."""
    wrong = traffic.measured(Link(dataclasses.replace(SHAPE, **real)), PAIR, SHAPE).wrong()

    assert wrong.startswith(said)
    assert bool(wrong) is bool(said)


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (1e8, ""),
        (9.1e7, ""),
        (8e7, "carry 80 Mbit/s, and 100 Mbit/s were asked"),
        (None, "carry 130 Mbit/s, and 100 Mbit/s were asked"),
    ],
)
def test_a_rate_is_wrong_beyond_a_tenth(rate, said):
    """Slower, where the machine cannot carry so much, or faster."""
    assert traffic.measured(Link(Shape(rate=rate)), PAIR, Shape(rate=1e8)).wrong() == said


def test_a_machine_that_stops_for_a_moment_changes_no_rate():
    """What came meanwhile comes at once, or is lost."""
    evenly = [(number, 0.01 * number) for number in range(100)]
    late = [(number, max(at, 0.3) if number > 10 else at) for number, at in evenly]
    short = [(number, at) for number, at in evenly if not 20 < number < 50]

    assert [traffic.speed(one, 1000.0) for one in (evenly, late, short)] == [pytest.approx(1e5, rel=0.05)] * 3


def test_only_what_was_asked_is_measured():
    """Each takes about half a second."""
    link = Link(Shape())
    found = traffic.measured(link, PAIR, Shape(rtt=0.02))

    assert (found, link.asked) == (Traffic(), [])


def test_pings_leave_room_on_a_slow_link():
    """They would wait for each other; where the jitter is measured, each is alone on its way."""
    link = Link(Shape(rtt=0.02, loss=0.02, jitter=0.004, rate=1e5))
    traffic.measured(link, PAIR, link.shape)
    (lossy, jittery) = link.asked

    assert lossy == (25, pytest.approx(0.0196))
    assert jittery == (62, pytest.approx(0.024))
    assert traffic.measured(together := Link(SHAPE), PAIR, SHAPE)
    assert together.asked == [(1000, 0.0005)]
    assert traffic.measured(Link(SHAPE), PAIR, SHAPE).loss.measured == pytest.approx(0.02, abs=0.015)


def test_what_was_asked_and_measured_is_said():
    """With intervals where there are some, before the rounds and after them."""
    before = Traffic(Figure(0.01, 0.0112, 0.004, 0.024), None, Figure(1e8, 9.91e7))
    after = Traffic(Figure(0.01, 0.009, 0.002, 0.02), None, Figure(1e8, 1e8))

    assert traffic.both([before, after]) == [
        "loss 1 % asked, 1.1 % (0.4 .. 2.4) and 0.9 % (0.2 .. 2) measured",
        "rate 100 Mbit/s asked, 99.1 Mbit/s and 100 Mbit/s measured",
    ]
    assert traffic.both([Traffic(jitter=Figure(0.002, 0.0021, 0.0019, 0.0024))]) == [
        "jitter 2.00 ms asked, 2.10 ms (1.90 ms .. 2.40 ms) measured"
    ]
    assert traffic.both([]) == []
