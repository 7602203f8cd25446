"""The page of ``dbcluster compare``: its answer comes first."""

import dataclasses
import itertools
import re

import pytest

from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.page import no_worse_view, report_page, sources
from pytest_dbcluster.reporting.tables import no_worse
from pytest_dbcluster.reporting.tables.no_worse import ComparedWorkload
from tests.reporting.page.test_report_page import Texts
from tests.support import golden
from tests.support.records import record
from tests.support.results import compared_records, compared_shop, comparison
from tests.support.run_documents import CUT_SHORT

SYSBENCH, TPCC = "dbcluster compare::sysbench oltp_read_write t4", "dbcluster compare::tpcc w1 t4"


@pytest.fixture(scope="module", autouse=True)
def uncharted():
    """The claims of the pages have no charts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim_chart, "svg", lambda made, *given, **named: None)
        yield


@pytest.fixture
def read(tmp_path):
    """``read(claims, **run)``: the results of a comparison, as they are read back."""
    number = itertools.count()
    return lambda made=None, **run: sources.read(comparison(tmp_path / f"run{next(number)}", made, **run))


def shown(view):
    """The answer as text: the sentence, a line for each row, the remarks, and what differs."""
    rows = [" | ".join([row.workload, row.metric, *row.figures, row.state, row.text]) for row, _ in view.rows]
    found = view.differences
    differing = [" | ".join(cells) for cells in (found.columns, *found.rows)]
    return "\n".join([view.sentence, " | ".join(view.columns), *rows, *view.remarks, *differing, *found.notes])


def test_the_answers_of_a_page(read):
    """They are those of the golden file."""
    again = [dataclasses.replace(one, tries=2, data_fits="the data fits") for one in compared_records()]
    cases = {
        "no worse": read(),
        "worse": read(compared_records(faster=0.8)),
        "no difference": read(compared_records(faster=1.0)),
        "could not tell": read(compared_records(spread=0.5)),
        "a second try on data that fit": read(again),
        "killed before its last workload": read(ended=None, selected=3),
        "transactions of a directory": read(compared_shop(browse=700, history=200, order=98)),
    }

    golden.compare("page_comparison", {case: shown(no_worse_view.view(source, {})) for case, source in cases.items()})


def test_the_answer_is_that_of_the_terminal(read):
    """The results have all that the command knew: the same sentence and the same rows."""
    records = compared_records()
    first, closer, second, other, tail = map(no_worse.of_record, records)
    reason = "p95 needs rounds of 14.2 s here"
    compared = [
        ComparedWorkload("sysbench oltp_read_write t4", first, closer, tail),
        ComparedWorkload("tpcc w1 t4", second, other, None, reason),
    ]
    view = no_worse_view.view(read(records), {})

    assert view.sentence == no_worse.sentence(compared, ("current", "candidate"))
    assert [row for row, _ in view.rows] == no_worse.rows(compared)


def test_results_of_tests_have_no_such_answer(read):
    """Their sentence counts claims; a comparison without any answer has nothing to show either."""
    without = (TestDocument(SYSBENCH, "inconclusive", "its time is used", 0.0),)

    assert no_worse_view.view(read([record()]), {}) is None
    assert no_worse_view.view(read([], tests=without), {}) is None


def test_an_answer_needs_no_run_document(read):
    """A copy in part has the rows of its answers; why another one is missing is not known."""
    source = dataclasses.replace(read(), run=None)

    assert [(row.workload, row.metric) for row, _ in no_worse_view.view(source, {}).rows] == [
        ("sysbench oltp_read_write t4", "goodput"),
        ("sysbench oltp_read_write t4", "p95"),
        ("tpcc w1 t4", "goodput"),
    ]


def test_a_workload_without_its_throughput_has_a_reason(read):
    """It began, and the command was killed."""
    records = compared_records()
    tests = (TestDocument(SYSBENCH, "holds", "", 0.0), dataclasses.replace(CUT_SHORT, test=TPCC))
    kept = [one for one in records if one.test == SYSBENCH]
    *_, (row, _) = no_worse_view.view(read(kept, tests=tests, ended=None, selected=2), {}).rows

    assert (row.workload, row.state, row.text) == (
        "tpcc w1 t4",
        "inconclusive",
        "no answer: it began, and did not end",
    )


def test_transactions_lead_to_the_claim_about_p95(read):
    """Their figures are from its rounds."""
    keys = {
        ("dbcluster compare::sql shop t8", "goodput"): "claim1",
        ("dbcluster compare::sql shop t8", "p95"): "claim2",
    }
    view = no_worse_view.view(read(compared_shop(browse=700, order=300)), keys)

    assert [(row.metric, row.state, key) for row, key in view.rows] == [
        ("goodput", "holds", "claim1"),
        ("p95", "holds", "claim2"),
        ("p95:browse", "compared", "claim2"),
        ("p95:order", "compared", "claim2"),
    ]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The text of the page of a comparison."""
    return report_page.html([sources.read(comparison(tmp_path_factory.mktemp("page") / "run"))])


def test_the_answer_comes_before_everything_else(page):
    """The sentence of the command, the table, what differs in effect, and then facts about the run."""
    parts = ("<h1>candidate is no worse than current: ", '<table class="answers">', "Differs in effect", "<dl class")
    places = [page.index(part) for part in parts]

    assert places == sorted(places)
    assert "<title>candidate is no worse than current: " in page
    assert "claims hold" not in page


def test_a_ratio_stands_once(page):
    """The guard and the comparison of one throughput are one claim, with all rounds, and no plot repeats the table."""
    texts = Texts(page)
    claims = [said for name, said in texts.sections.items() if name.startswith("claim")]

    assert len(claims) == 3
    assert "overview" not in texts.sections
    assert "candidate against current" not in page
    assert "The guard holds by its 90 % interval" in claims[0]
    assert "after 8 pairs" in claims[0]
    assert " 24 " in claims[0]


def test_a_row_leads_to_its_claim(page):
    """The name of the workload is a link; a row without an answer has none."""
    table = page[page.index('<table class="answers">') : page.index("Differs in effect")]

    assert re.findall(r'<a href="#(claim[0-9])">([a-z]+)', table) == [
        ("claim1", "sysbench"),
        ("claim3", "sysbench"),
        ("claim2", "tpcc"),
    ]


def test_a_page_of_two_comparisons_has_each_answer(tmp_path):
    """Each below its directory, with its own table."""
    both = [comparison(tmp_path / name) for name in ("first", "second")]
    texts = Texts(report_page.html(sources.read_all(both)))

    for number, name in enumerate(("first", "second"), 1):
        assert "candidate is no worse than current: 1.30x as fast on sysbench" in texts.sections[f"comparison{number}"]
        assert f"{tmp_path}/{name}" in texts.sections[f"comparison{number}"]
