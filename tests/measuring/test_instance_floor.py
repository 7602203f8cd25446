"""Tests of pytest_dbcluster.measuring.instance_floor."""

from __future__ import annotations

import pytest

from pytest_dbcluster.claims.claim import Claim, beats, lower, no_slower_than, same_as, scales
from pytest_dbcluster.errors import Inconclusive, SeriesVoid
from pytest_dbcluster.measuring.instance_floor import InstanceFloor, Twins, margins_of
from pytest_dbcluster.measuring.measurement import Measurement, Rules
from pytest_dbcluster.measuring.series import series_of
from tests.support.fakes import FakeSource, noisy


def test_a_margin_below_the_floor_is_refused():
    """Instances that differ by 12 % say nothing about a version that is claimed to lose less than 10 %."""
    floor = InstanceFloor("async", 1 / 1.12, 20)

    assert floor.refuses(no_slower_than(0.10)) == (
        "instance floor: two instances of async differ by 12.0 % (20 pairs), and the margin of no_slower_than is "
        "smaller: no verdict would be about the variants"
    )
    assert floor.refuses(same_as(0.05))
    assert floor.refuses(beats(0.10))
    assert floor.refuses(scales(1.1))


def test_a_margin_above_the_floor_counts():
    """Whichever of the two instances is the faster one."""
    for ratio in (1.02, 1 / 1.02):
        assert not InstanceFloor("async", ratio, 20).refuses(no_slower_than(0.10))


@pytest.mark.parametrize("claim", [beats(), lower(0.2), Claim("no_more_stalls_than", 0.0), Claim("differs", 0.0)])
def test_a_claim_without_a_margin_of_speed_has_no_floor(claim):
    """There is nothing to be smaller than it; counters are not speed."""
    assert margins_of(claim) == []
    assert InstanceFloor("async", 2.0, 20).refuses(claim) == ""


def test_twins_are_two_instances_of_one_variant():
    """Blocks go to the instances in turn, so instance n has the blocks whose number leaves n."""
    source = FakeSource(("old", "new"), noisy(0.1, 0.2))
    twins = Twins(source, 1, 2)
    first, second = series_of(Measurement(twins, Rules(seed=1)))

    assert (first.name, second.name) == ("new instance 1", "new instance 2")
    assert second.against(first).verdict.ratio == pytest.approx(1.0, rel=0.1)
    assert {variant for variant, _, _ in source.rounds} == {1}
    blocks = [block for _, block, _ in source.rounds]
    assert sum(block % 2 for block in blocks) == len(blocks) / 2
    assert source.checks == 1


def test_what_the_source_finds_wrong_is_wrong_with_its_twins():
    """They are checked like every other series."""
    twins = Twins(FakeSource(("old",), noisy(0.1), wrong=SeriesVoid("tables differ")), 0, 2)
    first, second = series_of(Measurement(twins, Rules(seed=1)))

    with pytest.raises(SeriesVoid, match="tables differ"):
        second.against(first)


def test_the_first_claim_with_a_margin_measures_the_floor_once():
    """Other claims have no use for it; every later message about the same metric says it."""
    asked = []

    def floor(number, metric):
        asked.append((number, metric))
        return InstanceFloor("old", 1.01, 20)

    old, new = series_of(Measurement(FakeSource(("old", "new"), noisy(0.2, 0.1)), Rules(seed=1), floor=floor))

    assert new.beats(old)
    assert asked == []
    assert new.no_slower_than(old, by=0.10)
    assert "instance floor: two instances of old differ by 1.0 % (20 pairs)" in new.no_slower_than(old, by=0.2).message
    assert asked == [(0, "throughput")]
    assert new.no_slower_than(old, by=0.2, metric="goodput")
    assert asked == [(0, "throughput"), (0, "goodput")]


def test_a_margin_below_the_measured_floor_is_undecided():
    """Not red: nothing is known about the variants."""
    source = FakeSource(("old", "new"), noisy(0.1, 0.1))
    old, new = series_of(Measurement(source, Rules(seed=1), floor=lambda *_: InstanceFloor("old", 1.3, 20)))

    with pytest.raises(Inconclusive, match=r"two instances of old differ by 30\.0 % \(20 pairs\), and the margin of "):
        bool(new.no_slower_than(old, by=0.10))


def test_what_cannot_be_known_is_not_drawn_for_long():
    """Twenty pairs show what was seen; more would not make it known."""
    source = FakeSource(("old", "new"), noisy(0.1, 0.1, sd=0.5))
    old, new = series_of(Measurement(source, Rules(seed=1), floor=lambda *_: InstanceFloor("old", 1.3, 20)))

    assert new.no_slower_than(old, by=0.10).verdict.pairs == 20
