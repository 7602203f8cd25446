"""What the benchmark of the suites says of their results."""

from __future__ import annotations

import dataclasses
import os

import pytest

from benchmarks import suites
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.reporting.results_directory import Results
from pytest_dbcluster.system import probes
from tests.support import curves
from tests.support.records import record, undecided


def saved(directory, *drawn):
    """Two claims that tests assert, one of them open, one that is shown alone; 33 s of rounds, and drains of 2 s.

    drawn: curves beside them.
    """
    made = Results(directory)
    for claim in (record(), undecided(), record(asserted=False)):
        made.add(claim)
    for one in drawn:
        made.add_curve(one, "")
    for path in directory.glob("rounds/*.csv"):
        path.unlink()
    lines = [f"galera3,{number},7.5,0.5" for number in range(4)]
    (directory / "rounds" / "01.csv").write_text("variant,started,seconds,drain_seconds\n" + "\n".join(lines) + "\n")
    (directory / "rounds" / "02.csv").write_text("variant,started,seconds\ngalera3,0,7.5\ngalera3,9,3.0\n")
    return directory


@pytest.fixture
def results(tmp_path):
    """Those of ``saved``, without a curve."""
    return saved(tmp_path)


def test_a_row_has_the_share_and_the_claims_that_tests_assert(results):
    """A round that two claims use counts once; each target that is missed is named."""
    ran = suites.Ran.of("galera", 60.0, results)

    assert ran.row == "| galera | 1.0 | 0.4 | 0.58 | 0.55 | 2 | 1 | 0 | 0 | share below 0.7, decided below 0.9 |"
    row = suites.Ran.of("galera", 48.0, results, 99_600_000).row
    assert row.startswith("| galera | 0.8 | 0.2 | 0.73 | 0.69 | 2 | 1 | 0 | 100 | decided")


def test_the_rounds_of_a_curve_are_measured_too(tmp_path):
    """Whether it is drawn alone or has claims, with which it shares rounds."""
    of_claim = dataclasses.replace(curves.point(4, "galera3", seconds=(7.5,)).rounds[0], started=3.0)
    drawn = curves.point(4, "galera1", seconds=(2.0, 2.5))
    alone = [
        dataclasses.replace(one, started=20.0 + number, counters={"drain_seconds": 0.25})
        for number, one in enumerate(drawn.rounds)
    ]
    point = dataclasses.replace(drawn, rounds=(of_claim, *alone))
    ran = suites.Ran.of("galera", 60.0, saved(tmp_path, curves.curve((point,))))

    assert (ran.rounds, ran.drains) == (33.0 + 4.5, 2.0 + 0.5)


@pytest.mark.parametrize(
    "reason",
    [
        f"{probes.shared_cores(2)} (galera2 has 2 nodes, galera1 1 node)",
        "an fsync takes 3 us in /dev/shm: this disk cannot show the cost of flushes",
    ],
)
def test_a_claim_that_the_machine_cannot_show_has_a_column_of_its_own(tmp_path, reason):
    """It is not one of ten of which nine have to be decided, but it is listed with the others."""
    verdict = dataclasses.replace(undecided().verdict, reason=reason)
    made = Results(tmp_path)
    for claim in (record(), dataclasses.replace(undecided(), verdict=verdict)):
        made.add(claim)
    ran = suites.Ran.of("galera", 60.0, tmp_path)

    assert (ran.claims, ran.hidden, len(ran.inconclusive)) == (2, 1, 1)
    assert "decided" not in ran.row
    met = dataclasses.replace(ran, rounds=60.0, claims=11)
    assert met.row == "| galera | 1.0 | 0.0 | 1.00 | 1.00 | 11 | 10 | 1 | 0 | met |"
    assert "decided below 0.9" in dataclasses.replace(ran, claims=11, inconclusive=["", "", ""]).row


def test_a_claim_that_noise_leaves_open_could_be_shown(tmp_path):
    """A futile claim may hold in the next run, so it counts as one that was not decided."""
    verdict = dataclasses.replace(
        undecided().verdict, reason="stopped early: even 160 pairs would almost surely not decide (chance < 1 %)"
    )
    Results(tmp_path).add(dataclasses.replace(undecided(), verdict=verdict))

    assert suites.Ran.of("galera", 60.0, tmp_path).hidden == 0


def test_an_inconclusive_claim_is_listed_with_its_reason(results):
    """With its test, so that it can be run alone."""
    (line,) = suites.Ran.of("galera", 60.0, results).inconclusive
    reason = undecided().verdict.reason

    assert line.startswith("test_flush.py::test_flush_2[write]: ")
    assert line.endswith(f": {reason}")


def test_suites_of_earlier_runs_are_in_the_table(results, tmp_path, monkeypatch, capsys):
    """Their hours may be divided; the minutes that are not measured are those of all."""
    kept = tmp_path / "kept.jsonl"
    monkeypatch.setattr(suites, "run", lambda suite, directory: suites.Ran.of(suite, 60.0, results))
    for name in ("galera", "drbd"):
        monkeypatch.setattr("sys.argv", ["suites.py", name, f"--keep={kept}"])
        suites.main()

    assert [ran.suite for ran in suites.kept(kept)] == ["galera", "drbd"]
    last = capsys.readouterr().out.rpartition("| suite |")[2]
    assert last.count("| 1.0 | 0.4 | 0.58 |") == 2
    assert "not measured in all: 0.8 min" in last


def test_the_memory_of_a_process_is_its_peak():
    """A process that has ended has none."""
    assert suites.peak(os.getpid()) > 10_000_000
    assert suites.peak(0) == 0


def test_a_suite_that_ends_early_is_no_figure(tmp_path, monkeypatch):
    """Such as one that pytest refused; the error has its exit status."""
    (tmp_path / "suites" / "none").mkdir(parents=True)
    monkeypatch.setattr(suites.stage, "ROOT", tmp_path)

    with pytest.raises(ProvisionError, match="pytest suites/none ended with 5"):
        suites.run("none", tmp_path / "results")


def test_an_unknown_suite_is_refused_with_the_known_ones(monkeypatch, capsys):
    """Before any is run."""
    monkeypatch.setattr("sys.argv", ["suites.py", "galra"])

    with pytest.raises(SystemExit):
        suites.main()
    assert "'galra' is not a suite: drbd, durability, faults, galera," in capsys.readouterr().err
