"""The load generator: when it was the limit, and what a claim is worth then."""

from __future__ import annotations

import math

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome as Verdict
from pytest_dbcluster.claims.verdict import judge
from pytest_dbcluster.errors import Inconclusive
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.rounds import load_generator
from pytest_dbcluster.rounds.round import LoadHost, Round, RunResult
from tests.support import golden
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy
from tests.support.pairs import pairs

MARK = "the load generator is the bottleneck: fast, 20 of 20 rounds (a thread)"


def one_round(*, busiest=None, client_seconds=None, samples=None, limited=""):
    """A round of 2 s."""
    outcome = RunResult(2.0, 100, client_seconds=client_seconds, busiest=busiest)
    return Round("a", 0, 0, outcome, 0.0, 0.0, samples={"client_cores": 2.0, **(samples or {})}, limited=limited)


def test_a_thread_that_is_always_on_a_cpu_is_the_limit():
    """From 90 % of its time on it cannot start anything earlier."""
    assert load_generator.limit(one_round(busiest=0.89)) == ""
    reason = load_generator.limit(one_round(busiest=0.93))
    assert missing(reason, "a thread of the load generator", "on a CPU", "93 % of the time") == []


def test_a_client_that_has_no_cores_left_is_the_limit():
    """From 80 % of those that it may use on; where nobody counts it is not known."""
    assert load_generator.limit(one_round(client_seconds=3.1, busiest=0.5)) == ""
    reason = load_generator.limit(one_round(client_seconds=3.2))
    assert missing(reason, "the load generator used", "1.6 of its 2 cores") == []
    assert load_generator.limit(one_round()) == ""


def test_a_tool_that_does_not_count_is_counted_by_the_system():
    """In cores, as the programs that we ran and waited for; the load's own figure comes first."""
    reason = load_generator.limit(one_round(samples={"cpu_client": 1.9}))
    assert missing(reason, "the load generator used", "1.9 of its 2 cores") == []
    assert load_generator.limit(one_round(client_seconds=0.2, samples={"cpu_client": 1.9})) == ""


def test_a_client_inside_of_pytest_is_counted_with_pytest():
    """No program of it runs, so its cores are among those of pytest, of which Python uses one."""
    done = one_round(samples={"cpu_client": 0.0, "cpu_plugin": 0.62})
    busy = one_round(samples={"cpu_client": 0.0, "cpu_plugin": 0.94})
    tool = one_round(samples={"cpu_client": 0.01, "cpu_plugin": 0.94})

    assert load_generator.limit(done) == load_generator.limit(tool) == ""
    assert "inside pytest, which used 0.94 of the one core" in load_generator.limit(busy)
    (line,) = load_generator.line({"a": [done], "b": [tool]})
    assert missing(line, "load generator: a inside pytest", "0.62 of 2 cores; b 0.01 of 2 cores") == []


def divided(*hosts):
    """A round of 2 s that hosts of two cores divided: of each its machine, its CPU seconds and its busiest thread."""
    made = tuple(LoadHost(f"h{n}", machine, 2.0, used, busy) for n, (machine, used, busy) in enumerate(hosts))
    outcome = RunResult(2.0, 100, client_seconds=sum(one.client_seconds for one in made), busiest=0.5, load_hosts=made)
    return Round("a", 0, 0, outcome, 0.0, 0.0, samples={"client_cores": load_generator.cores_of(outcome)})


def test_no_round_takes_more_cores_than_there_are():
    """The system counts in hundredths of a second, and a round may last a few thousandths."""
    done = one_round(samples={"cpu_client": 3.35})

    assert load_generator.used_cores(done) == 2
    assert missing(load_generator.limit(done), "the load generator used", "2 of its 2 cores") == []


def test_each_load_host_is_judged_by_itself():
    """One without cores or with a busy thread limits its part of the load, however idle the other is."""
    assert load_generator.limit(divided(("m1", 1.0, 0.5), ("m2", 3.1, 0.5))) == ""
    cores = load_generator.limit(divided(("m1", 0.0, 0.1), ("m2", 3.2, 0.5)))
    assert missing(cores, "the load generator on h1 used", "1.6 of its 2 cores") == []
    thread = load_generator.limit(divided(("m1", 0.1, 0.95), ("m2", 0.1, 0.1)))
    assert missing(thread, "a thread of the load generator on h0", "on a CPU", "95 % of the time") == []


def test_load_hosts_of_one_machine_share_its_cores():
    """Together they cannot use more than it has."""
    reason = load_generator.limit(divided(("m", 1.6, 0.5), ("m", 1.6, 0.5)))
    assert missing(reason, "the load generator on h0 and h1 used", "1.6 of its 2 cores") == []
    assert load_generator.cores_of(divided(("m", 1.0, 0.5), ("m", 1.0, 0.5)).outcome) == 2
    assert load_generator.cores_of(RunResult(1.0, 1)) is None


def test_a_message_names_the_hosts_that_divided_the_load():
    """With the cores of all of them together."""
    both = divided(("m1", 1.0, 0.5), ("m2", 1.0, 0.3))

    hosts, cores = load_generator.line({"a": [both]})
    assert missing(hosts, "load from 2 hosts", ": h0, h1") == []
    assert missing(cores, "load generator: a 1.00 of 4 cores", "busiest thread 50 %") == []


def test_a_message_says_what_the_load_generator_took():
    """The median of each variant, with its busiest thread where that is known."""
    rounds = {"a": [one_round(client_seconds=0.84, busiest=0.31)] * 3, "b": [one_round(samples={"cpu_client": 0.5})]}

    (line,) = load_generator.line(rounds)
    assert missing(line, "load generator: a 0.42 of 2 cores", "busiest thread 31 %; b 0.50 of 2 cores") == []
    assert load_generator.line({"a": [one_round()]}) == []


def test_a_variant_is_marked_when_most_of_its_rounds_were_limited():
    """Half of them are not most."""
    free, limited = one_round(), one_round(limited="a thread")

    assert load_generator.mark({"a": [free, limited], "b": [free]}) == ""
    mark = load_generator.mark({"a": [free], "b": [free, limited, limited]})
    assert missing(mark, "the load generator is the bottleneck", ": b, 2 of 3 rounds (a thread)") == []


def verdict(claim, ratio, sd=0.02):
    """The verdict of twenty pairs about this ratio."""
    values = [math.log(ratio) + sd * (-1) ** n * (1 + n % 3) / 2 for n in range(20)]
    found = judge(claim, pairs(values))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("claim", "ratio", "outcome", "stands"),
    [
        (kinds.beats(), 1.3, Verdict.HOLDS, True),  # without the limit the ratio is 1.3 or more
        (kinds.beats(), 0.7, Verdict.FAILS, True),
        (kinds.beats(0.5), 1.2, Verdict.FAILS, False),  # it may be 1.6 without the limit
        (kinds.beats(0.5), 0.8, Verdict.FAILS, True),
        (kinds.scales(1.5), 1.8, Verdict.HOLDS, True),
        (kinds.scales(1.5), 1.2, Verdict.FAILS, False),
        (kinds.same_as(0.1), 1.0, Verdict.HOLDS, False),
        (kinds.same_as(0.1), 1.04, Verdict.HOLDS, False),
        (kinds.same_as(0.1), 1.5, Verdict.FAILS, True),
        (kinds.no_slower_than(0.1), 1.0, Verdict.HOLDS, False),
        (kinds.no_slower_than(0.1), 1.3, Verdict.HOLDS, True),
        (kinds.no_slower_than(0.1), 0.7, Verdict.FAILS, True),
        (kinds.differs(), 1.3, Verdict.HOLDS, True),
    ],
)
def test_a_bottleneck_hides_differences_and_makes_none(claim, ratio, outcome, stands):
    """An answer stands when every ratio farther from 1, on the side that was seen, gives the same one."""
    found = verdict(claim, ratio)
    assert found.outcome is outcome
    after = load_generator.discount(found, MARK)

    assert (after == found) is stands
    if not stands:
        assert after.outcome is Verdict.INCONCLUSIVE
        assert after.reason.startswith(f"{found.reason}, but {MARK}: ")
        assert missing(after.reason, "may hide the difference", "decides the claim") == []
    assert load_generator.discount(found, "") == found


def test_no_ratio_of_two_ratios_stands():
    """A limit on either pair moves it, and so to either side."""
    found = verdict(kinds.fades(), 2.0)

    assert found.outcome is Verdict.HOLDS
    assert load_generator.discount(found, MARK).outcome is Verdict.INCONCLUSIVE


def limited(*means):
    """Two series whose load generator is the limit on the faster one."""
    source = FakeSource(("slow", "fast"), noisy(*means), limited=lambda variant: "a thread" if variant else "")
    return series_of(Measurement(source, Rules(seed=5)))


def test_a_claim_under_a_bottleneck_is_marked():
    """It is answered, and its message says that the difference may be larger."""
    slow, fast = limited(1.0, 0.5)
    answer = fast.beats(slow)

    assert answer
    assert "\n  the load generator is the bottleneck: fast, 12 of 12 rounds (a thread)" in answer.message
    assert ordered(slow, fast)


def test_a_guard_under_a_bottleneck_is_open():
    """Two variants look the same when the client is slower than both."""
    slow, fast = limited(1.0, 1.0)

    with pytest.raises(Inconclusive, match="lies inside the claim, but the load generator is the bottleneck: fast, "):
        bool(fast.same_as(slow, within=0.2))


def test_a_counter_is_counted_all_the_same():
    """Its ratio is not one of times."""
    source = FakeSource(
        ("slow", "fast"),
        noisy(1.0, 1.0),
        limited=lambda variant: "a thread",
        counters=lambda variant: {"fsyncs": (100.0, 10.0)[variant]},
    )
    slow, fast = series_of(Measurement(source, Rules(seed=5)))

    assert fast.lower("fsyncs", than=slow)


def test_the_sentences_about_the_load_generator():
    """They are those of the golden file: why it limits a round, its cores, the mark and the reason of a claim."""
    thread, cores = one_round(busiest=0.93), one_round(client_seconds=3.2)
    inside = one_round(samples={"cpu_client": 0.0, "cpu_plugin": 0.94})
    both = divided(("m1", 1.0, 0.5), ("m2", 1.0, 0.3))
    rounds = {"a": [one_round(client_seconds=0.84, busiest=0.31)], "b": [one_round(samples={"cpu_client": 0.5})]}
    limited = one_round(limited=load_generator.limit(thread))
    mark = load_generator.mark({"a": [one_round()], "b": [limited, limited]})
    undecided = load_generator.discount(verdict(kinds.same_as(0.1), 1.0), mark)

    golden.compare(
        "load_generator",
        {
            "a thread is the limit": load_generator.limit(thread),
            "cores are the limit": load_generator.limit(cores),
            "pytest is the limit": load_generator.limit(inside),
            "a thread of one host is the limit": load_generator.limit(divided(("m1", 0.1, 0.95), ("m2", 0.1, 0.1))),
            "cores of one host are the limit": load_generator.limit(divided(("m1", 0.0, 0.1), ("m2", 3.2, 0.5))),
            "cores that two hosts share": load_generator.limit(divided(("m", 1.6, 0.5), ("m", 1.6, 0.5))),
            "its cores": "\n".join(load_generator.line(rounds)),
            "its cores inside pytest": "\n".join(load_generator.line({"a": [inside]})),
            "the cores of two hosts": "\n".join(load_generator.line({"a": [both]})),
            "the mark of a claim": mark,
            "a claim that it leaves undecided": undecided.reason,
        },
    )
