"""The parts of the scripts that need no server."""

import dataclasses
import importlib
import json
import math
import random
import sys
import types
from pathlib import Path

import pytest

from benchmarks import (
    carry_over_warnings,
    collection,
    compare,
    container,
    equal_variants,
    first_verdict,
    noise_replay,
    plugin_cpu,
    power,
    quick_paper,
    record_noise,
    remote,
    round_cost,
    time_to_verdict,
)
from benchmarks.noise_replay import read_trace
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import beats
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.tables import entries
from pytest_dbcluster.reporting.tables.no_worse import Result
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.system.tracing.recorder import Recorder
from pytest_dbcluster.workloads.mysqlslap import MODES, MySQLSlap
from tests.support.records import failed, record, undecided

MACHINE = {"cpu": "2 x any", "release": "10.11.19"}
SCRIPTS = [path.stem for path in (Path(__file__).parents[3] / "benchmarks").glob("*.py") if path.stem != "__init__"]


def one_round(seconds, wall=1.0, **samples):
    """A round of so many measured seconds."""
    return Round("galera3", 0, 0, RunResult(seconds, 1000), wall, 0.0, samples=samples)


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in ("ratios", "stage", "tpcc_peers")])
def test_every_script_explains_itself(name, monkeypatch, capsys):
    """--help starts nothing and shows how the script is called."""
    monkeypatch.setattr(sys, "argv", [name, "--help"])

    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{name}").main()

    assert ended.value.code == 0
    assert f"python benchmarks/{name}.py" in capsys.readouterr().out


def test_a_rounds_cost_is_its_wall_time_over_its_measured_time():
    """The row judges the median, and shows what lies beside the measured time in seconds."""
    cost = round_cost.Cost.of([one_round(0.4, wall=0.6), one_round(0.5, wall=0.6), one_round(0.4, wall=0.8)])

    assert cost.beside == pytest.approx(0.2)
    assert "1.5 (1.2 .. 2)" in cost.row("write", "own", "quick")
    assert "not met" in cost.row("write", "own", "long")
    assert "target" not in cost.row("write", "one", "stock")


def test_the_parts_of_a_round_are_those_beside_its_measured_time():
    """The workload counts with its start and end; the parts of the warm-up do not count."""
    made = Recorder()
    made.seconds |= {"workload": 1.0, "switch": 0.08, "drain": 0.02, "warm-up": 9.0, "start": 5.0}
    text = round_cost.parts(made, round_cost.Cost.of([one_round(0.4), one_round(0.5)]))

    assert text.startswith("workload beside measured 50 ms, switch 40 ms, drain 10 ms, ")
    assert "warm-up" not in text
    assert "| 0.600 |" in round_cost.Cost.of([one_round(0.4)]).unmeasured_row("tpcc")


@pytest.mark.parametrize("mode", MODES)
def test_a_longer_load_is_the_same_load_with_more_queries(mode):
    """A round of .4 s gets five times its queries, and every client still runs the same number of them."""
    load = round_cost.longer(MySQLSlap(mode), 0.4)

    assert load.round_queries("quick") == 5 * MySQLSlap(mode).round_queries("quick")
    assert load.mode == mode


def test_what_containers_cost_is_compared_round_by_round():
    """The time beside the measured one has the target; throughput is a fact, and has none."""
    rounds = container.Rounds([one_round(0.5, wall=0.7), one_round(0.5, wall=0.6)], [one_round(0.4, wall=0.5)] * 2)
    beside, more, whole, speed = rounds.lines("write")

    assert "| 1.5 (1 .. 2) | target <= 1.05: not met |" in beside
    assert "| 0.1 (0 .. 0.2) |" in more
    assert "| 1.3 (1.2 .. 1.4) |  |" in whole
    assert "| 0.8 (0.8 .. 0.8) |  |" in speed


def test_a_round_over_ssh_may_take_six_round_trips_longer():
    """And ten milliseconds; the median of the differences, round by round, is judged."""
    far, here = [0.3, 0.1299, 0.15], [0.1, 0.1, 0.1]

    assert remote.overhead_line(far, here, 0.02, 0.02).endswith("| 50 (29.9 .. 200) | target <= 130: met |")
    assert remote.overhead_line(far, here, 0.0, 0.0012).endswith("| 50 (29.9 .. 200) | target <= 10: not met |")


def test_a_comparison_has_answered_when_it_says_worse_or_no_worse():
    """The share counts both; the table says how often each was the result."""
    runs = [compare.Run(result, 200.0, "") for result in (Result.WORSE, Result.NO_WORSE, Result.UNKNOWN)]

    noisy = [dataclasses.replace(run, noise=noise) for run, noise in zip(runs, (0.1, math.nan, 0.2), strict=True)]
    assert compare.line("flush", runs) == "| flush | 200 (200 .. 200) | unknown | 1 | 1 | 1 | 0.67 | not met |"
    assert "| 1.00 | met |" in compare.line("flush", runs[:2])
    assert "| 0.15 (0.1 .. 0.2) |" in compare.line("flush", noisy)


def test_the_noise_of_a_comparison_is_that_of_rounds_of_a_second(monkeypatch, tmp_path):
    """A quarter of the time doubles the noise. The noisier workload counts, and p95 does not."""

    def claim(ratios, seconds, metric="goodput"):
        names = {"candidate": "new", "baseline": "old", "asserted": True, "metric": metric}
        values = {"new": ratios, "old": [1.0] * len(ratios)}
        verdict = types.SimpleNamespace(pairs=len(ratios))
        return types.SimpleNamespace(**names, values=values, verdict=verdict, seconds={"new": [seconds] * len(ratios)})

    claims = [claim([1.0, math.exp(0.2)], 0.25), claim([1.0, math.e], 1.0, "p95"), claim([1.0, 1.0], 1.0)]
    monkeypatch.setattr(compare.schema, "claim_documents", lambda directory: claims)

    assert compare.noise(tmp_path) == pytest.approx(0.2 / math.sqrt(2) / 2)
    del claims[:1], claims[1:]
    assert math.isnan(compare.noise(tmp_path))


def test_the_share_of_a_core_weighs_rounds_by_their_length():
    """A long quiet round counts for more than a short busy one."""
    assert plugin_cpu.share([one_round(3.0, cpu_plugin=0.0), one_round(1.0, cpu_plugin=0.04)]) == pytest.approx(1.0)


def test_plain_tests_collect_to_the_ids_of_the_suites(pytester):
    """Same files, functions and parameters, with nothing of the plugin in them."""
    listing = "suites/a/test_one.py::test_x[write]\nsuites/a/test_one.py::test_x[key-2]\nsuites/b/test_two.py::test_y\n"
    files = collection.plain_files(f"expected time: about 1 min\n{listing}\n3 tests collected in 0.1s")

    collection.write(files, pytester.path)

    assert set(files) == {"suites/a/test_one.py", "suites/b/test_two.py"}
    assert listing in pytester.runpytest("--collect-only", "-q", "-p", "no:dbcluster").stdout.str()
    assert not any("dbcluster" in source for source in files.values())


def test_collections_are_compared_with_the_plain_one():
    """Each kind but the last shows what it takes more."""
    text = collection.table(["suites", "plain"], [[1.5, 1.7], [1.0, 1.0]])

    assert "| suites | 1.6 (1.5 .. 1.7) | 0.6 (0.5 .. 0.7) |" in text
    assert text.endswith("| plain | 1 (1 .. 1) |  |")


def test_only_the_calls_are_scaled_to_ten_iterations():
    """Starting the servers takes as long whatever they run then."""
    assert time_to_verdict.scale(wall=26.0, calls=20.0, iterations=2) == pytest.approx(106.0)
    assert time_to_verdict.scale(wall=26.0, calls=20.0, iterations=10) == 26.0


@pytest.mark.parametrize("word", ["holds", "refuted", "inconclusive"])
def test_the_line_of_a_verdict_is_known(word):
    """It is the line that the terminal writes for a claim, not one of its progress."""
    made = {"holds": record, "refuted": failed, "inconclusive": undecided}[word]()
    [(line, _), *_] = entries.lines([entries.of_claim(made)], 80)

    assert first_verdict.VERDICT.match(f"  {line}\n")
    assert not first_verdict.VERDICT.match("  mysqlslap write c50   pair 6 of at most 160   galera3 0.4 s\n")


def blocks(ratio, number):
    """Blocks with this log ratio, of which paper begins every second."""
    return quick_paper.pairs_of([ratio] * number, [k % 2 == 0 for k in range(number)])


@pytest.mark.parametrize("mode", MODES)
def test_a_cause_is_named_beyond_ten_per_cent(mode):
    """Below it there is nothing to explain; a cause that is not known is not made up, nor one for noise."""
    assert quick_paper.cause(mode, blocks(0.05, 20)) == "within 10 %"
    assert quick_paper.cause(mode, blocks(0.2, 20)) == quick_paper.CAUSES.get(mode, "cause not known")
    assert quick_paper.cause(mode, blocks(0.2, 2)).startswith("inconclusive")


def test_few_blocks_have_no_interval():
    """Two blocks give an estimate and nothing else."""
    assert quick_paper.ratio_text(blocks(math.log(2.0), 2)) == "2 (0 .. inf)"


def test_a_profiles_speed_ratio_is_that_of_its_own_rounds():
    """The second variant took half the seconds a query: it is twice as fast in that profile."""
    block = {("quick", 0): 2.0, ("quick", 1): 1.0, ("paper", 0): 3.0, ("paper", 1): 3.0}

    assert quick_paper.speed_ratio(block, "quick") == pytest.approx(math.log(2.0))
    assert quick_paper.speed_ratio(block, "paper") == 0.0


def test_a_trace_is_continued_and_fits_the_replay(tmp_path):
    """The second recording adds what is missing, and says where it began."""
    path = tmp_path / "deep" / "noise.json"
    for rounds in (10, 16):
        trace = record_noise.open_trace(path, "mysqlslap write c50", MACHINE)
        record_noise.record(trace, rounds, lambda: 0.4, lambda trace=trace: record_noise.save(path, trace))

    assert json.loads(path.read_text())["begins"] == [0, 10]
    assert read_trace(path).rounds == (0.4,) * 16
    assert [entry.name for entry in path.parent.iterdir()] == ["noise.json"]


def test_an_interrupted_recording_keeps_what_it_has(tmp_path):
    """Ctrl-C in round 4 leaves three rounds in the file."""
    path, trace = (
        tmp_path / "noise.json",
        record_noise.open_trace(tmp_path / "noise.json", "mysqlslap key c50", MACHINE),
    )
    seconds = iter([0.1, 0.2, 0.3])

    def draw():
        for one in seconds:
            return one
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_noise.record(trace, 100, draw, lambda: record_noise.save(path, trace))

    assert json.loads(path.read_text())["rounds"] == [0.1, 0.2, 0.3]


def test_a_trace_of_something_else_is_not_continued(tmp_path):
    """The message names what differs, and a file that is no trace is left alone."""
    path = tmp_path / "noise.json"
    record_noise.save(path, record_noise.open_trace(path, "mysqlslap write c50", MACHINE))

    with pytest.raises(ConfigError, match=r"release 10\.11\.19 and not 11\.8\.6"):
        record_noise.open_trace(path, "mysqlslap write c50", {**MACHINE, "release": "11.8.6"})
    with pytest.raises(ConfigError, match="workload mysqlslap write c50 and not mysqlslap key c50"):
        record_noise.open_trace(path, "mysqlslap key c50", MACHINE)
    path.write_text("[]")
    with pytest.raises(ConfigError, match="is not a trace of rounds"):
        record_noise.open_trace(path, "mysqlslap write c50", MACHINE)


@pytest.mark.parametrize(
    ("claim", "outcome", "wrong"),
    [
        ("beats", Outcome.HOLDS, 1),
        ("beats", Outcome.FAILS, 1),
        ("lower", Outcome.HOLDS, 1),
        ("beats", Outcome.INCONCLUSIVE, 0),
        ("same_as", Outcome.HOLDS, 0),
        ("same_as", Outcome.FAILS, 1),
        ("no_slower_than", Outcome.FAILS, 1),
    ],
)
def test_a_claim_about_equal_variants_is_wrong_when_it_finds_a_difference(claim, outcome, wrong):
    """``beats`` and ``lower`` decide nothing true about equal variants; a guard is right when it holds."""
    count = equal_variants.Count()
    count.add(claim, outcome)

    assert (count.claims, count.wrong) == (1, wrong)


def test_the_share_of_wrong_claims_is_compared_with_the_target():
    """The table has a row for each claim that was made; the last line counts all of them."""
    counts = {"write": {claim: equal_variants.Count() for claim in ("beats", "same_as", "lower")}}
    for outcome in (Outcome.INCONCLUSIVE, Outcome.HOLDS):
        counts["write"]["beats"].add("beats", outcome)
        counts["write"]["same_as"].add("same_as", outcome)
    rows = equal_variants.claims_table(counts, 0.0)

    assert rows[2:4] == ["| write | beats | 2 | 1 | 0 | 1 | 1 | 0 |", "| write | same_as | 2 | 1 | 0 | 1 | 0 | 0 |"]
    assert rows[-1] == "\n1 of 4 claims are wrong, target <= 0: not met"


def test_the_differences_of_equal_clusters_are_listed_by_workload():
    """The median and the largest, whichever cluster was faster; a workload without any has no row."""
    rows = equal_variants.differences_table({"write": [0.01] * 7, "key": [0.01, -0.02] * 4, "tpcc": []})

    assert rows[2:] == ["| write | 7 | 1.0 % | 1.0 % |", "| key | 8 | 1.5 % | 2.0 % |"]


def test_a_fresh_claim_is_decided_at_its_first_look_that_holds():
    """A candidate that is far faster holds after twelve pairs; an equal one at no look."""
    assert power.deciding_look(beats(), power.draw(random.Random(1), 1.0, 20)) == 12
    assert power.deciding_look(beats(), power.draw(random.Random(1), 0.0, 20)) is None


def test_pairs_that_would_decide_are_compared_with_the_look_before():
    """Claims hold at their number of pairs more often than one look earlier; a figure without runs is missed."""
    enough, earlier = power.needed_shares(beats(), 20, 100, seed=1)

    assert 0.3 < earlier < enough <= 1
    assert power.row("needs", [0.8, 0.79], 0.75, 1.0).endswith("  0.800   0.790  met")
    assert power.row("earlier", [0.7, math.nan], 0.0, 0.8).endswith("MISSED")


def test_carry_over_is_looked_for_in_the_rounds_that_decide():
    """The rounds and the pairs of one order have the same times; a candidate may be faster, and slow the next round."""
    times = [0.01 * number for number in range(60)]
    rounds = carry_over_warnings.place(times, 5, faster=0.3)
    pairs = noise_replay.draw(times, 5, math.expm1(0.3))
    slowed = carry_over_warnings.place(times, 5, faster=0.3, slower=0.04)
    more = [two.log_time - one.log_time for one, two in zip(rounds, slowed, strict=True)]

    assert sorted(-done.log_time for done in rounds if done.variant) == pytest.approx(sorted(pairs.candidate))
    assert sorted(-done.log_time for done in rounds if not done.variant) == pytest.approx(sorted(pairs.baseline))
    assert more == pytest.approx([0.04 if done.after == 1 else 0.0 for done in rounds])


def test_wrong_warnings_that_chance_does_not_explain_have_a_star():
    """At 1 of 100, 12 of 500 are too many, and 11 are not."""
    assert carry_over_warnings.cells([11, 12], 500) == "   0.022    0.024*"
