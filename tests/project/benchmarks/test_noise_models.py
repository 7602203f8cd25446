"""The table of noise models: its vectorised looks are those of the engine, and the errors are kept."""

import math

import numpy as np
import pytest

from benchmarks import noise_models
from benchmarks.critical_values import IN_OPENINGS, RANK_LOOKS, draw, mann_whitney, rank_sums
from pytest_dbcluster.claims import critical_values, intervals
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import beats
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.verdict import replay

RUNS = 60
DRAWS = 20_000
# Where a claim is decided at 8 pairs if all rounds of one opening block are on one side: the look that there is no
# more.
GONE = 8


def sample(name):
    """Runs of a model with an effect, so that some are decided: labels, ratios and signs as the script draws them."""
    rng = np.random.default_rng(7)
    times, others = noise_models.PROMISED[name].make(rng, RUNS)
    effects = np.linspace(-2, 2, RUNS)[:, None] * np.std(times)
    if others is None:
        others = times
    return draw(times.astype(np.float64) - effects, rng, others.astype(np.float64))


def pairs_of(labelled, ratios, signs):
    """The pairs of one run: the rounds of the opening blocks, then the log ratios of the later pairs."""
    candidate = [*(-labelled[:, 0].reshape(-1)), *ratios[IN_OPENINGS:]]
    baseline = [*(-labelled[:, 1].reshape(-1)), *[0.0] * (len(ratios) - IN_OPENINGS)]
    return Pairs(tuple(map(float, candidate)), tuple(map(float, baseline)), tuple(bool(sign > 0) for sign in signs))


@pytest.mark.parametrize("name", ["CV 3 v 9 %", "two modes of 5 %, CV 1 % each, v CV 1 %", "drifting, both"])
def test_the_script_decides_as_the_engine_does(name):
    """Each look of 60 runs, and the whole claim: the same answers of ``intervals.rejects`` and ``verdict.replay``."""
    labelled, ratios, signs = sample(name)
    found = {look: mann_whitney(labelled, look // 4) for look in critical_values.OF_OPENINGS}
    found |= {look: rank_sums(ratios[:, :look], signs[:, :look]) for look in RANK_LOOKS}
    up, down = noise_models.rejections(found, 0.0005)
    outcomes = set()
    for run in range(RUNS):
        pairs = pairs_of(labelled[run], ratios[run], signs[run])
        looks = [intervals.rejects(pairs.first(look), 0.0005, 0.0) for look in critical_values.LOOKS]
        assert (any(above for above, _ in looks), any(below for _, below in looks)) == (up[run], down[run])
        outcome = replay(beats(), pairs).outcome
        if outcome is not Outcome.INCONCLUSIVE:
            assert {Outcome.HOLDS: up[run], Outcome.FAILS: down[run]}[outcome]
        outcomes.add(outcome)
    assert outcomes == set(Outcome)


@pytest.mark.parametrize("name", noise_models.PROMISED)
def test_no_noise_makes_more_errors_than_promised(name):
    """Twenty thousand draws of each model, towards both sides, with 3.1 standard errors of tolerance."""
    model = noise_models.PROMISED[name]
    for level, sides in noise_models.errors(model, DRAWS, seed=11).items():
        allowed = level if level < 0.05 or model.independent else critical_values.GUARD_BOUND
        tests = 2 * DRAWS
        assert sum(sides) <= tests * allowed + 3.1 * math.sqrt(tests * allowed) + 1


def test_a_look_at_8_pairs_would_break_the_promise():
    """Two modes against a small spread: all 8 rounds lie on one side in 1 of 256 draws, eight times the promise."""
    rng = np.random.default_rng(5)
    times, others = noise_models.PROMISED["two modes of 5 %, CV 1 % each, v CV 1 %"].make(rng, 20_000)
    labelled, _, _ = draw(times, rng, others)
    share = float(np.mean(mann_whitney(labelled, GONE // 4) <= 0))
    assert share == pytest.approx(1 / 256, rel=0.3)
    assert all(critical_values.boundary(level).at(GONE) is None for level in critical_values.LEVELS[1:])


@pytest.mark.parametrize("name", noise_models.ON_THE_BOUND)
def test_no_counter_makes_more_errors_than_promised(name):
    """Ten thousand runs of each, whose pairs lie on either side of the bound equally often."""
    runs = 10_000
    values = noise_models.ON_THE_BOUND[name](np.random.default_rng(4), (runs, 160))
    for level in (0.05, 0.0005):
        for wrong in noise_models.counter_errors(values, level)[:2]:
            assert wrong <= runs * level + 3.1 * math.sqrt(runs * level) + 1


def test_equal_means_are_no_claim_of_a_counter():
    """Rare bursts count as much as a steady one, and less in the typical round: it is lower in every run."""
    values = noise_models.EQUAL_MEANS["same mean, rare bursts v steady"](np.random.default_rng(4), (1000, 160))
    higher, lower, _, agreed = noise_models.counter_errors(values, 0.0005)
    assert (higher, lower) == (0, 1000)
    assert agreed < lower


def test_the_table_is_printed(monkeypatch, capsys):
    """Each row has an error with its upper limit for every level, and the rows without a promise follow."""
    monkeypatch.setattr("sys.argv", ["noise_models", "--draws", "2000"])
    monkeypatch.setattr(noise_models, "RUNS", 100)  # of 20 draws each
    monkeypatch.setattr(noise_models, "OUTSIDE_DRAWS", 1_000)
    monkeypatch.setattr(noise_models, "COUNTED", 2_000)
    monkeypatch.setattr(noise_models, "PROMISED", {"CV 3 v 9 %": noise_models.PROMISED["CV 3 v 9 %"]})
    noise_models.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2000 draws a model")
    assert lines[3].startswith("| CV 3 v 9 % | 0.0")
    counters = [*noise_models.ON_THE_BOUND, *noise_models.EQUAL_MEANS]
    named = [line.split(" | ")[0] for line in lines[5:]]
    outside = len(noise_models.OUTSIDE)
    assert named[:outside] == [f"| {name}" for name in noise_models.OUTSIDE]
    assert named[outside + 1 :] == [f"| {name}" for name in counters]
    assert float(lines[5].split(" | ")[2]) > 0.01
