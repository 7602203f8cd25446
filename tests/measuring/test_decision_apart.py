"""Claims about variants on separate clusters: a difference that equal clusters can have decides nothing."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.rounds import counters
from tests.support.fakes import FakeSource, noisy

F = ClusterDifference(math.log(1.055), "assumed, from four equal clusters", 0)


@dataclasses.dataclass
class Apart(FakeSource):
    """A source whose variants run on separate clusters, which can differ by ``difference``; None for a shared one."""

    difference: ClusterDifference | None = F

    def cluster_difference(self, *numbers, metric):
        """What ``difference`` says."""
        return self.difference


def compared(speed, **how):
    """A baseline, and a candidate of so many times its speed, for good; rounds with little noise."""
    source = Apart(("old", "new"), noisy(1.0, 1 / speed, sd=0.005), **how)
    return series_of(Measurement(source, Rules(seed=1)))


def outcome(answer):
    """How a claim ended."""
    return answer.verdict.outcome


def test_equal_clusters_that_differ_for_good_do_not_beat_each_other():
    """Rounds show the 4 % without doubt, and they are nobody's finding; on one cluster they would be."""
    old, new = compared(1.04)
    answer = new.beats(old)

    assert (outcome(answer), outcome(old.beats(new))) == (Outcome.INCONCLUSIVE,) * 2
    assert answer.verdict.low > 1
    assert answer.verdict.reason.startswith("too close to the bound")
    assert "equal clusters can differ by 5.5 %" in answer.verdict.reason
    old, new = compared(1.04, difference=None)
    assert outcome(new.beats(old)) is Outcome.HOLDS


def test_equal_clusters_are_the_reason_where_rounds_alone_would_decide():
    """An interval of which a part lies beyond what they explain; how the drawing ended comes before it."""
    source = Apart(("old", "new"), noisy(1.0, 1 / 1.055, sd=0.02))
    old, new = series_of(Measurement(source, Rules(seed=1, cap=20)))
    answer = new.beats(old)

    assert outcome(answer) is Outcome.INCONCLUSIVE
    assert 1 < answer.verdict.low < 1.055 < answer.verdict.high
    assert answer.verdict.reason.startswith("cap of 20 pairs; equal clusters can differ by 5.5 %")


def test_what_exceeds_f_counts():
    """Beyond it a claim holds, and as far short of its bound it fails."""
    old, new = compared(1.2)

    assert outcome(new.beats(old)) is Outcome.HOLDS
    assert outcome(old.beats(new)) is Outcome.FAILS
    assert outcome(new.beats(old, by=0.30)) is Outcome.FAILS


@pytest.mark.parametrize(
    ("speed", "expected"),
    [
        (1.0, Outcome.HOLDS),
        (0.97, Outcome.HOLDS),
        (0.92, Outcome.INCONCLUSIVE),
        (0.87, Outcome.INCONCLUSIVE),
        (0.80, Outcome.FAILS),
    ],
)
def test_a_guard_holds_and_fails_only_beyond_f(speed, expected):
    """The margin is 10 %, and 5.5 % on either side of it are between."""
    old, new = compared(speed)

    assert outcome(new.no_slower_than(old, by=0.10)) is expected
    assert outcome(new.same_as(old, within=0.10)) is expected


def test_a_comparison_without_a_claim_differs_by_more_than_f():
    """The table says unclear to less."""
    for speed, expected in ((1.04, Outcome.INCONCLUSIVE), (1.2, Outcome.HOLDS), (0.8, Outcome.HOLDS)):
        old, new = compared(speed)
        assert outcome(new.against(old)) is expected


def test_an_order_needs_steps_of_more_than_f():
    """Each of them; its last step is 3 %."""
    source = Apart(("a", "b", "c"), noisy(1.0, 0.8, 0.776, sd=0.01))
    answer = ordered(*series_of(Measurement(source, Rules(seed=1))))

    assert outcome(answer) is Outcome.INCONCLUSIVE
    source = Apart(("a", "b", "c"), noisy(1.0, 0.8, 0.6, sd=0.01))
    assert ordered(*series_of(Measurement(source, Rules(seed=1))))


@dataclasses.dataclass
class OneApart(Apart):
    """Variants of which the last one runs on a cluster of its own, and the others share one."""

    def cluster_difference(self, *numbers, metric):
        """What ``difference`` says of the last variant."""
        return self.difference if len(self.names) - 1 in numbers else None


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((0.6, 0.582, 1.0), Outcome.HOLDS),  # 3 % on the cluster that two variants share
        ((0.97, 0.6, 1.0), Outcome.INCONCLUSIVE),  # 3 % between two clusters
        ((0.582, 0.6, 1.0), Outcome.FAILS),
    ],
)
def test_a_step_between_variants_that_share_a_cluster_ignores_f(times, expected):
    """Only the step to the variant on a cluster of its own has to be larger; the message keeps the condition."""
    source = OneApart(("a", "b", "c"), noisy(*times, sd=0.005))
    a, b, c = series_of(Measurement(source, Rules(seed=1)))
    answer = ordered(c, a, b)

    assert outcome(answer) is expected
    if expected is Outcome.HOLDS:
        assert "unless equal clusters differ by more than 5.5 % (1 in 200)" in answer.message
        assert "decides nothing, except between variants that share their clusters\n" in answer.message


def counted(name, old, new, **how):
    """Two variants whose rounds have this counter."""
    values = {0: {name: old}, 1: {name: new}}
    return compared(1.0, counters=lambda variant: values[variant], **how)


@pytest.mark.parametrize(
    ("new", "expected"), [(1.8, Outcome.HOLDS), (1.96, Outcome.INCONCLUSIVE), (2.2, Outcome.FAILS)]
)
def test_a_counter_counts_what_exceeds_f(new, expected):
    """Equal clusters differ in what they count; on one cluster a difference of 2 % is one."""
    first, second = counted("fsyncs_per_commit", 2.0, new)
    answer = second.lower("fsyncs_per_commit", than=first)

    assert outcome(answer) is expected
    assert answer.difference == F
    assert "equal ones can differ by 5.5 % in fsyncs_per_commit" in answer.message
    shared, alike = counted("fsyncs_per_commit", 2.0, 1.96, difference=None)
    assert outcome(alike.lower("fsyncs_per_commit", than=shared)) is Outcome.HOLDS


@pytest.mark.parametrize("name", sorted(counters.STATES))
def test_a_status_of_a_server_is_refused_across_clusters(name):
    """Before any round; on one cluster both variants share what it did before."""
    old, new = counted(name, 2.0, 1.0)

    with pytest.raises(ConfigError, match=rf"^fake load: lower on separate clusters: {name} is "):
        new.lower(name, than=old)
    assert old.measurement.source.rounds == []
    shared, alike = counted(name, 2.0, 1.0, difference=None)
    assert outcome(alike.lower(name, than=shared)) is Outcome.HOLDS


@dataclasses.dataclass
class ByMetric(Apart):
    """A source that knows one difference for each metric."""

    asked: set[str] = dataclasses.field(default_factory=set)

    def cluster_difference(self, *numbers, metric):
        """The drained throughput differs by 60 %, anything else by 5.5 %; what was asked for is noted."""
        self.asked.add(metric)
        return dataclasses.replace(F, log_ratio=math.log(1.6)) if metric.startswith("drained") else F


def test_each_metric_has_a_difference():
    """A fifth more is a finding in throughput, and none in the drained throughput."""
    source = ByMetric(("old", "new"), noisy(1.0, 1 / 1.2, sd=0.005))
    old, new = series_of(Measurement(source, Rules(seed=1)))

    assert outcome(new.beats(old)) is Outcome.HOLDS
    assert outcome(new.beats(old, metric="drained_throughput")) is Outcome.INCONCLUSIVE
    assert source.asked == {"throughput", "drained_throughput"}


def test_a_default_names_the_command_that_replaces_it():
    """A measured difference of few pairs says that they are few."""
    default = dataclasses.replace(F, source="default, measured elsewhere", command="dbcluster calibrate galera")
    few = dataclasses.replace(F, source="measured on 9 pairs of clusters", pairs=9)

    for difference, text in (
        (default, "to measure it here: dbcluster calibrate galera"),
        (few, "9 pairs of clusters, f"),
    ):
        old, new = compared(1.2, difference=difference)
        assert text in new.beats(old).message


def test_a_margin_that_f_swallows_is_refused_before_any_round():
    """It can hold for nobody; without a claim the comparison is shown."""
    source = Apart(("old", "new"), noisy(1.0, 1.0))
    old, new = series_of(Measurement(source, Rules(seed=1)))

    with pytest.raises(
        ConfigError, match=r"^fake load: no_slower_than: its margin, 5\.3 % as a ratio of speeds, is not "
    ):
        new.no_slower_than(old, by=0.05)
    assert source.rounds == []


def test_the_message_says_what_the_verdict_rests_on():
    """The condition beside the error, and one line about f; on a shared cluster neither."""
    old, new = compared(1.2)
    answer = new.beats(old)

    assert (
        "this verdict is wrong at most 1 time in 2000, unless equal clusters differ by more than 5.5 % (1 in 200)"
        in answer.message
    )
    assert (
        "\n  separate clusters: equal ones can differ by 5.5 % in throughput (1 in 200; assumed, from" in answer.message
    )
    assert answer.difference == F
    old, new = compared(1.2, difference=None)
    assert "equal clusters" not in new.beats(old).message


def test_more_instances_are_named_where_pairs_cannot_help():
    """More pairs on the same clusters show the same clusters."""
    old, new = compared(1.04)

    assert "more instances of each variant (measure(..., instances=4))" in new.beats(old).message
