"""Claims: what they mean, which margins they take, and how they print."""

import dataclasses
import math

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.kinds import beats, differs, lower, no_slower_than, same_as, scales
from pytest_dbcluster.errors import ConfigError
from tests.support import golden


@pytest.mark.parametrize("margin", [None, "5 %", True])
@pytest.mark.parametrize(("make", "option"), [(no_slower_than, "by"), (same_as, "within")])
def test_a_guard_without_a_number_is_refused(make, option, margin):
    """A guard needs its margin, and the text says which are usual."""
    with pytest.raises(ConfigError) as refused:
        make(margin)
    assert str(refused.value).startswith(
        f"{make.name}({option}={margin!r}): {option} must be a number, 0 < {option} < 1"
    )
    assert ".05 and .10 are usual" in str(refused.value)


WRONG = [
    (no_slower_than, 0, "0 < by < 1"),
    (no_slower_than, 5, "5 % is 0.05"),
    (same_as, 1.0, "1 % is 0.01"),
    (beats, -0.1, "0 <= by < 2"),
    (beats, math.nan, "0 <= by < 2"),
    (beats, math.inf, "0 <= by < 2"),
    (beats, "much", "by must be a number"),
    (beats, 10, "scales(..., at_least=11)"),
    (scales, 0, "0 < at_least < inf"),
    (scales, math.inf, "0 < at_least < inf"),
    (lower, 1, "0 <= by < 1"),
    (kinds.fades, 2, "0 <= by < 2"),
    (kinds.ordered, -1, "0 <= step < 2"),
    (kinds.ordered, 3, "4 times as fast"),
]


@pytest.mark.parametrize(("make", "margin", "words"), WRONG)
def test_an_absurd_margin_is_refused_with_its_range(make, margin, words):
    """The text names the claim, what was given, and what is allowed."""
    with pytest.raises(ConfigError) as refused:
        make(margin)
    assert str(refused.value).startswith(f"{make.name}({make.option}={margin!r}): ")
    assert words in str(refused.value)


def test_golden_margin_errors():
    """They are those of the golden file."""
    golden.compare(
        "margins",
        {
            f"{make.name}({margin!r})": golden.message_of(make, margin)
            for make, margin in [*((make, margin) for make, margin, _ in WRONG), (no_slower_than, None)]
        },
    )


@pytest.mark.parametrize(
    ("claim", "call", "says"),
    [
        (beats(), "a.beats(b)", "more than 1.00x"),
        (beats(1.5), "a.beats(b, by=1.5)", "more than 2.50x"),
        (no_slower_than(0.05), "a.no_slower_than(b, by=0.05)", "more than 0.95x"),
        (same_as(0.1), "a.same_as(b, within=0.1)", "-10 % .. +11 %"),
        (scales(1.5), "a.scales(b, at_least=1.5)", "more than 1.50x"),
        (lower(0.5), 'a.lower("fsyncs", than=b, by=0.5)', "less than 0.50x"),
        (differs(), "a against b", "nothing"),
    ],
)
def test_a_claim_prints_as_it_was_written(claim, call, says):
    """The call of the test and the range that it means."""
    assert claim.call(("a", "b"), "fsyncs" if claim.kind == "lower" else "throughput") == call
    assert claim.of_kind.range_text(claim) == says


def test_another_metric_is_part_of_the_call():
    """The claim is about that one, so it is printed as the test wrote it."""
    assert beats(0.5).call(("a", "b"), "drained_throughput") == 'a.beats(b, by=0.5, metric="drained_throughput")'


def test_only_guards_may_hold_at_the_looser_level():
    """The two guards hold at .05, every other claim at alpha."""
    assert [no_slower_than(0.05).hold_level(0.0005), same_as(0.1).hold_level(0.0001)] == [0.05, 0.05]
    assert [claim.hold_level(0.0005) for claim in (beats(), scales(2), lower(), differs())] == [0.0005] * 4


def test_bounds_are_logs_of_the_margin():
    """The range of theta is open and written in logs; same_as is symmetric in them."""
    assert beats(0.5).bounds == (math.log(1.5), math.inf)
    assert lower(0.5).bounds == (-math.inf, math.log(0.5))
    assert same_as(0.1).bounds == pytest.approx((math.log(0.9), -math.log(0.9)))


def test_a_comparison_beside_names_an_unusual_metric():
    """As a claim does, in words of its own."""
    assert differs().call(("a", "b"), "p95", "throughput") == "a against b (p95)"


@pytest.mark.parametrize(
    ("claim", "limits"),
    [
        (beats(), (1.0,)),
        (beats(0.055), (1.055,)),
        (no_slower_than(0.05), (0.95,)),
        (same_as(0.2), (0.8, 1.25)),
        (lower(0.5), (0.5,)),
        (differs(), (1.0,)),
        (dataclasses.replace(beats(), apart=math.log(1.25)), (0.8, 1.0, 1.25)),
    ],
)
def test_the_limits_are_the_ratios_at_which_the_answer_changes(claim, limits):
    """On separate clusters also those between which a difference of equal clusters can explain what was measured."""
    assert claim.limits == limits
