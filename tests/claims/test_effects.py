"""The kinds of claims about the effect of an option: how they are written and what they say."""

from __future__ import annotations

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import KINDS, Outcome

ONE = ("sync_binlog=0", "sync_binlog=1")
TWO = (*ONE, "flush=2", "flush=1")


@pytest.mark.parametrize(
    ("claim", "one", "two"),
    [
        (
            kinds.effect_beats(0.05),
            'effects["sync_binlog"].beats(by=0.05)',
            'effects["sync_binlog", "flush"].beats(by=0.05)',
        ),
        (
            kinds.effect_same_as(0.1),
            'effects["sync_binlog"].same_as(within=0.1)',
            'effects["sync_binlog", "flush"].same_as(within=0.1)',
        ),
        (
            kinds.effect_differs(),
            "sync_binlog=0 against sync_binlog=1",
            "sync_binlog=0 against sync_binlog=1 with flush=2 and with flush=1",
        ),
    ],
)
def test_a_claim_is_written_as_in_the_test(claim, one, two):
    """With the names of the options, whatever their levels are."""
    assert claim.call(ONE, "throughput", "throughput") == one
    assert claim.call(TWO, "throughput", "throughput") == two


def test_the_identity_has_the_level():
    """Two calls may compare other levels of one option."""
    claim = kinds.effect_beats(0.05)

    assert claim.identity(ONE, "throughput") == 'effects["sync_binlog=0"].beats(metric="throughput")'


def test_the_sentence_names_the_levels():
    """Of one option both levels; of two options the gain of the first one at the levels of the second one."""
    beats, same = kinds.effect_beats(0.05), kinds.effect_same_as(0.05)

    assert (
        beats.sentence(Outcome.HOLDS, ONE, "throughput", "/s")
        == "sync_binlog=0 is more than 5 % faster than sync_binlog=1"
    )
    assert beats.sentence(Outcome.FAILS, TWO, "throughput", "/s") == (
        "the gain of sync_binlog=0 over sync_binlog=1 is not more than 5 % larger with flush=2 than with flush=1"
    )
    assert (
        same.sentence(Outcome.HOLDS, ONE, "p95", "ms")
        == "sync_binlog=0 and sync_binlog=1 are equally fast within 5 %, by p95"
    )
    assert same.sentence(Outcome.HOLDS, TWO, "throughput", "/s") == (
        "the gain of sync_binlog=0 over sync_binlog=1 is equal within 5 % with flush=2 and with flush=1"
    )


def test_the_headline_has_the_ratio():
    """Of two levels, or of two gains."""
    kind = KINDS["effect_same_as"]

    assert (
        kind.headline("1.84x", ONE, "throughput", "/s", holds=False, count=16)
        == "sync_binlog=0 is 1.84x as fast as sync_binlog=1"
    )
    assert kind.headline("0.80x", TWO, "throughput", "/s", holds=True, count=16) == (
        "the gain of sync_binlog=0 is 0.80x as large with flush=2 as with flush=1"
    )


def test_no_series_has_a_claim_about_an_effect():
    """They compare no pairs of two series, and they have other looks."""
    found = [name for name, kind in KINDS.items() if kind.is_ratio and not kind.paired]

    assert sorted(found) == ["effect_beats", "effect_differs", "effect_same_as"]
    assert all(KINDS[name].looks(1)[0] == KINDS[name].earliest(0.0001) == 16 for name in found)
