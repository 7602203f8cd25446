"""Results directories of made-up runs, for the tests of everything that shows whole runs."""

import dataclasses
import json

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.reporting.documents.run_document import TestDocument, run_text
from pytest_dbcluster.reporting.results_directory import Results
from pytest_dbcluster.reporting.tables import curves
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from tests.support.curves import curve, point
from tests.support.records import beside, failed, record, undecided
from tests.support.run_documents import run_document

DATA = dict.fromkeys(("flush_2", "galera3"), "8 tables of 100000 rows, about 199 MiB")


def with_counters(made):
    """The claim, whose candidate needs fewer fsyncs and as much CPU, with a ledger of latencies and two nodes."""

    def counted(one, number):
        fsyncs, waits = (1.0, 3.0) if one.variant == made.candidate else (3000.0, 900.0)
        wobble = 1 + 0.01 * (number % 5)
        ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of([one.seconds / 50 * n for n in range(1, 101)]))})
        return dataclasses.replace(
            one,
            counters={"fsyncs": fsyncs + number % 3, "log_waits": waits * wobble, "rows_read": 7.0},
            samples={
                "cpu_all": 1.3 / one.seconds * wobble, "cpu_node1": 0.8 * wobble, "cpu_node2": 0.2 * wobble,
                "disk_write_bytes": 4e6, "pressure_io": 0.02,
            },
            outcome=dataclasses.replace(one.outcome, ledger=ledger),
        )  # fmt: skip

    many = {
        name: tuple(counted(one, number) for number, one in enumerate(rounds)) for name, rounds in made.rounds.items()
    }
    return dataclasses.replace(made, rounds=many)


def five_claims():
    """A claim that holds with all that a claim can have, a refuted, an open one, a guard, and a comparison."""
    holds = with_counters(record(faster=1.84, pairs=20, published=7.41, data=DATA))
    refuted = failed()
    lost = dataclasses.replace(refuted.rounds["galera3"][2], void="node2 left the cluster")
    return [
        holds,
        dataclasses.replace(refuted, void_rounds=((lost,),)),
        undecided(),
        record(kinds.no_slower_than(0.05), faster=1.02, sd=0.01, pairs=20, load="mysqlslap key c50"),
        beside(),
        record(pairs=3, load="mysqlslap read c50"),
    ]


def a_sweep():
    """A sweep of two variants over four values; the last one has too few rounds for an interval."""
    points = [
        point(
            value,
            name,
            seconds=[took * (1 + 0.02 * n) for n in range(rounds)],
            latencies=[0.004 * took * n for n in range(1, 301)],
        )
        for value, rounds in ((1, 6), (4, 6), (16, 6), (64, 3))
        for name, took in (("galera3", 1.0 / value**0.6), ("standalone", 0.7 / value**0.5))
    ]
    points = [dataclasses.replace(one, data="1 warehouse, about 96 MiB") for one in points]
    return curve(points, load="sysbench oltp_read_only", notes=("threads=64: the load generator set the speed",))


def timeline_of(made):
    """The CSV of every second of a claim, as a run writes it: two nodes, the load generator, disk and flow control."""
    rounds = [drawn for many in made.rounds.values() for drawn in many]
    began, ended = min(one.started for one in rounds), max(one.started + one.seconds for one in rounds)
    names = ("cpu_node1", "cpu_node2", "cpu_client", "disk_write_bytes", "flow_control_paused_node1", "steal")
    lines = [",".join(("time", "seconds", "variant", "block", "position", *names))]
    for second in range(int(ended - began) + 1):
        inside = next((one for one in rounds if 0 <= began + second - one.started < 1), None)
        place = (inside.variant, inside.block, inside.position) if inside else ("", "", "")
        busy = 1.0 if inside else 0.1
        values = ("" if second == 3 else busy, 0.6 * busy, 0.3 * busy, 8e6 * busy, 0.2 * busy if inside else "", 0.0)
        lines.append(",".join(map(str, (f"{began + second:.3f}", float(second), *place, *values))))
    return "\n".join(lines) + "\n"


class Sketched(Results):
    """Results whose charts of claims and curves are empty files: the page draws its own."""

    def _with_chart(self, kept, draw):
        return super()._with_chart(kept, lambda: "<svg/>")


def results(directory, made=None, *, sweeps=(), timelines=False, **run):
    """Write the results directory of a run with these claims; ``run`` changes its ``run.json``."""
    kept = Sketched(directory)
    for number, one in enumerate(five_claims() if made is None else made, 1):
        kept.add(one)
        if timelines:
            name = f"timeline/{number:02}.csv"
            (directory / "timeline").mkdir(exist_ok=True)
            (directory / name).write_text(timeline_of(one))
    if timelines:
        lines = [json.loads(line) for line in (directory / "claims.jsonl").read_text().splitlines()]
        for number, line in enumerate(lines, 1):
            line["timeline_file"] = f"timeline/{number:02}.csv"
        (directory / "claims.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for one in sweeps:
        kept.add_curve(one, curves.as_csv(one))
    directory.mkdir(exist_ok=True)
    (directory / "run.json").write_bytes(run_text(run_document(**run)))
    return directory


def with_latencies(made):
    """The claim about rounds of 300 operations, whose slowest tenth takes ten times as long as the others."""

    def timed(one):
        slow = one.seconds / 50
        latencies = Histogram.of([slow * (1.0 if number % 10 else 10.0) for number in range(1, 301)])
        return dataclasses.replace(
            one, outcome=dataclasses.replace(one.outcome, ledger=Ledger({"x": LedgerEntry(latencies=latencies)}))
        )

    return dataclasses.replace(made, rounds={name: tuple(map(timed, rounds)) for name, rounds in made.rounds.items()})


def compared_records(*, faster=1.3, spread=0.02):
    """The answers of ``dbcluster compare`` on two workloads: the second one has no p95."""
    named = {"candidate": "candidate", "baseline": "current", "repeat": "dbcluster compare --cnf a.cnf --cnf b.cnf"}
    named |= {"text": "candidate.no_slower_than(current, by=0.05)", "sd": spread}
    named |= {"out_of_budget": "budget of 40 s of measured time used (its share of --seconds)"}
    guard, found = kinds.no_slower_than(0.05), []
    for load, speed in (("sysbench oltp_read_write t4", faster), ("tpcc w1 t4", 1.04)):
        about = {**named, "load": load, "test": f"dbcluster compare::{load}", "metric": "goodput"}
        found.append(record(guard, faster=speed, pairs=8 if speed > 1 else 20, **about))
        after = {**about, "text": "candidate against current", "asserted": False}
        found.append(record(kinds.differs(), faster=speed, pairs=24, **after))
    first = {**named, "load": "sysbench oltp_read_write t4", "test": found[0].test, "metric": "p95"}
    return [*found, with_latencies(record(guard, faster=1.1, pairs=12, **first))]


def with_transactions(made, statements=True, **counts):
    """The claim about rounds with so many transactions of each type, and with the statement of their third line."""

    def timed(one):
        entries, kept = {}, {}
        for number, (name, count) in enumerate(counts.items(), 1):
            times = Histogram.of([number * one.seconds / 100 * (1 + place / count) for place in range(count)])
            entries[name] = LedgerEntry({1: count}, committed=count, latencies=times)
            kept[f"{name}:3"] = Histogram.of([one.seconds / 1000] * count)
        outcome = dataclasses.replace(one.outcome, ledger=Ledger(entries), statements=kept if statements else {})
        return dataclasses.replace(one, outcome=outcome)

    return dataclasses.replace(made, rounds={name: tuple(map(timed, rounds)) for name, rounds in made.rounds.items()})


def compared_shop(**counts):
    """The answers of ``dbcluster compare`` on a directory with SQL; its p95 has so many transactions of each type."""
    closed, closer, *_, tail = compared_records()
    named = {"load": "sql shop t8", "test": "dbcluster compare::sql shop t8", "content": "0123456789"}
    return [dataclasses.replace(one, **named) for one in (closed, closer, with_transactions(tail, **counts))]


def compared_run(claims, outcome="holds", reason="p95 needs rounds of 14.2 s here"):
    """The fields of ``run.json`` of a comparison with these answers; ``reason``: why the last workload has no p95."""
    names = list(dict.fromkeys(one.test for one in claims))
    tests = [TestDocument(name, outcome, reason if name == names[-1] else "", 0.0) for name in names]
    return {"tests": tuple(tests), "selected": len(tests), "command": "dbcluster compare --cnf a.cnf --cnf b.cnf"}


def comparison(directory, claims=None, **run):
    """Write the results directory of ``dbcluster compare`` with these answers; ``run`` changes its ``run.json``."""
    made = compared_records() if claims is None else claims
    return results(directory, made, **{**compared_run(made), **run})
