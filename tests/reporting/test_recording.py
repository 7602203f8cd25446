"""The records of claims."""

from __future__ import annotations

import itertools

import pytest

from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.curve import Curve, Point, ReleaseCurve
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.reporting import results_directory, schema
from pytest_dbcluster.reporting.recording import About, Asked, claim_record, curve_record
from pytest_dbcluster.rounds.busy_machine import OthersLoad
from tests.support.fakes import FakeSource, noisy
from tests.support.records import comparable
from tests.support.resolved import resolved


class RoundSource(FakeSource):
    """Variants on lone servers; what differs between two of them says which they were."""

    others_before = OthersLoad(2.0, before=0.5, load=1.5)

    def evidence(self, question):
        """One variable differs, and no network was asked for."""
        names = [self.names[number] for number in question.variants]
        steps = itertools.pairwise(names)
        return Evidence(
            durability=dict.fromkeys(names, "made up"),
            differences={(fast, slow): {"which": (slow, fast)} for fast, slow in steps},
            specs={name: resolved(name) for name in names},
            data=dict(self.data),
            files=dict(self.files),
            environment={"guests": "user-mode Linux 7.2.7"},
            others_before=self.others_before,
        )


SHOP = {"shop/order.sql": "e3b0c442", "shop/schema.sql": "98fc1c14"}


def test_records_have_the_digests_of_all_files():
    """Of each variant's workload, and of all workloads of a curve."""
    source = RoundSource(("slow", "fast"), noisy(1.0, 0.5), load="sql shop t8")
    source.files, source.content = {"slow": SHOP, "fast": SHOP}, "0b813aadf6"
    slow, fast = series_of(measurement := Measurement(source, Rules(seed=3)))
    record = claim_record(fast.beats(slow), None, Asked("test_a", "quick", ""), 1.0)
    curve = Curve(None, "threads", [Point(1, measurement)])

    assert (record.content, record.files) == ("0b813aadf6", {"slow": SHOP, "fast": SHOP})
    assert record.claim_id == 'test_a | fast.beats(slow, metric="throughput") | sql shop t8 0b813aadf6'
    assert curve_record(curve, About("quick", 3, {}), {}).files == SHOP


class Published:
    """A published ratio of each two variants, and what was found in words."""

    lines = ('published: "far is slow" (a diary)',)

    def ratio(self, candidate, baseline, metric, mode):
        """As many as their names have letters."""
        return len(candidate.name) / len(baseline.name)

    def seconds(self, variant, mode):
        """None for any variant."""
        return ()


@pytest.mark.parametrize(
    ("seconds", "candidate", "baseline"), [((1.0, 0.8, 0.4), "middle", "slow"), ((1.0, 0.5, 0.4), "fast", "middle")]
)
def test_the_record_of_an_order_is_of_its_weakest_neighbours(seconds, candidate, baseline):
    """Published ratio, drained ratio and differences compare the same two variants as the verdict."""
    drains = {"slow": 1.0, "middle": 0.5, "fast": 0.1}
    names = tuple(drains)
    source = RoundSource(names, noisy(*seconds), counters=lambda number: {"drain_seconds": drains[names[number]]})
    answer = ordered(*series_of(Measurement(source, Rules(seed=3))))
    record = claim_record(answer, Published(), Asked("test_a", "quick", ""), 1.0)

    assert (record.candidate, record.baseline) == (candidate, baseline)
    assert record.fingerprint["guests"] == "user-mode Linux 7.2.7"
    assert record.published == len(candidate) / len(baseline)
    assert record.differences == {"which": (baseline, candidate)}
    assert record.text == "ordered(slow, middle, fast)"
    assert record.claim_id == 'test_a | ordered(slow, middle, fast, metric="throughput") | fake load'
    drained = remarks.speed_ratio(record.rounds[candidate], record.rounds[baseline], "drained_throughput")
    assert (set(record.rounds), record.drained) == (set(names), pytest.approx(drained))


def test_a_record_is_kept_whole(tmp_path):
    """A record read from its results directory equals the saved one. Its message ends with the published sentence."""
    source = RoundSource(("slow", "middle", "fast"), noisy(1.0, 0.8, 0.4))
    answer = ordered(*series_of(Measurement(source, Rules(seed=3))))
    record = claim_record(answer, Published(), Asked("test_a", "quick", ""), 1.0)
    results_directory.Results(tmp_path).add(record)

    assert comparable(schema.read_claims(tmp_path)) == comparable([record])
    assert record.others == RoundSource.others_before
    assert record.message.splitlines()[-1] == 'published: "far is slow" (a diary)'


def test_the_record_of_an_order_has_the_carry_over_of_its_weakest_neighbours():
    """It belongs to the two variants that the record names."""
    source = RoundSource(("slow", "middle", "fast"), noisy(1.0, 0.8, 0.4))
    answer = ordered(*series_of(Measurement(source, Rules(seed=3))))
    record = claim_record(answer, None, Asked("test_a", "quick", ""), 1.0)

    assert (record.candidate, record.baseline) == ("middle", "slow")
    assert [answer.variants[n].name for n in (1, 2)] == ["middle", "slow"]
    assert answer.carry_over[1] is not None
    assert record.carry_over == answer.carry_over[1] != answer.carry_over[0]


@pytest.mark.parametrize("data", [{}, {"slow": "1 warehouse", "fast": "8 tables of 9 rows"}], ids=["unknown", "known"])
def test_a_record_has_the_size_of_the_data_and_the_id_of_a_claim_does_not(data):
    """So a history whose entries name no size goes on."""
    source = RoundSource(("slow", "fast"), noisy(1.0, 0.5))
    source.data = data
    slow, fast = series_of(Measurement(source, Rules(seed=3)))
    record = claim_record(fast.beats(slow), None, Asked("test_a", "quick", ""), 1.0)

    assert record.data == data
    assert record.claim_id == 'test_a | fast.beats(slow, metric="throughput") | fake load'


def test_a_point_of_a_curve_has_the_size_of_the_data():
    """Points of one curve may differ in it."""
    points = []
    for value in (1, 4):
        source = RoundSource(("slow", "fast"), noisy(1.0, 0.5))
        source.data = {"slow": f"{value} warehouses"}
        points.append(Point(value, Measurement(source, Rules(seed=3))))
    drawn = Curve("load", "warehouses", points)
    drawn.draw(1)
    made = curve_record(drawn, About("quick", 3, {}), {})

    assert [(one.value, one.variant, one.data) for one in made.points] == [
        (1, "slow", "1 warehouses"), (1, "fast", ""), (4, "slow", "4 warehouses"), (4, "fast", ""),
    ]  # fmt: skip


def test_a_curve_says_what_its_guests_were():
    """A chart is read without the fingerprint of its run, and servers in guests are slower than native ones."""
    source = RoundSource(("slow", "fast"), noisy(1.0, 0.5))
    drawn = Curve("load", "threads", [Point(4, Measurement(source, Rules(seed=3)))])
    drawn.draw(1, relative_to="slow")

    made = curve_record(drawn, About("quick", 3, {"guests": "one CPU each", "disks": "fast"}), {}, 1)
    assert made.notes == ("guests: one CPU each",)
    assert (made.baseline, made.number, made.drawn) == ("slow", 1, 1)
    assert curve_record(drawn, About("quick", 3, {"cpu": "2 x fast"}), {}).notes == ()


class ApartSource(RoundSource):
    """Variants on separate clusters."""

    def cluster_difference(self, *numbers, metric):
        """Five per cent."""
        return ClusterDifference(0.05, "made up", command="dbcluster calibrate standalone")


def over_releases(blocks):
    """The record of a curve over three releases, with so many rounds of each."""
    source = ApartSource(("one@old", "one@middle", "one@new"), noisy(0.5, 1.0, 1.0, sd=0.01))
    drawn = ReleaseCurve(None, Measurement(source, Rules(seed=3)), ("old", "middle", "new"), ("one",))
    drawn.notes = ("older is left out: made up",)
    drawn.draw(blocks)
    return curve_record(drawn, About("quick", 3, {}), {})


def test_a_curve_over_releases_has_the_ratio_of_each_to_the_newest():
    """From pairs of rounds; from 12 rounds on with an interval. How far equal clusters differ is a note."""
    few, made = over_releases(3), over_releases(12)

    assert [(one.value, one.variant) for one in made.points] == [("old", "one"), ("middle", "one"), ("new", "one")]
    assert (made.field, made.reference, made.baseline) == ("release", "new", "")
    assert [one.ratio for one in few.points] == [pytest.approx(2, rel=0.05), pytest.approx(1, rel=0.05), 1.0]
    assert [one.ratio_low for one in few.points] == [None, None, None]
    old, middle, new = made.points
    assert 1.9 < old.ratio_low < old.ratio < old.ratio_high < 2.1
    assert middle.ratio_low < 1 < middle.ratio_high
    assert (new.ratio, new.ratio_low, new.ratio_high) == (1.0, None, None)
    assert made.notes[0].startswith("separate clusters: equal ones can differ by 5.1 % in throughput")
    assert "dbcluster calibrate" not in made.notes[0]
    assert made.notes[1] == "older is left out: made up"
