"""What a run leaves in its results directory."""

import csv
import dataclasses
import io
import json

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting import results_directory, rounds_csv, schema
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.recording import Asked, claim_record
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import RunResult
from tests.support.outages import series
from tests.support.pairs import orders
from tests.support.records import drained, failed, record, undecided
from tests.support.results import with_counters

NO_PAIR = dataclasses.replace(record().verdict, pairs=0)


@pytest.fixture(autouse=True)
def _no_charts(monkeypatch, request):
    """Charts have their own tests."""
    if "chart" not in request.function.__name__:
        monkeypatch.setattr(claim_chart, "svg", lambda made: None)


def lines(directory):
    """The claims that were kept."""
    return [json.loads(line) for line in (directory / "claims.jsonl").read_text().splitlines()]


def test_a_claim_is_a_line_of_json(tmp_path):
    """The line has all fields of the record, the seconds of its rounds, and the path of their CSV."""
    made = record(kinds.same_as(0.1), published=1.1)
    results_directory.Results(tmp_path).add(made)
    [kept] = lines(tmp_path)

    assert kept["format"] == 3
    assert (kept["look"], kept["looks"][:4], kept["instances"]) == (2, [8, 12, 14, 17], 1)
    assert kept["baseline_first"] == orders(1, 12)
    assert kept["verdict"]["outcome"] == made.verdict.outcome.value
    assert kept["verdict"]["claim"] == {"kind": "same_as", "margin": 0.1, "share": 0.5, "rate": 0.0, "apart": 0.0}
    assert kept["published"] == 1.1
    assert kept["differences"] == {"innodb_flush_log_at_trx_commit": ["1", "2"]}
    assert kept["seconds"]["flush_2"] == [one.seconds for one in made.rounds["flush_2"]]
    assert kept["values"]["galera3"] == [one.throughput for one in made.rounds["galera3"]]
    assert kept["began"] == 1_700_000_000.0
    assert kept["rounds_file"] == "rounds/01-flush_2.same_as_galera3_within_0.1-mysqlslap_write_c50.csv"


def test_what_is_not_a_number_is_text(tmp_path):
    """An infinite bound of an interval is saved as the text "inf"."""
    results_directory.Results(tmp_path).add(undecided(pairs=2))
    [kept] = lines(tmp_path)

    assert kept["verdict"]["high"] == "inf"
    assert "Infinity" not in (tmp_path / "claims.jsonl").read_text()
    assert "NaN" not in (tmp_path / "claims.jsonl").read_text()


def test_rounds_with_a_ledger_have_their_tails(tmp_path):
    """A column for each percentile in milliseconds, with the rate, the good ones and what limited the client."""
    ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of([0.01] * 99))})
    said = RunResult(2.0, 100, 99, good=99, ledger=ledger, rate=50.0, client_seconds=0.4, busiest=0.95)
    many = {
        name: [dataclasses.replace(one, outcome=said, limited="a thread") for one in found]
        for name, found in record().rounds.items()
    }
    made = record(rounds=many, metric="p95")
    [row, *_] = csv.DictReader(io.StringIO(results_directory.Results(tmp_path).add(made).rounds.read_text()))

    assert float(row["p95_ms"]) == pytest.approx(10, rel=0.011)
    shown = {name: row[name] for name in ("good", "goodput", "rate", "client_seconds", "busiest", "limited")}
    assert shown == {
        "good": "99", "goodput": "49.5", "rate": "50.0", "client_seconds": "0.4", "busiest": "0.95",
        "limited": "a thread",
    }  # fmt: skip
    assert lines(tmp_path)[0]["values"]["flush_2"] == [pytest.approx(10, rel=0.011)] * 12


def test_what_a_round_does_not_have_is_an_empty_cell(tmp_path):
    """NaN becomes an empty cell, such as a percentile without operations."""
    said = RunResult(2.0, 100, 0, good=0, ledger=Ledger({"x": LedgerEntry()}), span=9.0)
    many = {name: [dataclasses.replace(found[0], outcome=said)] for name, found in record().rounds.items()}
    text = results_directory.Results(tmp_path).add(record(rounds=many)).rounds.read_text()
    [row, _] = csv.DictReader(io.StringIO(text))

    assert (row["p95_ms"], row["drained_throughput"], row["goodput"]) == ("", "", "0.0")
    assert "nan" not in text


def test_ledgers_are_kept_whole(tmp_path):
    """Ledgers have the histogram and the operations of each second, which the CSV lacks."""
    entry = LedgerEntry({1: 8, 2: 1}, committed=9, aborted_seconds=0.5, latencies=Histogram.of([0.01] * 9))
    ledger = Ledger({"payment": entry}, {(1213, "node2"): 1})
    many = {
        name: [dataclasses.replace(one, outcome=RunResult(2.0, 10, 9, good=9, ledger=ledger, by_second=(4, 5)))]
        for name, (one, *_) in record().rounds.items()
    }
    kept = results_directory.Results(tmp_path).add(record(rounds=many)).rounds.with_suffix(".jsonl")
    first, second = map(json.loads, kept.read_text().splitlines())

    assert {first["variant"], second["variant"]} == {"flush_2", "galera3"}
    assert (first["block"], first["by_second"], first["errors"]) == (0, [4, 5], [[1213, "node2", 1]])
    said = first["types"]["payment"]
    assert (said["attempts"], said["committed"], said["aborted_seconds"]) == ({"1": 8, "2": 1}, 9, 0.5)
    assert Histogram({int(key): n for key, n in said["latencies"].items()}) == entry.latencies


def test_rounds_without_a_ledger_have_no_file_of_it(tmp_path):
    """A load without ledgers, such as mysqlslap, leaves no file of ledgers."""
    assert not results_directory.Results(tmp_path).add(record()).rounds.with_suffix(".jsonl").exists()


def test_the_rounds_are_a_table(tmp_path):
    """Each round is a line of CSV in the order of the run, with counters and samples behind."""
    made = record()
    kept = results_directory.Results(tmp_path).add(made)
    rows = list(csv.DictReader(io.StringIO(kept.rounds.read_text())))

    assert len(rows) == 24
    ran = sorted(
        (one.block, one.position, pair, name) for name, many in made.rounds.items() for pair, one in enumerate(many, 1)
    )
    assert [(int(row["block"]), int(row["position"]), int(row["pair"]), row["variant"]) for row in rows] == ran
    assert [row["block"] for row in rows] == ["0"] * 8 + ["1"] * 8 + ["2"] * 8
    assert sorted(row["pair"] for row in rows[:8]) == ["1", "1", "2", "2", "3", "3", "4", "4"]
    by_place = {(one.block, one.position): one.seconds for many in made.rounds.values() for one in many}
    assert float(rows[0]["seconds"]) == by_place[0, 0]
    assert {row["fsyncs_per_commit"] for row in rows if row["variant"] == "galera3"} == {"3.0"}
    assert {row["sample:client_cpu"] for row in rows} == {"0.5"}


def test_void_rounds_are_kept_with_their_reason(tmp_path):
    """Void rounds are listed before their replacements, with the same pair, and do not count."""
    made = record(pairs=20)
    block = [dataclasses.replace(many[13], started=many[13].started - 5) for many in made.rounds.values()]
    void = [dataclasses.replace(block[0], void="the primary changed"), block[1]]
    made = dataclasses.replace(made, void_rounds=[void])
    kept = results_directory.Results(tmp_path).add(made)
    rows = list(csv.DictReader(io.StringIO(kept.rounds.read_text())))

    assert [(row["pair"], row["variant"], row["void"]) for row in rows if row["void"]] == [
        ("14", name, reason)
        for name, reason in sorted(
            [("flush_2", "the primary changed"), ("galera3", "with flush_2: the primary changed")],
            key=lambda void: made.rounds[void[0]][13].position,
        )
    ]
    assert [row["pair"] for row in rows[25:31]] == ["13", "14", "14", "14", "14", "15"]
    assert lines(tmp_path)[0]["void"] == [{"block": 4, "reason": "flush_2: the primary changed"}]


def test_a_void_round_of_an_eight_stands_before_its_replacement(tmp_path):
    """It alone was repeated, in its place."""
    made = record()
    one = made.rounds["flush_2"][2]
    void = dataclasses.replace(one, started=one.started - 0.5, void="the primary changed")
    kept = results_directory.Results(tmp_path).add(dataclasses.replace(made, void_rounds=[[void]]))
    rows = list(csv.DictReader(io.StringIO(kept.rounds.read_text())))

    places = [(row["block"], row["position"], row["pair"], row["void"]) for row in rows]
    [number] = [n for n, row in enumerate(rows) if row["void"]]
    assert places[number][:3] == places[number + 1][:3] == (str(one.block), str(one.position), "3")
    assert len(rows) == 25
    assert lines(tmp_path)[0]["void"] == [{"block": one.block, "reason": "flush_2: the primary changed"}]
    assert len(lines(tmp_path)[0]["seconds"]["flush_2"]) == 12


def test_rounds_have_their_throughput_with_the_drain(tmp_path):
    """Beside the one without it."""
    rows = csv.DictReader(io.StringIO(results_directory.Results(tmp_path).add(drained()).rounds.read_text()))
    row = next(row for row in rows if row["variant"] == "flush_2")

    assert float(row["throughput"]) > float(row["drained_throughput"]) > 0
    assert lines(tmp_path)[0]["drained"] == drained().drained


def test_a_chart_is_kept_beside_the_rounds(tmp_path):
    """The claim says where its chart is."""
    kept = results_directory.Results(tmp_path).add(record())

    assert kept.chart.read_text().startswith("<?xml")
    assert lines(tmp_path)[0]["chart_file"] == str(kept.chart.relative_to(tmp_path))


def test_a_claim_whose_chart_cannot_be_drawn_is_kept(tmp_path, monkeypatch):
    """The line is written before the chart is drawn, so that a failing chart loses no verdict."""

    def interrupted(made):
        assert lines(tmp_path)[0]["chart_file"].startswith("charts/01-")
        raise KeyboardInterrupt

    monkeypatch.setattr(claim_chart, "svg", interrupted)
    with pytest.raises(KeyboardInterrupt):
        results_directory.Results(tmp_path).add(record())

    assert len(lines(tmp_path)) == 1


def test_a_claim_without_a_chart_says_so(tmp_path):
    """A claim without pairs has no chart."""
    kept = results_directory.Results(tmp_path).add(record(rounds={"flush_2": [], "galera3": []}, verdict=NO_PAIR))

    assert kept.chart is None
    assert lines(tmp_path)[0]["chart_file"] is None


def test_a_run_replaces_the_one_before_and_nothing_else(tmp_path):
    """Claims, rounds and charts of the run before are removed; other files stay."""
    first = results_directory.Results(tmp_path)
    first.add(record())
    gone = first.add(failed())
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "rounds" / "mine.txt").write_text("mine")
    results_directory.Results(tmp_path).add(record())

    assert len(lines(tmp_path)) == 1
    assert not gone.rounds.exists()
    assert (tmp_path / "notes.txt").exists()
    assert (tmp_path / "rounds" / "mine.txt").exists()


def test_kept_logs_of_the_run_before_are_removed(tmp_path):
    """The logs that a run keeps go with its other results; files of somebody else stay, with their directories."""
    node = tmp_path / "logs" / "test_it" / "galera3" / "node1"
    node.mkdir(parents=True)
    (node / "error.log").touch()
    (node / "my.cnf").touch()
    (tmp_path / "logs" / "mine.txt").touch()
    results_directory.clear(tmp_path)

    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["logs", "logs/mine.txt"]


def test_a_claim_whose_ledgers_could_not_be_written_is_read(tmp_path, monkeypatch):
    """They need the most space. Its other figures stay, and so do those of the claims after it."""
    kept = results_directory.Results(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(results_directory.Results, "_write_ledgers", lambda *_: None)
        kept.add(with_counters(record()))
    kept.add(with_counters(record(candidate="other")))

    first, second = schema.read_claims(tmp_path)
    assert [done.outcome.ledger for done in first.rounds["flush_2"]] == [None] * 12
    assert all(done.outcome.ledger for done in second.rounds["other"])


def test_logs_of_this_run_survive_its_first_claim(tmp_path):
    """The cluster of an earlier test has failed, and its message names them."""
    node = tmp_path / "logs" / "test_it" / "galera3" / "node1"
    node.mkdir(parents=True)
    (node / "error.log").write_text("[ERROR]")
    results_directory.Results(tmp_path).add(record())

    assert (node / "error.log").read_text() == "[ERROR]"


def test_the_summary_is_markdown(tmp_path):
    """The summary has the blocks, the total, the machine and the notes; the terminal gets its path."""
    kept = results_directory.Results(tmp_path)
    made = [record(), undecided()]
    for one in made:
        kept.add(one)
    said = kept.finish(made, ["an overridden option"])
    shown = (tmp_path / "summary.md").read_text()

    assert "## performance claims" in shown
    assert "## inconclusive: neither pass nor failure" in shown
    assert "1 holds, 1 inconclusive." in shown
    assert "- release: mariadb:10.11 10.11.19\n- profile: quick\n- seed: 813\n- cpu: 2 x model" in shown
    assert shown.endswith("- an overridden option\n")
    assert said == [f"results: {tmp_path}/{{summary.md,claims.jsonl}}"]


def test_a_run_without_claims_writes_nothing(tmp_path):
    """The results of the last run that measured are left alone."""
    assert results_directory.Results(tmp_path / "none").finish([], []) == []
    assert not (tmp_path / "none").exists()


def test_the_way_to_charts_is_said_once(tmp_path, monkeypatch):
    """Without matplotlib the closing lines say what to install."""
    monkeypatch.setattr(drawing, "available", lambda: False)
    kept = results_directory.Results(tmp_path)
    kept.add(record())

    assert kept.finish([record()], [])[-1] == drawing.MISSING


def test_values_follow_the_metric():
    """A claim about speed has throughputs, one about a counter that counter's values."""
    assert rounds_csv.values(record(), "galera3")[0] == record().rounds["galera3"][0].throughput
    assert (
        rounds_csv.values(drained(metric="drained_throughput"), "flush_2")[0]
        < drained().rounds["flush_2"][0].throughput
    )
    assert rounds_csv.values(record(metric="fsyncs_per_commit"), "galera3") == [3.0] * 12
    with pytest.raises(ConfigError, match="unknown counter 'nothing'"):
        rounds_csv.values(record(metric="nothing"), "galera3")


def test_the_commits_around_an_event_are_a_file_of_its_claim(tmp_path):
    """A line for each tenth of each repetition; it moves with its claim, and a claim about rounds has none."""
    [galera] = series("galera3", times=6)
    made = claim_record(galera.loses_nothing(), None, Asked("test_kill.py::test_kill", "quick", "pytest"), 1.0)
    worker, run = results_directory.Results(tmp_path / "worker"), results_directory.Results(tmp_path / "run")
    worker.add(made)
    run.add(record())
    run.adopt(worker.directory, 1)
    none, commits = [kept["commits_file"] for kept in lines(run.directory)]
    head, *rows = (run.directory / commits).read_text().splitlines()

    assert (none, head, len(rows)) == (None, "variant,repetition,seconds,commits", 6 * 3)
    assert rows[:4] == ["galera3,1,-0.1,21", "galera3,1,0.0,0", "galera3,1,0.1,22", "galera3,2,-0.1,21"]
    assert not (worker.directory / commits).exists()


def test_the_samples_of_every_second_are_a_file_of_the_claim(tmp_path):
    """It has the number of the claim, and moves with it from a worker's directory. A claim without samples has none."""
    worker, run = results_directory.Results(tmp_path / "worker"), results_directory.Results(tmp_path / "run")
    worker.add(record(), "time\n1\n")
    worker.add(failed())
    run.add(undecided())
    for line in (1, 2):
        run.adopt(worker.directory, line)

    assert [kept["timeline_file"] for kept in lines(run.directory)] == [None, "timeline/02.csv", None]
    assert (run.directory / "timeline" / "02.csv").read_text() == "time\n1\n"
    assert list((worker.directory / "timeline").iterdir()) == []
    results_directory.clear(run.directory)
    assert list((run.directory / "timeline").iterdir()) == []
