"""The closing table: which block a claim stands in, and how it is laid out."""

import dataclasses
import re

import pytest

from pytest_dbcluster import reasons
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.tables import closing, layout
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from tests.support.facts import missing
from tests.support.observations import unindexed_comparison
from tests.support.records import beside, drained, failed, record, undecided

BROKEN = TestDocument("t.py::test_broken", "broken", "RuntimeError: node2 has no disk", 3.0)


def lines(records, width=100):
    """The blocks as a terminal of this width shows them, headings included."""
    return [
        line
        for block in closing.blocks(records)
        for line in (block.title, *(one for one, _ in layout.text(block, width)))
    ]


def test_a_decided_claim_is_one_row():
    """Claim, load, ratio with interval, published ratio, verdict, pairs and seconds stand side by side."""
    shown = lines([record(published=7.406)], width=110)

    assert " ".join(shown[1].split()) == "claim load ratio (99.9 %) published verdict pairs seconds"
    assert shown[2].split("  ")[0] == "flush_2.beats(galera3)"
    assert shown[2].split()[-4:] == ["7.41x", "holds", "12", "11"]
    assert "mysqlslap write c50  1.26x (1." in shown[2]


def test_a_default_is_named_with_the_commands_that_replace_it():
    """Each command once; claims on one cluster, and those with a measured difference, need none."""
    measured = ClusterDifference(0.05, "measured on 24 pairs of clusters", 24)
    default = dataclasses.replace(measured, source="default", command="dbcluster calibrate galera")
    two = dataclasses.replace(default, command="dbcluster calibrate galera && dbcluster calibrate drbd")
    one, other, without = (record(cluster_difference=difference) for difference in (default, two, measured))

    assert closing.to_calibrate([without, record()]) == []
    (line,) = closing.to_calibrate([one, without, other, one])
    assert "default" in line
    assert line.endswith(": dbcluster calibrate galera && dbcluster calibrate drbd")


def test_more_than_two_commands_that_replace_defaults_are_counted():
    """A run over releases and workloads has a dozen; the line says where the others are."""
    commands = [f"dbcluster calibrate galera --release mariadb:{series}" for series in ("10.5", "10.11", "11.8")]
    default = ClusterDifference(0.05, "default", 0, command=" && ".join(commands))

    (line,) = closing.to_calibrate([record(cluster_difference=default)])

    assert missing(line, commands[0], commands[1], "1 more", "claims.jsonl") == []
    assert commands[2] not in line


def test_inconclusive_claims_stand_apart():
    """They have a block of their own; the reason and the pairs that would decide stand below each."""
    shown = lines([undecided(), record()], width=110)

    assert shown[0] == "performance claims"
    assert shown.index("inconclusive: neither pass nor failure") == 3
    assert " inconclusive " in shown[5]
    words = " ".join(line.strip() for line in shown[6:])
    assert words.startswith("budget of 120 s of measured time used (--db-budget); needs about ")
    assert re.search(
        r"; needs about \d+ pairs in all \(\d+ s\), but no run draws more than 160: take rounds \d+ times as long in "
        r"the test \(MySQLSlap\(\.\.\., queries=\d+ times as many\)\)$",
        words,
    )


def test_an_inconclusive_guard_names_the_margin_it_could_prove():
    """The remark of an inconclusive guard gives pairs or a margin."""
    [block] = closing.blocks([undecided(claim=kinds.same_as(0.05), sd=0.3)])

    assert " or a margin >= " in block.rows[0].remark


def test_a_drain_that_changes_the_ratio_stands_below():
    """The remark has the seconds of both variants; there is none where the drain is included or changes nothing."""
    [block] = closing.blocks([drained()])

    assert block.rows[0].remark.endswith("the drain 0.56x (flush_2 0.500 s, galera3 0.000 s)")
    assert closing.blocks([drained(metric="drained_throughput")])[0].rows[0].remark == ""
    assert closing.blocks([drained(drained=drained().verdict.ratio)])[0].rows[0].remark == ""


def test_a_drain_that_takes_the_lead_away_is_shown():
    """However small it is: 1.003 times as fast is 1.00x, and .998 times as fast is on the other side of the bound."""
    made = drained(drained=0.998)
    made = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, ratio=1.003))

    assert closing.blocks([made])[0].rows[0].remark.startswith("including the drain 0.998x (")
    same = dataclasses.replace(made, drained=1.0031)
    assert closing.blocks([same])[0].rows[0].remark == ""


def test_void_blocks_stand_below():
    """The remark says how many rounds of which variant were drawn again, and why."""
    made = record()
    void = [[dataclasses.replace(made.rounds["flush_2"][0], void="the primary changed")]]
    [block] = closing.blocks([dataclasses.replace(made, void_rounds=void)])

    facts = ("void rounds", "drawn again", "flush_2 1: flush_2: the primary changed")
    assert missing(block.rows[0].remark, *facts) == []


def test_what_was_measured_beside_stands_apart():
    """A comparison that asserts nothing has its own block, and no word of passing or failing."""
    shown = lines([record(), beside()], 110)

    assert shown[3] == "measured without a claim"
    assert shown[5].startswith("flush_2 against galera3")
    assert "unclear" in shown[5]
    assert "inconclusive" not in shown[5]


def test_several_releases_have_a_column():
    """The release is shown only where there is more than one."""
    one = record()
    other = dataclasses.replace(one, release="mariadb:11.8 11.8.3")

    assert "release" not in lines([one, one], 130)[1]
    assert "release" in lines([one, other], 130)[1]
    assert "mariadb:11.8 11.8.3" in lines([one, other], 130)[3]


def test_a_narrow_screen_wraps_the_claim():
    """At 100 columns every line fits, and a long claim goes on in the next line."""
    long = record(candidate="tuned_a_and_more", baseline="galera3_of_another_kind", published=1.2)
    shown = lines([long, undecided(), beside()], 100)

    assert max(map(len, shown)) <= 100
    assert shown[2].startswith("tuned_a_and_more.beats(  ")
    assert shown[3].startswith("  galera3_of_another_kind)  ")


def test_more_instances_are_not_advised_to_a_test_that_has_them():
    """Its clusters may differ by more than the distance to the bound."""
    apart = dataclasses.replace(kinds.beats(0.05), apart=0.03)
    few, many = (undecided(claim=apart, instances=count) for count in (1, 4))

    assert "instances=4" in closing.needs(few)
    assert "instances=4" not in closing.needs(many)


@pytest.mark.parametrize(("made", "colour"), [(record, "green"), (failed, "red"), (undecided, "yellow"), (beside, "")])
def test_colours(made, colour):
    """Holds is green, fails is red, inconclusive is yellow; a comparison that asserts nothing has no colour."""
    [block] = closing.blocks([made()])

    assert [row.colour for row in block.rows] == [colour]
    assert layout.text(block, 100)[0][1] == ""
    assert layout.text(block, 100)[1][1] == colour


def test_a_guard_that_holds_shows_the_interval_that_decided():
    """The interval of all claims may be wider than a guard that holds, so the 90 % interval is shown as well."""
    held = record(kinds.no_slower_than(0.1), faster=1.0, sd=0.03, pairs=20)
    [block] = closing.blocks([held])
    low, high = held.verdict.decided_low, held.verdict.decided_high

    assert held.verdict.low < low
    assert missing(block.rows[0].remark, "guard holds", f"90 % interval: {low:.2f} .. {high:.2f}") == []
    assert f"), 90 % ({low:.2f} .. {high:.2f}), 20 pairs" in closing.one_line(held)
    assert closing.guard_interval(record()) == closing.guard_interval(undecided(claim=kinds.no_slower_than(0.1))) == ""


def test_the_interval_of_a_refuted_claim_does_not_reach_its_bound():
    """A bound that excludes the claim is never rounded into it: 0.84 .. 1.00 would contradict the verdict."""
    made = failed()
    made = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, ratio=0.92, low=0.84, high=0.9973))

    assert closing.blocks([made])[0].rows[0].cells[2] == "0.92x (0.84 .. 0.997)"
    assert "  0.92x (0.84 .. 0.997), " in closing.one_line(made)


def test_one_line_says_the_verdict():
    """A verdict on one line has ratio, interval, published ratio, pairs and time; an inconclusive one its reason."""
    assert closing.one_line(record(published=7.4)).startswith(
        "holds  flush_2.beats(galera3)  mysqlslap write c50  1.26x (1."
    )
    assert closing.one_line(record(published=7.4)).endswith("), published 7.40x, 12 pairs, 11 s")
    assert closing.one_line(undecided()).endswith(" s: budget of 120 s of measured time used (--db-budget)")
    assert "budget" not in closing.one_line(beside())


def test_the_total_counts_every_kind():
    """The total counts claims, comparisons and broken tests by their state."""
    assert closing.total([record()]) == "1 holds"
    assert closing.total([record(), record(), failed(), undecided(), beside()], [BROKEN]) == (
        "2 hold, 1 refuted, 1 inconclusive, 1 compared, 1 broken"
    )
    assert closing.total([beside(), beside()]) == "2 compared"


def test_a_test_without_a_verdict_is_a_row():
    """In ``summary.md`` a broken test has its outcome and its reason."""
    [_, block] = closing.blocks([record()], (), [BROKEN])

    assert block.title == "tests without a verdict"
    assert [row.cells for row in block.rows] == [("t.py::test_broken", "broken", "RuntimeError: node2 has no disk")]


def test_the_legend_names_the_level():
    """The legend says which speeds the ratio compares, and the level of the interval."""
    shown = closing.legend([record()])

    assert shown.startswith("ratio: speed of the first named / speed of the other; for .lower() the counter")
    assert shown.endswith("in brackets the 99.9 % interval of all looks together")
    published = closing.legend([record(), record(published=7.4)])
    assert published.startswith(f"{shown}. ")
    assert missing(published.removeprefix(shown), "Published: ", "the same ratio", "publication", "test names") == []


def test_markdown_is_a_table():
    """The Markdown has a heading, a ruler, a row for each claim, and the remarks as a list."""
    [block] = closing.blocks([undecided(text="a|b")])
    shown = layout.markdown(block).splitlines()

    assert shown[0] == "## inconclusive: neither pass nor failure"
    assert shown[2].startswith("| claim | load | ratio (99.9 %) |")
    assert shown[3] == "| --- | --- | --- | ---: | --- | ---: | ---: |"
    assert shown[4].startswith("| `a\\|b` | mysqlslap mixed c50 | ")
    assert shown[6].startswith("- `a|b` (mysqlslap mixed c50): budget of 120 s")


def test_a_result_says_its_rate_and_its_bottleneck():
    """The remark has the rate of an open loop with its share, round trips, what limited the load, and small data."""
    rate = ArrivalRate("70 %", 560.0, {"galera3": 800.0, "flush_2": 900.0})
    limited, fits = (
        "the load generator is the bottleneck: galera3, 12 of 12 rounds (a thread)",
        "the data of the load fits",
    )
    trips = RoundTripsTaken(1.93, 1.8, 2.05, 8, (0.0, 0.01))
    [block] = closing.blocks([record(arrival_rate=rate, limited=limited, data_fits=fits, round_trips=trips)])

    remark = block.rows[0].remark
    share = ("open loop: 560/s", "70 % of the slowest variant's closed loop", "(galera3 800/s, flush_2 900/s); ")
    assert missing(remark, *share) == []
    assert remark.endswith(f"; {trips}; {limited}; {fits}")


def test_the_reasons_of_a_run_lead_to_their_page(tmp_path, monkeypatch):
    """One line names each reason once, with the page; without a page there is a line for each, which says what to do.

    A run without known reasons has no line.
    """
    open_claims = [undecided()] * 2
    broken = TestDocument("test_a", "broken", "cluster galera3 failed before a round: node1 logged: [ERROR] it", 1.0)
    guide = tmp_path / "how-to" / "inconclusive.md"
    guide.parent.mkdir()
    guide.touch()
    monkeypatch.setattr(reasons, "DOCS", tmp_path)
    monkeypatch.setattr(reasons, "CI", ())

    (line,) = closing.guide_lines(open_claims, [broken])
    assert missing(line, "what to do", "(budget-used, failed-before-round)", f": {guide}") == []
    assert closing.guide_lines([failed(), drained()]) == []
    guide.unlink()
    budget, before_round, page = closing.guide_lines(open_claims, [broken])
    assert missing(budget, "what to do (budget-used): ", "larger --db-budget") == []
    assert before_round == "what to do (failed-before-round): Read the error log of the node below logs/."
    assert page == f"more: {reasons.NAME}"


def test_refuted_claims_name_the_option_that_shows_why():
    """One line for all of them; none if no claim is refuted, and if the run had the option."""
    explained = failed(servers=unindexed_comparison())

    (line,) = closing.to_explain([record(), failed(), failed(), explained], "--db-why")
    assert "--db-why" in line
    assert closing.to_explain([record(), undecided(), explained], "--db-why") == []
    verdict = dataclasses.replace(failed().verdict, claim=kinds.effect_same_as(0.05))
    assert closing.to_explain([dataclasses.replace(failed(), verdict=verdict)], "--db-why") == []
    assert closing.to_explain([dataclasses.replace(failed(), metric="capacity")], "--db-why") == []
    assert closing.to_explain([dataclasses.replace(failed(), standings=(object(),))], "--db-why") == []
