"""Claims side by side: by release, topology, storage, machine and run."""

import dataclasses

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.evidence import SpecDocument
from pytest_dbcluster.reporting.page import comparison_view
from pytest_dbcluster.reporting.page.sources import Source
from tests.support.records import failed, record
from tests.support.run_documents import MACHINE, run_document

OLD, NEW = "mariadb:10.5 10.5.29", "mariadb:10.11 10.11.19"


@pytest.fixture
def keyed(tmp_path):
    """``keyed(claims, claims)``: the claims of one directory each; ``machines`` are the ids of theirs."""

    def make(*groups, machines=()):
        runs = [run_document(machine=dataclasses.replace(MACHINE, id=name * 8)) for name in machines]
        runs += [None] * (len(groups) - len(runs))
        return [
            (Source(tmp_path, f"run{number}", run, tuple(group), ()), made, f"claim{place}")
            for number, (group, run) in enumerate(zip(groups, runs, strict=True))
            for place, made in enumerate(group)
        ]

    return make


def on(release, made=record, **changes):
    """A claim of the same test on a release."""
    return made(release=release, test=f"t.py::test_it[{release.partition(' ')[0]}-write]", **changes)


def of(topology, nodes=3, *, storage="", names=("flush_2", ""), other=None, **changes):
    """A claim about a cluster of this topology; its id has what the topology and the storage are called."""
    candidate, baseline = names[0], names[1] or f"{topology}{nodes}"
    spec = SpecDocument(topology, nodes, "mariadb:10.11", "10.11.19", "", {}, (), "", storage, "vendor")
    given = {
        "claim_id": f"test_it::test_it[{topology}-write] | {candidate}.beats({baseline}) | mysqlslap write c50",
        "candidate": candidate,
        "baseline": baseline,
        "specs": {candidate: spec, baseline: other or spec},
        "storage": storage,
    }
    return record(**{**given, **changes})


def cells(shown):
    """The state of each cell, row by row."""
    return [[cell.state if cell else "" for cell in row.cells] for row in shown.rows]


def test_a_claim_is_one_row_with_a_column_for_each_release(keyed):
    """Rising versions; 10.5 comes before 10.11. Each cell has symbol, word, ratio, interval and medians."""
    shown = comparison_view.view(keyed([on(NEW), on(OLD, failed, load="mysqlslap write c50")]))
    [row] = shown.rows
    old, new = row.cells

    assert (shown.title, shown.columns) == ("Claims by release", (OLD, NEW))
    assert (row.record.text, row.record.load, row.where) == ("flush_2.beats(galera3)", "mysqlslap write c50", "")
    assert (old.symbol, old.state, new.symbol, new.state) == ("✗", "refuted", "✓", "holds")
    assert (new.ratio, new.key) == ("1.26x", "claim0")
    assert new.interval.startswith("1.1")
    assert new.medians.endswith(" /s")


def test_a_guard_shows_the_interval_by_which_it_holds(keyed):
    """It may hold after four pairs, before the wider interval has an end."""
    guards = [
        on(release, claim=kinds.no_slower_than(0.2), faster=1.0, sd=0.01, pairs=8, claim_id="x")
        for release in (OLD, NEW)
    ]
    shown = comparison_view.view(keyed(guards))

    assert cells(shown) == [["holds", "holds"]]
    assert all(cell.interval.startswith("90 %: 0.") for cell in shown.rows[0].cells)


def test_an_unknown_aspect_is_refused(keyed):
    """The sentence lists the known ones."""
    with pytest.raises(
        ConfigError, match="unknown comparison 'releases'; known: release, topology, storage, machine, "
    ):
        comparison_view.view(keyed([on(NEW)]), "releases")


@pytest.mark.parametrize("by", comparison_view.KNOWN)
def test_one_value_has_no_view(keyed, by):
    """There is nothing to compare."""
    assert comparison_view.view(keyed([of("galera"), of("galera", load="other", claim_id="other")]), by) is None


def test_releases_without_a_claim_in_common_have_no_view(keyed):
    """A table whose rows have one figure each compares nothing."""
    assert comparison_view.view(keyed([on(NEW), on(OLD, load="other")])) is None


def test_topologies_stand_side_by_side(keyed):
    """The parameter of the test and the name of the variant differ, and it is the same claim."""
    shown = comparison_view.view(keyed([of("galera"), of("standalone", 1), of("async_replication", 2)]), "topology")

    assert shown.columns == ("async_replication2", "galera3", "standalone1")
    assert cells(shown) == [["holds"] * 3]


def test_clusters_of_one_topology_differ_by_their_nodes(keyed):
    """Three nodes and five nodes are two columns, and not one claim that was made twice."""
    claims = [of("galera", nodes, claim_id=f"t::test[galera{nodes}] | a.beats(b) | load") for nodes in (3, 5)]
    shown = comparison_view.view(keyed(claims), "topology")

    assert shown.columns == ("galera3", "galera5")
    assert cells(shown) == [["holds", "holds"]]


def test_a_claim_about_two_topologies_has_no_column(keyed):
    """It compares them itself. Claims of one topology alone are counted, and left out."""
    one, other = of("galera"), of("standalone", 1)
    between = of("galera", other=other.specs["flush_2"])
    alone = of("galera", claim_id="test_it::test_alone | a.beats(b) | load")
    shown = comparison_view.view(keyed([one, other, between, alone]), "topology")

    assert shown.columns == ("galera3", "standalone1")
    assert len(shown.rows) == 1
    (note,) = shown.notes
    assert note == "left out 1 claim measured on only one topology"


def test_storage_stands_side_by_side(keyed):
    """The variants are called after their volumes, and it is the same claim."""
    slow = of("galera", storage="gp2-100", names=("flush_2_gp2_100", "galera3_gp2_100"))
    limited = of("galera", storage="iops=500", names=("flush_2_iops_500", "galera3_iops_500"))
    shown = comparison_view.view(keyed([of("galera"), slow, limited]), "storage")

    assert shown.columns == ("gp2-100", "iops=500", "the machine's own disk")
    assert cells(shown) == [["holds"] * 3]


def test_machines_stand_side_by_side(keyed):
    """Each column names the machine; where each has another release, a sentence says so."""
    claims = [on(NEW)], [on(NEW)]
    shown = comparison_view.view(keyed(*claims, machines=("aaaa", "bbbb")), "machine")
    mixed = comparison_view.view(keyed([on(NEW, claim_id="x")], [on(OLD, claim_id="x")], machines=("aaaa", "bbbb")))

    assert shown.columns == ("aaaaaa, 2 x a CPU", "bbbbbb, 2 x a CPU")
    assert cells(shown) == [["holds", "holds"]]
    assert shown.notes == ()
    assert mixed.columns == (OLD, NEW)
    (note,) = mixed.notes
    assert note.endswith(" differ in machine")


def test_runs_stand_side_by_side_in_their_order(keyed):
    """The same claim on the same release in two runs of one machine, such as before and after a change."""
    shown = comparison_view.view(keyed([on(NEW)], [on(NEW)], machines=("aaaa", "aaaa")), "run")

    assert shown.columns == ("run0", "run1")
    assert cells(shown) == [["holds", "holds"]]


def test_what_else_differs_makes_rows(keyed):
    """Two machines on two releases: a row for each machine, which it names."""
    shown = comparison_view.view(keyed([on(OLD), on(NEW)], [on(OLD), on(NEW)], machines=("aaaa", "bbbb")))

    assert shown.columns == (OLD, NEW)
    assert [row.where for row in shown.rows] == ["aaaaaa, 2 x a CPU", "bbbbbb, 2 x a CPU"]
    assert cells(shown) == [["holds", "holds"]] * 2


def test_the_same_claim_twice_has_numbered_rows(keyed):
    """Results of an older version have no ids, and a test may have claimed the same twice."""
    shown = comparison_view.view(keyed([on(OLD), on(OLD), on(NEW), on(NEW)]))

    assert [row.where for row in shown.rows] == ["number 1", "number 2"]
    assert cells(shown) == [["holds", "holds"]] * 2


def test_a_claim_is_known_by_its_id(keyed):
    """Its margin and its file may change, and it is the same claim."""
    shown = comparison_view.view(
        keyed([on(NEW, claim_id="x"), on(OLD, claim_id="x", text="flush_2.beats(galera3, by=0.1)")])
    )

    assert [row.record.text for row in shown.rows] == ["flush_2.beats(galera3)"]


def test_a_claim_that_was_not_measured_has_an_empty_cell(keyed):
    """A test may be skipped on one release."""
    assert cells(comparison_view.view(keyed([on(NEW), on(OLD), on(NEW, load="other")])))[1] == ["", "holds"]


def test_a_page_shows_each_division_once(keyed):
    """Two runs on two machines are compared by machine; by run the same table would come again."""
    two = keyed([on(OLD), on(NEW)], [on(OLD), on(NEW)], machines=("aaaa", "bbbb"))

    assert [view.by for view in comparison_view.views(two)] == ["release", "machine"]
    assert comparison_view.views(keyed([on(NEW)])) == []


def test_the_view_is_a_table_of_texts_too(keyed):
    """For the terminal and for Markdown, with the absolute medians."""
    block = comparison_view.block(comparison_view.view(keyed([on(NEW), on(OLD)])))

    assert block.columns == ("claim", "load", OLD, NEW)
    assert block.rows[0].cells[2].startswith("1.26x (1.1")
    assert ") holds, " in block.rows[0].cells[2]
    assert block.rows[0].cells[2].endswith(" /s")
