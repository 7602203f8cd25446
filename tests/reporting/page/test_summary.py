"""The top of the page."""

import dataclasses

import pytest

from pytest_dbcluster.reporting.page import sources, summary
from tests.support.records import failed, record, undecided
from tests.support.results import a_sweep, results
from tests.support.run_documents import CUT_SHORT, MACHINE, TESTS


@pytest.fixture
def source(tmp_path, monkeypatch):
    """``source(claims, **run)``: the results of a run, as they are read back."""
    from pytest_dbcluster.reporting.charts import claim as claim_chart

    monkeypatch.setattr(claim_chart, "svg", lambda made: None)
    return lambda made, **run: sources.read(results(tmp_path / "run", made, **run))


@pytest.mark.parametrize(
    ("made", "facts"),
    [
        ([record()], ["claim holds"]),
        ([record(), record(load="two")], ["2 claims hold"]),
        ([undecided()], ["The only claim is inconclusive"]),
        ([failed()], ["The only claim is refuted: flush_2 is not faster than galera3 (mysqlslap update c50)"]),
        ([undecided(), undecided(load="two")], ["All 2 claims are inconclusive"]),
        (
            [record(), record(load="two"), failed(), undecided()],
            [
                "1 of 4 claims is refuted, 1 is inconclusive, 2 hold",
                "; refuted: flush_2 is not faster than galera3 (mysqlslap update c50)",
            ],
        ),
        ([], ["No claim"]),
    ],
)
def test_one_sentence_says_it_all(source, made, facts):
    """How many claims have each outcome, and what the refuted ones say."""
    sentence = summary.sentence([source(made, tests=TESTS[:3])])

    assert [fact for fact in facts if fact not in sentence] == []


@pytest.mark.parametrize(
    ("claims", "drawn", "curves"),
    [
        ([], 1, "1 curve was drawn"),
        ([], 2, "2 curves were drawn"),
        ([record()], 2, ""),
    ],
)
def test_curves_are_named_where_no_claim_is(source, claims, drawn, curves):
    """A run may only draw."""
    made = dataclasses.replace(source(claims, tests=TESTS[:3]), curves=(a_sweep(),) * drawn)

    sentence = summary.sentence([made])
    assert curves in sentence
    assert ("curve" in sentence) == bool(curves)


def test_broken_tests_are_counted(source):
    """A broken test is in no claim, so the sentence must say it."""
    assert summary.sentence([source([record()])]).endswith("; 1 test is broken.")


def test_many_refuted_claims_are_not_all_named(source):
    """Three are, and the number of the others."""
    made = source([failed(load=f"load {number}") for number in range(5)], tests=())

    assert summary.sentence([made]).endswith("(load 2), and 2 more.")


def test_counts_leave_out_what_there_is_none_of(source):
    """Claims by outcome, then broken and skipped tests."""
    found = [(one.number, one.word) for one in summary.counts([source([record(), record(load="two"), failed()])])]

    assert found == [(2, "hold"), (1, "refuted"), (1, "broken"), (1, "skipped")]


def test_tests_without_an_answer_have_their_reason(source):
    """The broken ones come first, then those that were cut short."""
    made = source([record()], tests=(*TESTS, CUT_SHORT, dataclasses.replace(CUT_SHORT, reason="")))
    found = [(row.state, row.test, row.reason) for row in summary.tests([made])]

    assert found == [
        ("broken", "test_flush.py::test_nodes", "node2 ended on its own"),
        ("cut short", "test_flush.py::test_flush_2[read]", "the run was ended by SIGTERM"),
        ("cut short", "test_flush.py::test_flush_2[read]", "it began, and did not end"),
        ("skipped", "test_flush.py::test_router", "no mysqlrouter on PATH"),
    ]


def test_a_run_says_where_it_ran(source):
    """Machine, releases, commit and command."""
    facts = summary.about(source([record()]))

    assert facts["releases"] == "mariadb:10.11 10.11.19"
    assert facts["machine"] == f"2 x {MACHINE.cpu} (1.5 usable), 8.0 GiB"
    assert facts["data"] == "ext4 on /dev/vda"
    assert facts["commit"] == "4fd14fd14fd1, with changes that are not committed"
    assert facts["command"] == "pytest suites/galera --db-seed=813"
    assert facts["pytest-dbcluster"] == "0.1.0"


def test_the_bar_shows_where_the_time_went(source):
    """The largest part first, and the rest last, with the parts that are too small to be seen."""
    read = source([record()])
    bar = summary.time_bar(read)

    assert [(part.group, round(part.share, 3)) for part in bar] == [
        ("rounds", 0.41),
        ("starts", 0.2),
        ("overhead of rounds", 0.09),
        ("other", 0.3),
    ]
    assert len({part.colour for part in bar}) == 4
    assert summary.time_bar(dataclasses.replace(read, run=None)) == []
    assert summary.time_bar(dataclasses.replace(read, run=dataclasses.replace(read.run, time_spent={}))) == []


def test_older_results_say_what_they_know(source):
    """Without run.json the records have the machine."""
    read = source([record()])
    (read.directory / "run.json").unlink()
    facts = summary.about(sources.read(read.directory))

    assert (facts["cpu"], facts["releases"]) == ("2 x model", "mariadb:10.11 10.11.19")


def test_a_test_that_was_cut_short_is_counted_in_whole_words(source):
    """Its state has two words."""
    [count] = [one for one in summary.counts([source([], tests=[CUT_SHORT])]) if one.state == "cut short"]

    assert (count.number, count.word) == (1, "cut short")
