"""Claims by release."""

import dataclasses

import pytest

from pytest_dbcluster.reporting.page import release_view
from pytest_dbcluster.reporting.page.sources import Source
from tests.support.records import failed, record
from tests.support.run_documents import MACHINE, run_document

OLD, NEW = "mariadb:10.5 10.5.29", "mariadb:10.11 10.11.19"


@pytest.fixture
def keyed(tmp_path):
    """``keyed(claims, claims)``: the claims of one directory each."""

    def make(*groups):
        return [
            (Source(tmp_path, f"run{number}", None, tuple(group), ()), made, f"claim{place}")
            for number, group in enumerate(groups)
            for place, made in enumerate(group)
        ]

    return make


def on(release, made=record, **changes):
    """A claim of the same test on a release."""
    return made(release=release, test=f"t.py::test_it[{release.partition(' ')[0]}-write]", **changes)


def test_a_claim_is_one_row_with_a_column_for_each_release(keyed):
    """Rising versions; 10.5 comes before 10.11. Each cell has symbol, word, ratio, interval and medians."""
    shown = release_view.view(keyed([on(NEW), on(OLD, failed, load="mysqlslap write c50")]))
    [(text, load, (old, new))] = shown.rows

    assert shown.columns == (OLD, NEW)
    assert (text, load) == ("flush_2.beats(galera3)", "mysqlslap write c50")
    assert (old.symbol, old.state, new.symbol, new.state) == ("✗", "refuted", "✓", "holds")
    assert (new.ratio, new.key) == ("1.30x", "claim0")
    assert new.interval.startswith("1.1")
    assert new.medians.endswith(" /s")


def test_one_release_has_no_such_view(keyed):
    """There is nothing to compare."""
    assert release_view.view(keyed([on(NEW), on(NEW, load="other")])) is None


def test_several_directories_stand_side_by_side(keyed):
    """The same claim on the same release in two runs, such as on two machines."""
    shown = release_view.view(keyed([on(NEW)], [on(NEW)]))

    assert shown.columns == (f"{NEW} in run0", f"{NEW} in run1")
    assert [len(cells) for _, _, cells in shown.rows] == [2]


def test_machines_stand_side_by_side(keyed, tmp_path):
    """Two directories from two machines are named by the machine, which is what a reader asks for."""
    first, second = (
        Source(tmp_path, name, run_document(machine=dataclasses.replace(MACHINE, id=name * 8)), (), ())
        for name in ("aaaa", "bbbb")
    )
    shown = release_view.view([(first, on(NEW), ""), (second, on(NEW), "")])

    assert shown.columns == (f"{NEW}, machine aaaaaa", f"{NEW}, machine bbbbbb")


def test_storage_stands_side_by_side(keyed):
    """What differs is named, and nothing else."""
    shown = release_view.view(keyed([on(NEW), on(NEW, storage="iops=500")]))

    assert shown.columns == (f"{NEW}, storage iops=500", f"{NEW}, storage of the machine")


def test_a_claim_is_known_by_its_id(keyed):
    """Its margin and its file may change, and it is the same claim."""
    shown = release_view.view(
        keyed([on(NEW, claim_id="x"), on(OLD, claim_id="x", text="flush_2.beats(galera3, by=0.1)")])
    )

    assert [text for text, _, _ in shown.rows] == ["flush_2.beats(galera3)"]


def test_a_claim_that_was_not_measured_has_an_empty_cell(keyed):
    """A test may be skipped on one release."""
    shown = release_view.view(keyed([on(NEW), on(OLD), on(NEW, load="other")]))

    assert [cell.state for cell in shown.rows[1][2]] == ["", "holds"]


def test_the_view_is_a_table_of_texts_too(keyed):
    """For the terminal and for Markdown."""
    block = release_view.block(release_view.view(keyed([on(NEW), on(OLD)])))

    assert block.columns == ("claim", "load", OLD, NEW)
    assert block.rows[0].cells[2].startswith("1.30x (1.1")
    assert block.rows[0].cells[2].endswith(") holds")
