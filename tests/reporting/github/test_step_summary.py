"""The summary for GitHub Actions: what is shown, what is cut at its limit, and text that cannot do harm."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.github import step_summary
from pytest_dbcluster.reporting.github.step_summary import Files
from pytest_dbcluster.reporting.page import sources
from pytest_dbcluster.reporting.unwritten import Unwritten
from tests.support.records import failed, record, undecided
from tests.support.results import results

TEST = "suites/galera/test_flush.py::test_flush_2[write]"


@pytest.fixture
def source(tmp_path, monkeypatch):
    """``source(claims, **run)``: the results of a made-up run, without charts, which no summary shows."""
    monkeypatch.setattr(drawing, "available", lambda: False)

    def make(claims=(), **run):
        return sources.read(results(tmp_path / "run", list(claims), **run))

    return make


def test_the_summary_begins_with_the_sentence_and_shows_every_claim(source):
    """Refuted ones first, each with its ratio, interval and bar; their messages are folded."""
    text = step_summary.markdown(source([record(), undecided(), failed()]))
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]

    head = "## 1 of 3 claims is refuted, 1 is inconclusive, 1 holds; refuted: flush\\_2 is not faster than galera3 "
    assert text.startswith(head)
    assert [row.split(" | ")[0] for row in rows] == ["| ✗ refuted", "| ? inconclusive", "| ✓ holds"]
    assert "`flush_2.beats(galera3)` | mysqlslap update c50 | mariadb:10.11 | 0.79x (" in rows[0]
    assert text.count("<details>") == 2
    assert "machine: 2 x a CPU" in text
    assert "- **broken** `test_flush.py::test_nodes`: node2 ended on its own" in text


@pytest.mark.parametrize(
    ("ratio", "low", "high", "drawn"),
    [
        (1.0, 0.5, 2.0, "       ───●───       "),
        (2.0, 1.2, 4.0, "          │──●────   "),
        (100.0, 0.0, 900.0, "──────────┼─────────●"),
    ],
)
def test_a_bar_shows_the_interval_on_a_fixed_axis(ratio, low, high, drawn):
    """What lies beyond 8 or 1/8 is cut off there."""
    made = record()
    verdict = dataclasses.replace(made.verdict, ratio=ratio, low=low, high=high)
    found = step_summary.bar(dataclasses.replace(made, verdict=verdict))

    assert found == drawn


def test_a_guard_that_holds_shows_the_interval_by_which_it_does(source):
    """That of 90 %; the other one may have no ends yet."""
    made = record(kinds.no_slower_than(0.2), faster=1.02, sd=0.01, pairs=8)
    [row] = [line for line in step_summary.markdown(source([made])).splitlines() if line.startswith("| ✓")]

    assert "(90 %: 1." in row
    assert "no interval yet" not in row
    wide = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, decided_low=0.5, decided_high=2.0))
    assert step_summary.bar(wide).strip() == "───●───"


def test_a_summary_above_the_limit_is_cut_and_says_so(source, monkeypatch):
    """First the details are left out, then the last claims; the sentence stays."""
    monkeypatch.setattr(step_summary, "LIMIT", 3_000)
    text = step_summary.markdown(source([failed(load=f"load {number}") for number in range(40)]))

    assert len(text.encode()) <= 3_000
    assert "<details>" not in text
    assert "more claims are in the results: this summary is at GitHub's size limit." in text
    assert text.startswith("## All 40 claims are refuted: ")


def test_a_summary_of_broken_tests_above_the_limit_is_cut_too(source, monkeypatch):
    """They leave room for the claims; a note or a reason of any length does as well."""
    monkeypatch.setattr(step_summary, "LIMIT", 6_000)
    tests = tuple(TestDocument(f"test_x.py::test_{n}", "broken", "no disk " * 40, 1.0) for n in range(90))
    made = source([record()], tests=tests)
    text = step_summary.markdown(dataclasses.replace(made, notes=("a note " * 900,)))

    assert len(text.encode()) <= 6_000
    assert "- **broken** `test_x.py::test_0`: no disk" in text
    shown = text.count("- **broken**")
    assert f"{90 - shown} more broken tests are in the results: this summary is at GitHub's size limit." in text
    assert "| ✓ holds | `flush_2.beats(galera3)` |" in text


def test_tests_are_annotated_where_they_are(source):
    """Refuted and broken ones as errors, inconclusive ones as warnings; what holds has none."""
    tests = [
        TestDocument(TEST, "refuted", "FAILS a.beats(b): 50 % slower", 1.0, "suites/galera/test_flush.py", 12),
        TestDocument("test_x.py::test_y[a,b]", "broken", "node2: two\nlines", 1.0, "test,x.py", 3),
        TestDocument("test_x.py::test_z", "inconclusive", "open", 1.0),
        TestDocument("test_x.py::test_holds", "holds", "", 1.0),
    ]  # fmt: skip
    lines = step_summary.annotation_lines(source(tests=tuple(tests)))

    assert lines == [
        f"::error file=suites/galera/test_flush.py,line=12,title=refuted::{TEST}: FAILS a.beats(b): 50 %25 slower",
        "::error file=test%2Cx.py,line=3,title=broken::test_x.py::test_y[a,b]: node2: two%0Alines",
        "::warning title=inconclusive::test_x.py::test_z: open",
    ]


def test_annotations_have_paths_of_the_checkout(source, tmp_path):
    """The tests may have their root directory below it. A test outside of it has no place."""
    places = ("test_x.py", "../test_y.py", "../../z.py")
    tests = tuple(TestDocument(TEST, "broken", "no", 1.0, file, 2) for file in places)
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)}
    named = step_summary.files(environment, asked=False, root=tmp_path / "perf")
    lines = step_summary.annotation_lines(source(tests=tests), named.root)

    assert [line.partition("title")[0] for line in lines] == [
        "::error file=perf/test_x.py,line=2,",
        "::error file=test_y.py,line=2,",
        "::error ",
    ]


def test_an_open_claim_has_its_reason_in_summary_and_annotation(source):
    """The first line of its message has no room for it."""
    open_claim = undecided()
    tests = (TestDocument(open_claim.test, "inconclusive", "INCONCLUSIVE flush_2.beats(galera3)", 1.0),)
    made = source([open_claim], tests=tests)
    reason = open_claim.verdict.reason
    (line,) = step_summary.annotation_lines(made)

    assert line.startswith("::warning title=inconclusive::")
    assert line.endswith(f" s: {reason}")
    (title,) = [line for line in step_summary.markdown(made).splitlines() if line.startswith("<details>")]
    assert f": {reason}</summary>" in title


def test_outputs_count_tests(source):
    """One line each, for `steps.ID.outputs.refuted` and the like."""
    assert step_summary.outputs(source([record()])).splitlines()[:5] == [
        "holds=1", "refuted=1", "inconclusive=1", "broken=1", "skipped=1",
    ]  # fmt: skip


def test_text_of_a_server_cannot_change_the_page(source):
    """HTML, Markdown and code fences in a message are shown, and do nothing."""
    made = failed(load="<img src=x> [a](b) `c` | d", message="```\n</details><script>1</script>\n```")
    text = step_summary.markdown(source([made]))

    assert "<img" not in text
    assert "\\[a\\](b)" in text
    assert "\n```\n</details>" not in text


def test_both_files_are_added_to(source, tmp_path):
    """Other programs of the step may have written before; what cannot be written is noted."""
    directory = source([record()]).directory
    (tmp_path / "summary").write_text("before\n")
    lost = Unwritten()
    step_summary.write(directory, Files(tmp_path / "summary", tmp_path / "missing" / "output"), lost)

    assert (tmp_path / "summary").read_text().startswith("before\n## ")
    assert (directory / "github-benchmark.json").read_text().startswith("[")
    assert list(lost.reasons) == [str(tmp_path / "missing" / "output")]


def test_results_that_cannot_be_read_are_an_error(tmp_path):
    """The report turns it into a line."""
    with pytest.raises(ConfigError):
        step_summary.write(tmp_path, Files(None, None), Unwritten())


@pytest.mark.parametrize(
    ("environment", "asked", "found"),
    [
        ({}, False, None),
        ({"GITHUB_STEP_SUMMARY": "/s"}, False, None),
        ({}, True, (None, None)),
        ({"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "/s", "GITHUB_OUTPUT": "/o"}, False, ("/s", "/o")),
    ],
)
def test_nothing_is_written_outside_of_github_unless_asked(environment, asked, found):
    """GitHub names its files in the environment."""
    files = step_summary.files(environment, asked=asked)

    assert (files and tuple(path and str(path) for path in (files.summary, files.output))) == found
