"""The matrix of claims and releases: its rows, columns and cells, and how it is laid out."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from types import SimpleNamespace

import pytest

from pytest_dbcluster.reporting.tables import layout, matrix
from pytest_dbcluster.reporting.tables.matrix import EndedTest
from tests.support.facts import missing
from tests.support.records import beside, failed, record, undecided

OLD, NEW, OTHER = "mariadb:10.11 10.11.19", "mariadb:11.8 11.8.3", "mysql:9.7 9.7.4"
LACKS = "mysql:9.7 (apt) has no Galera library (libgalera_smm.so)"


def identity(release, parameters="write", name="test_flush"):
    """The node id of a test on a release."""
    return f"suites/galera/test_flush.py::{name}[{release.partition(' ')[0]}-{parameters}]"


def on(release, made=record, **changes):
    """A record of the claim on this release."""
    return made(release=release, load="mysqlslap write c50", **{"test": identity(release), **changes})


def skipped(release, reason=LACKS, **changes):
    """A test that was skipped on this release."""
    name = release.partition(" ")[0]
    return EndedTest(identity(release, **changes), name, skipped=True, reason=reason)


def cells(made):
    """The rows of a matrix as its table shows them, without the claim's text and load."""
    return [row.cells[2:] for row in matrix.block(made)[0].rows]


def below(made):
    """The reasons that stand below a matrix."""
    return matrix.block(made)[1][1:]


def test_a_claim_is_one_row_whatever_it_ran_on():
    """Ratio and verdict of each release stand side by side under the releases' names."""
    made = matrix.matrix([on(OLD), on(NEW, undecided), on(OTHER, failed)])
    [row] = matrix.block(made)[0].rows

    assert matrix.block(made)[0].columns == ("claim", "load", "mariadb:10.11", "mariadb:11.8", "mysql:9.7")
    assert row.cells[:2] == ("flush_2.beats(galera3)", "mysqlslap write c50")
    assert [cell.split()[1] for cell in row.cells[2:]] == ["holds", "inconclusive", "refuted"]
    assert row.cells[2] == "1.26x holds"


def test_the_exact_versions_stand_below():
    """A column has the name that the run asked for."""
    assert matrix.block(matrix.matrix([on(OLD), on(NEW)]))[1] == [f"releases: {OLD}, {NEW}"]


def test_one_release_is_no_matrix():
    """A run on one release, or without a claim, has no matrix."""
    assert matrix.matrix([on(OLD), on(OLD, failed)]) is None
    assert matrix.matrix([], [skipped(OLD), skipped(NEW)]) is None


def test_a_claim_that_compares_releases_has_no_column():
    """A claim that compares releases is only in the closing table."""
    both = record(release=f"{OLD}, {NEW}", text="mariadb_11.8.no_slower_than(mariadb_10.11)")

    assert matrix.matrix([both]) is None
    assert len(matrix.matrix([both, on(OLD), on(NEW)]).claims) == 1


def test_releases_stand_in_the_order_of_their_versions():
    """Columns are sorted by vendor and version, 10.5 before 10.11, whatever ran first."""
    oldest = "mariadb:10.5 10.5.29"

    assert matrix.matrix([on(one) for one in (OTHER, NEW, OLD, oldest)]).releases == (oldest, OLD, NEW, OTHER)


def test_a_release_that_was_only_skipped_has_a_column():
    """A skipped release has a dash in each row, its reason once below, and no exact version."""
    records = [on(OLD), on(OLD, test=identity(OLD, "update"))]
    made = matrix.matrix(records, [skipped(OTHER), skipped(OTHER, parameters="update")])

    assert made.releases == (OLD, "mysql:9.7")
    assert [row[1] for row in cells(made)] == ["skipped [1]", "skipped [1]"]
    assert below(made) == [f"[1] {LACKS}"]


def test_what_could_not_be_told_is_an_error():
    """A test that broke shows ``error``, in red."""
    died = EndedTest(identity(NEW), "mariadb:11.8", skipped=False, reason="node node1 was ended by SIGKILL")
    made = matrix.matrix([on(OLD)], [died])

    assert cells(made) == [("1.26x holds", "broken [1]")]
    assert below(made) == ["[1] node node1 was ended by SIGKILL"]
    assert matrix.block(made)[0].rows[0].colour == "red"


def test_a_claim_that_a_test_did_not_reach_says_so():
    """A claim after a failing one of the same test was not reached."""
    cause = {"text": "flush_2.lower('fsyncs_per_commit', than=galera3)"}
    end = EndedTest(identity(NEW), "mariadb:11.8", skipped=False, reason="REFUTED flush_2.beats(galera3)")
    made = matrix.matrix([on(OLD), on(OLD, **cause), on(NEW, failed)], [end])

    assert [row[1] for row in cells(made)] == ["0.79x refuted", "not reached [1]"]
    (reason,) = below(made)
    assert missing(reason, "[1] ", "its test ended before", ": REFUTED flush_2.beats(galera3)") == []


def test_what_nobody_asked_is_empty():
    """A claim that was not tried on a release, as in a stopped run, has an empty cell."""
    later = on(OLD, test=identity(OLD, "update"))

    assert cells(matrix.matrix([on(OLD), later, on(NEW)]))[1][1] == ""


def test_tests_of_the_same_claim_are_named():
    """Two rows with the same claim and load differ in their test; elsewhere it is left out."""
    other = [on(one, test=identity(one, "write", "test_again")) for one in (OLD, NEW)]
    rows = matrix.block(matrix.matrix([on(OLD), on(NEW), *other]))[0].rows

    assert [row.cells[0] for row in rows] == [
        "flush_2.beats(galera3) in test_flush[write]",
        "flush_2.beats(galera3) in test_again[write]",
    ]


def test_a_claim_that_is_asked_twice_is_two_rows():
    """A claim made twice in a test has two rows, matched by number."""
    made = matrix.matrix([on(OLD), on(OLD, failed), on(NEW), on(NEW, undecided)])

    assert [[cell.split()[1] for cell in row] for row in cells(made)] == [
        ["holds", "holds"],
        ["refuted", "inconclusive"],
    ]


def test_a_test_that_came_to_no_claim_has_a_row():
    """A test that reached no claim on any release is listed by its name."""
    made = matrix.matrix([on(OLD), on(NEW)], [skipped(OTHER, name="test_reads"), skipped(OTHER)])

    assert [row.cells for row in matrix.block(made)[0].rows][1] == ("test_reads[write]", "", "", "", "skipped [1]")


def test_what_was_measured_beside_neither_holds_nor_fails():
    """A comparison that asserts nothing has the words of the closing table and no colour."""
    made = matrix.matrix([on(OLD, beside), on(NEW, beside)])

    assert [cell.split()[1] for cell in cells(made)[0]] == ["unclear", "unclear"]
    assert matrix.block(made)[0].rows[0].colour == ""


def test_a_claim_without_a_ratio_has_its_word():
    """A claim without pairs shows its verdict without a ratio."""
    none = on(NEW, undecided)
    none = dataclasses.replace(none, verdict=dataclasses.replace(none.verdict, ratio=math.nan))

    assert cells(matrix.matrix([on(OLD), none]))[0][1] == "inconclusive"


@pytest.mark.parametrize(
    ("made", "colour"), [((record, record), "green"), ((record, undecided), "yellow"), ((undecided, failed), "red")]
)
def test_a_row_has_the_colour_of_its_worst_verdict(made, colour):
    """Green only where the claim holds on all releases."""
    rows = matrix.block(matrix.matrix([on(OLD, made[0]), on(NEW, made[1])]))[0].rows

    assert [row.colour for row in rows] == [colour]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_many_releases_are_split_into_blocks(width):
    """Each has as many as fit beside the claims, none is lost, and every line fits the screen."""
    releases = [f"mariadb:{number}.4 {number}.4.1" for number in range(10, 22)]
    whole, _ = matrix.block(matrix.matrix([on(one) for one in releases]))
    found = matrix.parts(whole, width)

    assert [name for one in found for name in one.columns[2:]] == list(whole.columns[2:])
    assert max(len(line) for one in found for line, _ in layout.text(one, width)) <= width
    assert [one.rows[0].cells[:2] for one in found] == [whole.rows[0].cells[:2]] * len(found)
    assert found[0].title.endswith(f"(1 of {len(found)})")


def test_a_screen_that_is_too_narrow_for_one_release_shows_one():
    """On a very narrow screen, lines are longer than the screen, but complete."""
    found = matrix.parts(matrix.block(matrix.matrix([on(OLD), on(NEW)]))[0], 20)

    assert [one.columns[2:] for one in found] == [("mariadb:10.11",), ("mariadb:11.8",)]


def test_plain_text_and_markdown_say_the_same():
    """Table, versions and reasons; the Markdown is one table however many releases there are."""
    made = matrix.matrix([on(OLD), on(NEW)], [skipped(OTHER)])
    shown = matrix.markdown(made).splitlines()

    assert shown[2] == "| claim | load | mariadb:10.11 | mariadb:11.8 | mysql:9.7 |"
    assert shown[4] == "| `flush_2.beats(galera3)` | mysqlslap write c50 | 1.26x holds | 1.26x holds | skipped [1] |"
    assert shown[-2:] == [f"- releases: {OLD}, {NEW}, mysql:9.7", f"- [1] {LACKS}"]
    assert matrix.text(made).splitlines()[-1] == f"[1] {LACKS}"


def test_the_csv_has_a_line_for_each_claim_and_release():
    """The CSV has a cell for each name, figure and verdict; missing ones are empty."""
    endless = on(NEW, undecided, pairs=3)
    made = matrix.matrix([on(OLD), endless], [skipped(OTHER)])
    old, new, other = csv.DictReader(io.StringIO(matrix.as_csv(made)))

    assert (old["test"], old["claim"]) == ("suites/galera/test_flush.py::test_flush[write]", "flush_2.beats(galera3)")
    assert (old["release"], old["version"], old["verdict"], old["why"]) == ("mariadb:10.11", "10.11.19", "holds", "")
    assert float(old["low"]) < float(old["ratio"]) < float(old["high"])
    assert (new["verdict"], new["high"]) == ("inconclusive", "")
    assert (other["ratio"], other["verdict"], other["why"]) == ("", "skipped", LACKS)


def test_reasons_come_from_the_reports_of_measuring_tests():
    """The reason is the first line of the message; tests that passed or measure nothing are left out."""
    crash = SimpleNamespace(reprcrash=SimpleNamespace(message="KeyError: 'x'\nmore"))
    said = [("t.py", 1, f"Skipped: {LACKS}"), "REFUTED a.beats(b)\n  all of it", crash, "", None]

    def report(longrepr, outcome="failed", *properties):
        return SimpleNamespace(nodeid="t.py::test", longrepr=longrepr, outcome=outcome, user_properties=properties)

    asked = (matrix.RELEASE, "mysql:9.7")
    found = matrix.ended_tests(
        {
            "skipped": [report(said[0], "skipped", asked)],
            "failed": [report(one, "failed", asked) for one in said[1:4]],
            "passed": [report(None, "passed", asked), report("x")],
            "warnings": [SimpleNamespace(message="no report of a test")],
        }
    )

    assert [one.reason for one in found] == [LACKS, "REFUTED a.beats(b)", "KeyError: 'x'", ""]
    assert [one.skipped for one in found] == [True, False, False, False]
    assert {one.release for one in found} == {"mysql:9.7"}
