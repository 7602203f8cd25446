"""How often verdicts are wrong, and how soon they are right: seeded simulations with exact binomial bounds.

Each assertion is a test that the promised rate is kept; by chance alone one would fail once in a million.
"""

import dataclasses
import functools
import json
import math
import random

import numpy as np
import pytest

from benchmarks import critical_values, noise_replay
from benchmarks.noise_replay import at_most
from pytest_dbcluster.claims import critical_values as critical
from pytest_dbcluster.claims import intervals, power
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import beats, no_slower_than, same_as
from pytest_dbcluster.claims.verdict import replay

CHANCE = 1e-6
COARSE = 0.1  # log ratio: the ends of intervals need not be nearer for experiments that read only the answer


def rate_kept(count, of, promised):
    """Whether ``count`` wrong answers do not refute the promised rate."""
    return count == 0 or 1 - at_most(count - 1, of, promised) > CHANCE


def rounds(source, count, cv):
    """Logs of round times: drift (AR(1), rho .9), independent noise of the same size, and 3 % stalls of 2x."""
    sd = math.sqrt(math.log1p(cv * cv))
    drift, step = source.gauss(0, sd), sd * math.sqrt(1 - 0.81)
    for _ in range(count):
        yield drift + source.gauss(0, sd) + (math.log(2) if source.random() < 0.03 else 0.0)
        drift = 0.9 * drift + source.gauss(0, step)


@functools.cache
def equal(noise, seed, cv):
    """The pairs of two equal variants, which several tests ask."""
    return noise_replay.draw(list(noise(random.Random(seed), 320, cv)), seed, 0.0)


def experiment(claim, seed, *, cv, effect=0.0, noise=rounds):
    """The verdict on rounds that run in the order of the blocks; the candidate is faster by ``effect``."""
    pairs = equal(noise, seed, cv)
    if effect:
        faster = tuple(speed + math.log1p(effect) for speed in pairs.candidate)
        pairs = dataclasses.replace(pairs, candidate=faster)
    return replay(claim, pairs)


def answers(claim, runs, *, within=COARSE, **world):
    """The verdicts of so many seeded experiments.

    No answer rests on the figures that a verdict shows. So the ends of its interval are exact to ``within``, and what
    it could see is not computed.
    """
    with pytest.MonkeyPatch.context() as patch:
        for shown in (intervals.interval, intervals.estimate):
            patch.setattr(intervals, shown.__name__, functools.partial(shown, within=within))
        patch.setattr(power, "detectable_range", lambda pairs, level: (math.inf, math.inf))
        patch.setattr(power, "pairs_needed", lambda pairs, distance, level: None)
        return [experiment(claim, seed, **world) for seed in range(runs)]


def count(verdicts, outcome):
    """How many verdicts have this outcome."""
    return sum(verdict.outcome is outcome for verdict in verdicts)


@pytest.mark.parametrize("noise", critical_values.CHECKED.values(), ids=critical_values.CHECKED)
def test_no_level_rejects_more_often_than_promised(noise):
    """In 4000 claims without an effect each row of the table errs towards one side no more than its level.

    A guard keeps .05 for independent rounds, and its bound for waves, drifts and all other noise.
    """
    rng = np.random.default_rng(77)
    batches = [critical_values.rejections(noise(rng, 1000, 320), rng) for _ in range(4)]
    counts = np.sum(batches, axis=0)
    levels = [0.05 if noise is critical_values.normal else 0.08, *critical.LEVELS[1:]]
    assert all(rate_kept(wrong, 4000, level) for wrong, level in zip(counts, levels, strict=True))


def test_values_that_ignore_the_other_looks_would_be_found_out():
    """The same check refuses to call .05 what is wrong at any of fifteen looks at .05 each."""
    rng = np.random.default_rng(77)
    found = critical_values.statistics_of(critical_values.normal(rng, 4000, 320), rng)
    naive = [found[look] >= critical_values.strongest(look, 0.05) for look in critical_values.RANK_LOOKS]
    assert not rate_kept(int(np.any(naive, axis=0).sum()), 4000, 0.05)


def position(source, count, cv):
    """The second round of every pair is a tenth slower."""
    return (source.gauss(0, cv) + math.log(1.1) * (slot % 2) for slot in range(count))


def checkpoint(source, count, cv):
    """Every fourth round is 1.3 times slower."""
    start = int(4 * source.random())
    return (source.gauss(0, cv) + math.log(1.3) * ((slot + start) % 4 == 0) for slot in range(count))


@pytest.mark.parametrize(("noise", "cv"), [(rounds, 0.1), (position, 0.02), (checkpoint, 0.1)])
def test_a_variant_does_not_beat_itself(noise, cv):
    """Neither answer of beats comes more often than once in 2000, under drift, position effects, checkpoints.

    An error of 6 % is found in 99 of 100 such experiments. The tests of each level above see smaller ones.
    """
    verdicts = answers(beats(), 200, cv=cv, noise=noise)

    assert rate_kept(count(verdicts, Outcome.HOLDS), 200, 0.0005)
    assert rate_kept(count(verdicts, Outcome.FAILS), 200, 0.0005)


@pytest.mark.parametrize("claim", [no_slower_than(0.05), same_as(0.1)])
def test_guards_of_equal_variants_are_not_red(claim):
    """A guard fails between equal variants no more than once in 2000, and is usually proven."""
    verdicts = answers(claim, 150, cv=0.05)

    assert rate_kept(count(verdicts, Outcome.FAILS), 150, 0.0005)
    assert count(verdicts, Outcome.HOLDS) > 147
    assert sum(verdict.pairs for verdict in verdicts) / 150 <= 30


def test_a_guard_on_its_margin_is_green_one_time_in_twenty():
    """A candidate slower by exactly the margin passes in no more than 5 % of the measurements."""
    verdicts = answers(no_slower_than(0.05), 200, cv=0.1, effect=-0.05)

    assert rate_kept(count(verdicts, Outcome.HOLDS), 200, 0.05)
    assert rate_kept(count(verdicts, Outcome.FAILS), 200, 0.0005)


def test_seven_times_faster_is_proven_in_twelve_pairs():
    """The size of the effect of flushing less often needs at most twelve pairs in 99 % of the measurements."""
    verdicts = answers(beats(), 100, cv=0.05, effect=6.0)

    assert sum(verdict.outcome is Outcome.HOLDS and verdict.pairs <= 12 for verdict in verdicts) >= 99


def test_half_faster_is_proven_in_22_pairs():
    """A claim of 10 % about a true 50 % at a CV of 10 % holds, in 22 pairs on average."""
    verdicts = answers(beats(0.1), 150, cv=0.1, effect=0.5)

    assert count(verdicts, Outcome.HOLDS) >= 149
    assert sum(verdict.pairs for verdict in verdicts) / 150 <= 22


def test_a_fifth_faster_is_proven_in_56_pairs():
    """A true 20 % at a CV of 10 % is found within 56 pairs in nine measurements of ten."""
    verdicts = answers(beats(), 150, cv=0.1, effect=0.2)

    assert sum(verdict.outcome is Outcome.HOLDS and verdict.pairs <= 56 for verdict in verdicts) >= 135


def test_the_interval_at_the_stop_covers_the_truth():
    """Stopping when the answer is clear leaves the printed 99.9 % interval right in 999 of 1000 measurements."""
    verdicts = answers(beats(), 200, within=intervals.ROUNDING, cv=0.1, effect=0.1)

    missed = sum(not verdict.low <= 1.1 <= verdict.high for verdict in verdicts)
    assert rate_kept(missed, 200, 0.001)


def recording(path, seconds):
    """A trace file of these rounds."""
    trace = {"workload": "write", "recorded": "2026-02-03", "rounds": seconds, "fingerprint": {"cores": 2}}
    path.write_text(json.dumps(trace))
    return path


def test_recorded_noise_is_replayed_as_two_equal_variants(tmp_path, capsys, monkeypatch):
    """A trace gives one line per claim with its wrong verdicts, their bound, answers and mean pairs."""
    source = random.Random(4)
    path = recording(tmp_path / "trace.json", [math.exp(log) for log in rounds(source, 700, 0.05)])
    monkeypatch.setattr("sys.argv", ["noise_replay", str(path), "--experiments", "20"])

    assert noise_replay.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "20 experiments, effect +0%, seed 1"
    assert [line.split(" | ")[2] for line in lines[4:]] == ["beats 0", "no_slower_than 0.05", "same_as 0.1"]
    assert all("| 0 (<= 13.91 %) |" in line for line in lines[4:])


def test_replayed_noise_with_an_effect_shows_what_is_found(tmp_path, capsys, monkeypatch):
    """With the candidate half faster every claim of beats holds, and no verdict counts as wrong."""
    source = random.Random(4)
    path = recording(tmp_path / "trace.json", [math.exp(log) for log in rounds(source, 400, 0.05)])
    monkeypatch.setattr("sys.argv", ["noise_replay", str(path), "--experiments", "10", "--effect", "0.5"])

    assert noise_replay.main() == 0
    assert "| beats 0 | - | 100.0 / 0.0 |" in capsys.readouterr().out


def test_a_rate_above_the_limit_is_the_exit_code(tmp_path, monkeypatch):
    """When every verdict is wrong the script ends with 1."""
    path = recording(tmp_path / "trace.json", [1.0 + 0.01 * (k % 7) for k in range(400)])
    monkeypatch.setattr(noise_replay, "wrong", lambda verdict: True)
    monkeypatch.setattr("sys.argv", ["noise_replay", str(path), "--experiments", "5"])

    assert noise_replay.main() == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no json", "is not a trace of rounds: JSONDecodeError"),
        ("{}", "is not a trace of rounds: KeyError"),
        ('{"workload": "w", "recorded": "-", "rounds": 5}', "is not a trace of rounds: TypeError"),
        ('{"workload": "w", "recorded": "-", "rounds": [1, 2]}', ": a trace needs at least 16 rounds of more than 0 s"),
        ('{"workload": "w", "recorded": "-", "rounds": [0,1,1,1,1,1,1,1,1,1,1,1]}', "of more than 0 s, each finite"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path, text, problem):
    """A file without usable rounds ends the script with its name and what is wrong."""
    path = tmp_path / "trace.json"
    path.write_text(text)

    with pytest.raises(SystemExit) as ended:
        noise_replay.read_trace(path)
    assert str(path) in str(ended.value)
    assert problem in str(ended.value)


def test_the_binomial_bound_is_exact():
    """None wrong in 3000 bounds the rate at one in 1000, and the tail agrees with counting."""
    assert noise_replay.upper_bound(0, 3000) == pytest.approx(0.001, rel=0.01)
    counted = sum(math.comb(20, k) * 0.3**k * 0.7 ** (20 - k) for k in range(6))
    assert at_most(5, 20, 0.3) == pytest.approx(counted)
    assert (at_most(3, 3, 1.0), at_most(2, 3, 1.0), at_most(0, 3, 0.0)) == (1, 0, 1)
