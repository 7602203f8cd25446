"""Claims and curves that are saved are read back as the same values."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.claim import KINDS, Claim, Outcome, Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.evidence import SpecDocument
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.measuring.why.compared import ServerComparison
from pytest_dbcluster.reporting import results_directory, schema
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import curve as curve_chart
from pytest_dbcluster.reporting.documents import record_documents
from pytest_dbcluster.reporting.recording import Asked, claim_record
from pytest_dbcluster.reporting.records import ClaimRecord, CurvePoint, CurveRecord
from pytest_dbcluster.rounds.histogram import TOP, Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.curves import curve
from tests.support.facts import missing
from tests.support.outages import outage, series
from tests.support.records import comparable, record

TEXT = st.text(max_size=8)
COUNT = st.integers(0, 2**40)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBER = st.floats()
SECONDS = st.floats(1e-3, 1e4)
COUNTERS = st.dictionaries(TEXT, NUMBER, max_size=3)


def maybe(strategy):
    """The strategy, or None."""
    return st.none() | strategy


def tuples(strategy, most=3):
    """Tuples of up to ``most`` of them."""
    return st.lists(strategy, max_size=most).map(tuple)


HISTOGRAMS = st.builds(Histogram, st.dictionaries(st.integers(0, TOP), COUNT, max_size=4))
ENTRIES = st.builds(
    LedgerEntry,
    attempts=st.dictionaries(st.integers(1, 9), COUNT, max_size=3),
    committed=COUNT,
    rolled_back=COUNT,
    failed=COUNT,
    unknown=COUNT,
    aborted_seconds=NUMBER,
    latencies=HISTOGRAMS,
)
LEDGERS = st.builds(
    Ledger,
    entries=st.dictionaries(TEXT, ENTRIES, max_size=2),
    errors=st.dictionaries(st.tuples(st.integers(0, 9999), TEXT), COUNT, max_size=3),
)
RESULTS = st.builds(
    RunResult,
    seconds=SECONDS,
    operations=COUNT,
    commits=maybe(COUNT),
    least=maybe(NUMBER),
    most=maybe(NUMBER),
    good=maybe(COUNT),
    ledger=maybe(LEDGERS),
    by_second=tuples(COUNT),
    by_tenth=tuples(COUNT),
    rate=maybe(NUMBER),
    offered=maybe(COUNT),
    delay=maybe(NUMBER),
    span=maybe(NUMBER),
    client_seconds=maybe(NUMBER),
    busiest=maybe(NUMBER),
    figures=COUNTERS,
    statements=st.dictionaries(TEXT, HISTOGRAMS, max_size=2),
    resolution=NUMBER,
)
ROUNDS = st.builds(
    Round,
    variant=TEXT,
    block=st.integers(0, 200),
    position=st.integers(0, 9),
    outcome=RESULTS,
    wall=NUMBER,
    started=FINITE,
    settled=st.booleans(),
    counters=COUNTERS,
    samples=COUNTERS,
    void=TEXT,
    limited=TEXT,
    behind=st.booleans(),
)
VOID = st.tuples(ROUNDS.map(lambda one: dataclasses.replace(one, void="the primary changed")), ROUNDS)
VERDICTS = st.builds(
    Verdict,
    outcome=st.sampled_from(Outcome),
    claim=st.builds(Claim, st.sampled_from(sorted(KINDS)), FINITE),
    pairs=COUNT,
    **dict.fromkeys(
        ("ratio", "low", "high", "decided_low", "decided_high", "detectable", "pair_sd", "order_effect", "lag1"), NUMBER
    ),
    reason=TEXT,
    needed_pairs=maybe(COUNT),
    halves=st.tuples(NUMBER, NUMBER),
    stalls=maybe(st.tuples(COUNT, COUNT)),
    alpha=FINITE,
    needed_margin=maybe(NUMBER),
    total=maybe(NUMBER),
    detectable_most=maybe(NUMBER),
    neighbours=st.just(()),
)
RATES = st.builds(ArrivalRate, FINITE | st.just("70 %"), maybe(NUMBER), COUNTERS)
SPECS = st.builds(
    SpecDocument,
    **dict.fromkeys(("topology", "release", "version", "proxy", "limits", "storage", "parity"), TEXT),
    nodes=COUNT,
    options=st.dictionaries(TEXT, TEXT, max_size=2),
    cnf=tuples(TEXT),
)
SWEPT = st.integers() | TEXT | FINITE | st.booleans() | st.none()
CLAIMS = st.builds(
    ClaimRecord,
    **dict.fromkeys(
        ("test", "text", "load", "candidate", "baseline", "message", "release", "profile", "repeat", "limited"), TEXT
    ),
    metric=st.just("throughput"),
    verdict=VERDICTS.flatmap(
        lambda one: tuples(VERDICTS, 2).map(lambda many: dataclasses.replace(one, neighbours=many))
    ),
    published=maybe(NUMBER),
    asserted=st.booleans(),
    measured_seconds=NUMBER,
    wall_seconds=NUMBER,
    seed=COUNT,
    durability=st.dictionaries(TEXT, TEXT, max_size=2),
    differences=st.dictionaries(TEXT, st.tuples(TEXT, TEXT), max_size=2),
    fingerprint=st.dictionaries(TEXT, TEXT, max_size=2),
    rounds=st.dictionaries(TEXT, tuples(ROUNDS), max_size=2),
    published_seconds=st.dictionaries(TEXT, tuples(NUMBER), max_size=2),
    drains=COUNTERS,
    drained=maybe(NUMBER),
    void_rounds=tuples(VOID, 2),
    arrival_rate=maybe(RATES),
    instances=st.integers(1, 3),
    cluster_difference=maybe(st.from_type(ClusterDifference)),
    carry_over=maybe(st.builds(CarryOver, NUMBER, NUMBER, NUMBER, NUMBER)),
    **dict.fromkeys(("claim_id", "kind", "provisioner", "storage", "parity", "sweep_field", "data_fits"), TEXT),
    data=st.dictionaries(TEXT, TEXT, max_size=2),
    content=TEXT,
    files=st.dictionaries(TEXT, st.dictionaries(TEXT, TEXT, max_size=2), max_size=2),
    specs=st.dictionaries(TEXT, SPECS, max_size=2),
    sweep_value=SWEPT,
    round_trips=maybe(st.builds(RoundTripsTaken, NUMBER, maybe(NUMBER), maybe(NUMBER), COUNT, tuples(NUMBER))),
    servers=maybe(st.from_type(ServerComparison)),
)
POINTS = st.builds(
    CurvePoint,
    value=SWEPT,
    variant=TEXT,
    rounds=tuples(ROUNDS),
    median=NUMBER,
    low=maybe(NUMBER),
    high=maybe(NUMBER),
    data=TEXT,
    ratio=maybe(NUMBER),
    ratio_low=maybe(NUMBER),
)
CURVES = st.builds(
    CurveRecord,
    **dict.fromkeys(("test", "load", "field", "metric", "release", "profile"), TEXT),
    seed=COUNT,
    fingerprint=st.dictionaries(TEXT, TEXT, max_size=2),
    points=tuples(POINTS),
    notes=tuples(TEXT),
    reference=TEXT,
    files=st.dictionaries(TEXT, TEXT, max_size=2),
)


def kept(directory, claims=(), curves=()):
    """Documents as a run keeps them, without the tables and charts beside."""
    for number, one in enumerate(claims):
        (directory / f"{number}.jsonl").write_bytes(schema.ledger_lines(schema.claim_rounds(one)))
    for number, one in enumerate(curves):
        (directory / f"c{number}.jsonl").write_bytes(schema.ledger_lines(schema.curve_rounds(one)))
    lines = [schema.claim_line(one, f"{number}.csv", f"{number}.jsonl", None) for number, one in enumerate(claims)]
    (directory / "claims.jsonl").write_bytes(b"".join(lines))
    lines = [schema.curve_line(one, f"c{number}.csv", f"c{number}.jsonl") for number, one in enumerate(curves)]
    (directory / "curves.jsonl").write_bytes(b"".join(lines))
    return directory


MANY = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@MANY
@given(st.lists(CLAIMS, max_size=2))
def test_a_claim_comes_back_as_it_was(tmp_path_factory, claims):
    """A claim is read back with its rounds, ledgers, histograms, verdict, void blocks and arrival rate.

    Each line is standard JSON: no NaN, no Infinity, no line break inside.
    """

    def refuse(word):
        raise AssertionError(word)

    directory = kept(tmp_path_factory.mktemp("claims"), claims)
    lines = (directory / "claims.jsonl").read_bytes().splitlines()

    assert comparable(schema.read_claims(directory)) == comparable(claims)
    assert [json.loads(line, parse_constant=refuse)["format"] for line in lines] == [record_documents.FORMAT] * len(
        claims
    )


@MANY
@given(st.lists(CURVES, max_size=2))
def test_a_curve_comes_back_as_it_was(tmp_path_factory, curves):
    """A curve is read back with the rounds of its points, which its CSV lacks."""
    back = schema.read_curves(kept(tmp_path_factory.mktemp("curves"), curves=curves))

    assert comparable(back) == comparable(curves)


@pytest.mark.parametrize(
    "value", ["5", "5.0", "inf", "nan", "null", "none", "true", "0", "", "70 %", 5, 5.0, True, None]
)
def test_a_value_of_a_curve_keeps_its_type(tmp_path, value):
    """A text that reads like a number, or like a number without end, stays a text."""
    made = curve((CurvePoint(value, "a", (), 1.0, None, None),), field="rate")
    [back] = schema.read_curves(kept(tmp_path, curves=[made]))

    assert comparable(back) == comparable(made)


def test_texts_that_read_like_numbers_stay_texts(tmp_path):
    """Only the places of numbers have numbers."""
    made = record(text="inf", load="nan", message="null", repeat="5", durability={"inf": "-inf"})
    made = dataclasses.replace(made, rounds={}, arrival_rate=ArrivalRate("70 %", math.inf))
    [back] = schema.read_claims(kept(tmp_path, [made]))

    assert comparable(back) == comparable(made)


def test_numbers_without_end_are_texts_in_the_place_of_the_number():
    """Infinite numbers and NaN are saved as "inf", "-inf" and "nan", which float() and numpy read."""
    verdict = dataclasses.replace(record().verdict, high=math.inf, low=-math.inf, ratio=math.nan)
    said = json.loads(schema.claim_line(record(verdict=verdict), "a.csv", None, None))["verdict"]

    assert [said[name] for name in ("high", "low", "ratio")] == ["inf", "-inf", "nan"]
    assert float(said["low"]) == -math.inf


NAMES = """
    format began look looks baseline_first instances test text load candidate baseline metric verdict message published
    asserted measured_seconds
    wall_seconds seed release profile durability differences fingerprint repeat published_seconds drains drained void
    arrival_rate limited cluster_difference seconds values rounds void_rounds rounds_file ledgers_file chart_file
    carry_over
    claim_id kind provisioner storage parity specs sweep_field sweep_value timeline_file
    depends_on run_id data_fits network round_trips tries others data
    content files commits_file servers standings
"""
VERDICT = """
    outcome claim pairs ratio low high decided_low decided_high reason detectable needed_pairs pair_sd halves
    order_effect lag1 stalls alpha needed_margin neighbours void total detectable_most
"""
ROUND = """
    variant block position outcome wall started settled counters samples void limited behind outage capacity ledger_line
"""
OUTCOME = """
    seconds operations commits least most good ledger by_second by_tenth rate offered delay span client_seconds busiest
    figures statements resolution load_hosts ended_early void
"""


def test_the_names_in_a_line_are_those_of_its_format():
    """The names of fields are fixed: renaming one makes old files unreadable, so it needs a new format."""
    said = json.loads(schema.claim_line(record(), "a.csv", None, None))
    one = said["rounds"]["flush_2"][0]

    assert record_documents.FORMAT == 3
    assert (next(iter(said)), sorted(said)) == ("format", sorted(NAMES.split()))
    assert list(said["verdict"]) == VERDICT.split()
    assert sorted(one) == sorted(ROUND.split())
    assert list(one["outcome"]) == OUTCOME.split()


def test_a_repetition_of_an_event_is_read_back(tmp_path):
    """With its figures, and a claim about a single variant has no baseline."""
    [galera] = series("galera3", times=6)
    made = claim_record(galera.below("stall", 8), None, Asked("test_kill.py::test_kill", "quick", "pytest"), 1.0)
    (tmp_path / "claims.jsonl").write_bytes(schema.claim_line(made, "a.csv", None, None))
    (read,) = schema.read_claims(tmp_path)

    assert comparable(read) == comparable(made)
    assert (read.baseline, read.verdict.claim.share) == ("", 0.5)
    assert read.rounds["galera3"][0].outage == outage()


def line(**changes):
    """A claim's line with these changes."""
    return json.dumps({**json.loads(schema.claim_line(record(), "a.csv", None, None)), **changes}).encode() + b"\n"


WHOLE = line()


def test_a_line_without_the_newest_names_is_read(tmp_path):
    """Names were added to the format; a line that was written before has none of them."""
    names = ("claim_id", "kind", "provisioner", "storage", "parity", "specs", "sweep_field", "sweep_value", "data_fits")
    names += ("data", "content", "files")
    old = {name: value for name, value in json.loads(WHOLE).items() if name not in names}
    (tmp_path / "claims.jsonl").write_text(json.dumps(old) + "\n")

    (read,) = schema.read_claims(tmp_path)

    assert (read.claim_id, read.specs, read.sweep_value, read.data_fits, read.data) == ("", {}, None, "", {})
    assert (read.content, read.files) == ("", {})


def test_latencies_of_statements_are_on_the_lines_of_the_ledgers(tmp_path):
    """They are as large as a ledger. Rounds without a ledger keep them."""
    statements = {"order:7": Histogram({640: 3})}
    made = record()
    with_ledger, without = (
        dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, ledger=ledger, statements=statements))
        for one, ledger in zip(made.rounds["flush_2"][:2], (Ledger(), None), strict=True)
    )
    made = dataclasses.replace(made, rounds={"flush_2": (with_ledger, without)}, candidate="flush_2", baseline="none")
    [back] = schema.read_claims(kept(tmp_path, [made]))
    stored = json.loads((tmp_path / "claims.jsonl").read_text())["rounds"]["flush_2"]

    assert [one["outcome"]["statements"] for one in stored] == [{}, {"order:7": {"counts": {"640": 3}}}]
    assert [one.outcome.statements for one in back.rounds["flush_2"]] == [statements, statements]


@pytest.mark.parametrize(
    ("second", "facts"),
    [
        (line(format=4), ("format 4", "reads format 3", "pip install --upgrade")),
        (line(format=2), ("format 2", "reads format 3", "rounds have another order", "measure again")),
        (line(format=1), ("format 1", "reads format 3", "seconds of the rounds", "measure again")),
        (line(format=0), ("format 0", "no version", "measure again")),
        (line(format="3"), ("no format number", "remove the line")),
        (line(format=True), ("no format number", "remove the line")),
        (b"[1, 2]\n", ("no format number", "remove the line")),
        (b"what is this\n", ("not JSON", "remove the line")),
        (b'{"format": "\xff"}\n', ("not JSON", "remove the line")),
        (b"\n", ("not JSON", "remove the line")),
        (WHOLE[:400], ("incomplete", "ended while writing", "remove the line")),
        (line(seed="many"), ("`int`, got `str`", "$.seed", "measure again")),
        (line(verdict={}), ("missing", "`outcome`", "$.verdict", "measure again")),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, second, facts):
    """The error names the file and line, the problem, and what to do."""
    path = tmp_path / "claims.jsonl"
    path.write_bytes(WHOLE + second)

    with pytest.raises(ConfigError, match=rf"^{path}, line 2: ") as caught:
        schema.read_claims(tmp_path)
    assert missing(caught.value, *facts) == []


def test_names_that_a_reader_does_not_know_are_left_alone(tmp_path):
    """A reader ignores unknown names, which later versions of the format may add."""
    (tmp_path / "claims.jsonl").write_bytes(line(colour="blue"))

    assert [one.text for one in schema.read_claims(tmp_path)] == [record().text]


def test_a_line_without_a_carry_over_is_read(tmp_path):
    """Earlier versions wrote none in the same format."""
    said = json.loads(line())
    del said["carry_over"]
    (tmp_path / "claims.jsonl").write_text(json.dumps(said) + "\n")

    assert [one.carry_over for one in schema.read_claims(tmp_path)] == [None]


def test_a_directory_without_claims_has_none(tmp_path):
    """A directory without claims gives none; a missing directory raises ConfigError."""
    assert (schema.read_claims(tmp_path), schema.read_curves(tmp_path)) == ([], [])
    with pytest.raises(ConfigError, match="none: there is no such results directory"):
        schema.read_claims(tmp_path / "none")


def with_ledger():
    """A claim whose rounds have ledgers."""
    said = RunResult(2.0, 10, 9, ledger=Ledger({"payment": LedgerEntry({1: 9}, 9)}, {(1213, "node2"): 1}))
    many = {
        name: tuple(dataclasses.replace(one, outcome=said) for one in found) for name, found in record().rounds.items()
    }
    block = (dataclasses.replace(many["flush_2"][3], void="the primary changed"), many["galera3"][3])
    return record(rounds=many, void_rounds=(block,))


def test_a_missing_ledger_is_named(tmp_path):
    """The error names the missing file or line of ledgers, and what to do."""
    kept(tmp_path, [with_ledger()])
    path = tmp_path / "0.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    with pytest.raises(ConfigError, match=rf"ledger on line \d+, but {path} has 3 lines; measure again"):
        schema.read_claims(tmp_path)
    path.unlink()

    with pytest.raises(ConfigError, match=f"{path}: the ledgers of a claim or curve are missing; copy whole direct"):
        schema.read_claims(tmp_path)


def test_what_a_run_keeps_comes_back_from_its_directory(tmp_path, monkeypatch):
    """Claims, curves and ledgers are read back, also after they were moved from a worker's directory."""
    monkeypatch.setattr(claim_chart, "svg", lambda made: None)
    monkeypatch.setattr(curve_chart, "svg", lambda made: None)
    made = with_ledger()
    drawn = curve((CurvePoint(4, "a", made.rounds["flush_2"], 1.0, 1.0, 2.0),))
    theirs, ours = results_directory.Results(tmp_path / "theirs"), results_directory.Results(tmp_path / "ours")
    files = [theirs.add(record(rounds={})), theirs.add(made)]
    table = theirs.add_curve(drawn, "a table")

    assert comparable(schema.read_claims(theirs.directory)[1]) == comparable(made)
    assert schema.read_curves(theirs.directory) == [drawn]
    assert comparable(ours.adopt(theirs.directory, files[1].line)) == comparable(made)
    assert ours.adopt_curve(theirs.directory, table.line, lambda record: lambda line: False) == drawn
    assert comparable(schema.read_claims(ours.directory)) == comparable([made])
    assert schema.read_curves(ours.directory) == [drawn]
    assert [path.name for path in sorted((ours.directory / "curves").iterdir())] == [
        "01-load-threads.csv",
        "01-load-threads.jsonl",
    ]
