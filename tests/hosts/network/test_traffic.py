"""Loss, jitter and rate of a link: what is measured, what is as asked, what is unknown, and what is said."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from pytest_dbcluster.hosts.network import traffic
from pytest_dbcluster.hosts.network.traffic import Burst, Figure, Pings, Traffic
from pytest_dbcluster.network import REST, NetworkNeeds, Shape

SHAPE = Shape(rtt=0.02, loss=0.02, jitter=0.004)
LOSSY, FAST = NetworkNeeds(rtt=0.02, loss=0.02, jitter=0.004), NetworkNeeds(rtt=0.005, rate=1e8)
PAIR = ("node1", "node2")


def pinged(shape, count=1000, seed=1, noise=0.0):
    """Pings on a link that is as this shape says, on a machine that delays each by up to ``noise`` seconds."""
    draw = random.Random(seed)

    def way():
        return max(0.0, shape.rtt / 2 + draw.uniform(-1, 1) * shape.jitter / 2)

    kept = [
        way() + way() + draw.uniform(0, noise)
        for _ in range(count)
        if draw.random() > shape.loss and draw.random() > shape.loss
    ]
    return Pings(count, tuple(kept))


def late(pings, stall):
    """The same pings on a machine that stops for so many seconds: those that come back meanwhile wait for its end."""
    moved = (
        time + stall - number * 0.0005 if number * 0.0005 < stall else time for number, time in enumerate(pings.times)
    )
    return Pings(pings.sent, tuple(moved))


def burst(rate, rtt=0.0, packets=200, bits=1000.0, faster=1.3, stalls=()):
    """A burst over a line of this rate; packets that arrive in one of these stalls are seen at its end."""
    flights = []
    for number in range(packets):
        sent = number * bits / (faster * rate)
        back = max(sent, number * bits / rate) + rtt + 2 * bits / rate
        flights.append((sent, max([back, *(end for begin, end in stalls if begin < back < end)])))
    return Burst(bits, flights)


@dataclasses.dataclass
class Link:
    """A link and its machine. real: what the link does where it is asked for something of the kind.

    loses: share of the packets. delays: seconds. carries: bits a second. stops: share of the time. asked: the pings
    that were asked for.
    """

    real: dict[str, float] = dataclasses.field(default_factory=dict)
    loses: float = 0.0
    delays: float = 0.0
    carries: float = math.inf
    stops: float = 0.0
    needs: NetworkNeeds = REST
    asked: list[tuple[int, float]] = dataclasses.field(default_factory=list)

    def shape(self, needs):
        """Note it."""
        self.needs = needs

    def _now(self):
        shape = self.needs.between(*PAIR)
        return dataclasses.replace(shape, **{name: value for name, value in self.real.items() if getattr(shape, name)})

    def pings(self, pair, count, interval):
        """As the link and the machine are."""
        self.asked.append((count, interval))
        now = self._now()
        lossy = dataclasses.replace(now, loss=now.loss + self.loses)
        return pinged(lossy, count, seed=len(self.asked), noise=self.delays)

    def burst(self, pair, rate):
        """At the rate of the link, or as fast as packets are sent."""
        now, most = self._now(), 1.3 * rate
        carries = min((now.rate or most) * (1 - self.stops if now.rate else 1), most, self.carries)
        stalls = [(at * 0.03, (at + self.stops) * 0.03) for at in range(20)]
        return burst(carries, now.rtt, bits=rate * 0.3 / 600, packets=600, faster=most / carries, stalls=stalls)


def measured(link, needs):
    """What is measured of this link, which is then shaped as before."""
    link.shape(needs)
    found = traffic.measured(link, PAIR, needs)
    assert link.needs == needs
    return found


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
    quiet = [pinged(Shape(rtt=rtt))]
    found = [traffic.varied(shape, pinged(shape, seed=seed), quiet) for seed in range(50)]

    assert sum(one.measured for one in found) / 50 == pytest.approx(0.004, rel=0.05)
    assert not any(one.beyond(0.0) for one in found)
    assert all(one.low < one.measured < one.high for one in found)


@pytest.mark.parametrize("stall", [0.0, 0.01])
@pytest.mark.parametrize("noise", [0.0001, 0.001])
@pytest.mark.parametrize("jitter", [0.004, 0.003, 0.006])
def test_the_jitter_lies_in_its_interval_on_any_machine(stall, noise, jitter):
    """What the machine does to packets without it makes the interval longer, and a few very late ones hardly do."""
    real, seeds = Shape(rtt=0.02, jitter=jitter), range(20)
    free = [late(pinged(Shape(rtt=0.02), seed=seed, noise=noise), stall) for seed in seeds]
    found = [
        traffic.varied(SHAPE, late(pinged(real, seed=100 + seed, noise=noise), stall), [free[seed]]) for seed in seeds
    ]

    assert all(one.low <= jitter <= one.high for one in found)
    assert all(one.high - one.low < jitter + 4 * noise for one in found)


def test_few_answers_say_nothing_of_the_jitter():
    """The interval would have no end."""
    quiet = [pinged(Shape(rtt=0.02))]

    assert traffic.varied(SHAPE, Pings(100, ()), quiet).unknown == "0 pings came back"
    assert traffic.varied(SHAPE, Pings(100, (0.02,) * 5), quiet).unknown == "5 pings came back"
    assert traffic.varied(SHAPE, Pings(100, (0.02,) * 100), [Pings(100, ())]).unknown.startswith("this machine ")


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
def test_a_link_is_wrong_where_nothing_else_explains_it(real, said):
    """Each property is told with what was asked."""
    wrong = measured(Link(real), LOSSY).wrong()

    assert wrong.startswith(said)
    assert bool(wrong) is bool(said)


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (1e8, ""),
        (9.1e7, ""),
        (8e7, "carry 80 Mbit/s, and 100 Mbit/s were asked"),
        (1.3e8, "carry 130 Mbit/s, and 100 Mbit/s were asked"),
    ],
)
def test_a_rate_is_wrong_beyond_a_tenth(rate, said):
    """Slower or faster."""
    assert measured(Link({"rate": rate}), FAST).wrong() == said


@pytest.mark.parametrize(
    ("machine", "needs", "unknown"),
    [
        ({"loses": 0.02}, LOSSY, "this machine loses "),
        ({"delays": 0.02}, LOSSY, "this machine varies them by "),
        ({"carries": 6e7}, FAST, "this machine carries 60 Mbit/s without it"),
        ({"stops": 0.2}, FAST, "this machine stops packets for "),
    ],
)
@pytest.mark.parametrize("real", [{}, {"loss": 0.05, "jitter": 0.0, "rate": 5e7}])
def test_what_the_machine_does_too_is_unknown(machine, needs, unknown, real):
    """Whether the link is as asked or not: it is no error, and no figure."""
    found = measured(Link(real, **machine), needs)
    figures = [one for one in (found.loss, found.jitter, found.rate) if one and one.unknown]

    assert [one.unknown.startswith(unknown) for one in figures] == [True]
    assert figures[0].measured is figures[0].low is figures[0].high is None


def test_a_machine_that_stops_makes_no_link_faster():
    """However often, and for however long: the rate is the least that what arrived needed."""
    draw = random.Random(3)
    for _ in range(100):
        stalls = [(begin, begin + draw.expovariate(100)) for begin in (draw.uniform(0, 0.25) for _ in range(8))]
        found = traffic.carried(Shape(rtt=0.005, rate=1e6), burst(1e6, rtt=0.005, stalls=stalls))
        assert found.low < 1.001e6
        assert found.low <= found.measured <= found.high
    one = traffic.carried(Shape(rate=1e6), burst(1e6, stalls=[(0.0, 0.03)]))
    assert one.measured == pytest.approx(1e6)


def test_a_machine_that_stops_now_and_then_makes_the_interval_longer():
    """A link never makes up for what it does not carry meanwhile, so it seems slower than it is."""
    evenly = {"packets": 1000, "bits": 300.0, "faster": 1.0}
    assert traffic.stopped(burst(1e6, **evenly)) == 0.0
    assert traffic.stopped(burst(1e6, **evenly, stalls=[(0.1, 0.115)])) == pytest.approx(0.05, rel=0.05)
    rate = measured(Link({"rate": 0.85e8}, stops=0.08), FAST).rate

    assert rate.low < 0.85e8 < rate.high
    assert not rate.beyond(0.1e8)


def test_a_burst_of_which_nothing_came_has_no_rate():
    """Whatever was asked."""
    assert traffic.stopped(Burst(1000.0, [])) == 1.0
    assert traffic.carried(Shape(rate=1e6), Burst(1000.0, [])).measured == 0.0
    assert measured(Link(carries=1.0), FAST).rate.unknown.startswith("this machine ")


def test_a_lossy_link_carries_what_it_loses_on_the_way_back():
    """A tenth of the answers is lost after the requests have taken their time."""
    sent = burst(1e6, packets=1000)
    kept = Burst(sent.bits, [one for number, one in enumerate(sent.flights) if number % 10])

    assert traffic.carried(Shape(rate=1e6, loss=0.1), kept).measured == pytest.approx(1e6, rel=0.02)


def test_only_what_was_asked_is_measured():
    """Each takes about a second."""
    link = Link()

    assert (measured(link, NetworkNeeds(rtt=0.02)), link.asked) == (None, [])


def test_pings_leave_room_on_a_slow_link():
    """They would wait for each other; where the jitter is measured, each is alone on its way."""
    link = Link()
    measured(link, NetworkNeeds(rtt=0.02, loss=0.02, jitter=0.004, rate=1e5))
    lossy, *jittery = link.asked

    assert lossy == (76, pytest.approx(0.0196))
    assert set(jittery) == {(62, 0.024)}
    measured(together := Link(), LOSSY)
    assert set(together.asked) == {(1000, 0.0005)}
    measured(far := Link(), NetworkNeeds(rtt=1.0, loss=0.02))
    assert far.asked == [(150, 0.01)]


def test_what_was_asked_and_measured_is_said():
    """With intervals where there are some, before the rounds and after them."""
    before = Traffic(Figure(0.01, 0.0112, 0.004, 0.024), None, Figure(1e8, 9.91e7, 9.9e7, 9.92e7))
    after = Traffic(Figure(0.01, 0.009, 0.002, 0.02), None, Figure(1e8, 1e8, 9.9e7, 1.01e8))

    assert traffic.both([before, after]) == [
        "loss 1 % asked, 1.1 % (0.4 .. 2.4) and 0.9 % (0.2 .. 2) measured",
        "rate 100 Mbit/s asked, 99.1 Mbit/s and 100 Mbit/s measured",
    ]
    assert traffic.both([Traffic(jitter=Figure(0.002, 0.0021, 0.0019, 0.0024))]) == [
        "jitter 2.00 ms asked, 2.10 ms (1.90 ms .. 2.40 ms) measured"
    ]
    assert traffic.both([]) == []


def test_what_could_not_be_measured_back_is_said():
    """With the reason, once."""
    known, busy = Figure(1e8, 1e8, 9.9e7, 1.01e8), Figure(1e8, unknown="this machine carries 60 Mbit/s without it")

    assert traffic.both([Traffic(rate=busy), Traffic(rate=busy)]) == [
        "rate 100 Mbit/s asked, could not be measured back (this machine carries 60 Mbit/s without it)"
    ]
    assert traffic.both([Traffic(rate=known), Traffic(rate=busy)]) == [
        "rate 100 Mbit/s asked, 100 Mbit/s measured, could not be measured back (this machine carries 60 Mbit/s "
        "without it)"
    ]
