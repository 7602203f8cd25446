"""The lines of a claim, or of a test without one, in the terminal."""

from __future__ import annotations

import dataclasses
import math
import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.measuring.why.compared import ServerComparison
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.tables import closing, entries, joint_error
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from tests.support import golden
from tests.support.facts import missing
from tests.support.observations import unindexed_comparison
from tests.support.records import beside, drained, failed, record, undecided

LETTERS = st.text("abcdefghij_xyz0123456789", min_size=1, max_size=120)
BROKEN = TestDocument("suites/test_flush.py::test_broken", "broken", "RuntimeError: node2 has no disk", 3.0)


def shown(*made, width=80, **given):
    """The lines of these claims."""
    return [line for line, _ in entries.lines([entries.of_claim(one, **given) for one in made], width)]


def with_figures(made, **figures):
    """The record with other figures in its verdict."""
    return dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, **figures))


def test_a_claim_that_holds_is_two_lines():
    """The answer with its figure and the load; below them interval, published ratio and bar."""
    made = with_figures(record(published=7.406), ratio=1.84, low=1.18, high=3.08)

    first, second = shown(made)

    assert "1.84x" in first
    assert first.endswith("mysqlslap write c50")
    assert all(fact in second for fact in ("1.18 .. 3.08", "published 7.41x", "┼────●─────"))


def test_the_claims_of_a_terminal():
    """Every kind of entry is that of the golden file, with the lines about all claims of a run."""
    default = ClusterDifference(0.05, "default, as nothing was measured", 0, command="dbcluster calibrate galera")
    command = "pytest suites/a.py::test_b --db-seed=813"
    kinds_of_claims = {
        "holds": with_figures(record(published=7.406), ratio=1.84, low=1.18, high=3.08),
        "holds by a margin": record(kinds.beats(0.1), faster=1.5, sd=0.01),
        "a guard holds": record(kinds.no_slower_than(0.1), faster=1.0, sd=0.03, pairs=20),
        "the same speed": record(kinds.same_as(0.1), faster=1.0, sd=0.03, pairs=20),
        "a counter": record(kinds.lower(), faster=0.02, metric="fsyncs_per_commit"),
        "an order": dataclasses.replace(with_figures(record(kinds.ordered()), ratio=1.08), text="ordered(a, b, c)"),
        "refuted": failed(),
        "refuted by a margin": failed(claim=kinds.beats(0.5), faster=1.3, sd=0.01),
        "inconclusive": undecided(claim=kinds.no_slower_than(0.05), sd=0.06, faster=1.0, repeat=command),
        "inconclusive, and more pairs do not help": undecided(repeat=command),
        "no interval yet": undecided(pairs=3, repeat=command),
        "compared": beside(),
        "with a drain": drained(),
        "an open loop": record(arrival_rate=ArrivalRate("70 %", 560.0, {})),
        "another metric": with_figures(dataclasses.replace(record(), metric="p95"), ratio=1.3),
    }
    guessed = [record(cluster_difference=default), record(kinds.no_slower_than(0.1), faster=1.0, sd=0.03, pairs=20)]
    all_of_a_run = [*kinds_of_claims.values(), *guessed]

    golden.compare(
        "terminal_claims",
        {
            **{case: "\n".join(shown(made)) for case, made in kinds_of_claims.items()},
            "a broken test": "\n".join(line for line, _ in entries.lines([entries.of_test(BROKEN)], 80)),
            "one line": "\n".join(map(closing.one_line, (record(published=7.406), failed(), undecided(), beside()))),
            "all claims of a run": "\n".join(
                [closing.total(all_of_a_run, [BROKEN]), joint_error.line(all_of_a_run), closing.legend(all_of_a_run)]
            ),
            "a default instead of a calibration": "\n".join(closing.to_calibrate(guessed)),
        },
    )


def test_a_terminal_without_utf_8_gets_ascii():
    """Symbols, bar and all."""
    lines = entries.lines([entries.of_claim(one, ascii_only=True) for one in (record(), failed())], 80, ascii_only=True)

    assert "".join(line for line, _ in lines).isascii()
    assert [line[:9] for line, _ in lines] == ["+ holds  ", " " * 9, "x refuted", " " * 9]


def test_a_refuted_claim_does_not_reach_its_bound():
    """Neither in its numbers nor in its bar; a bound that is not 1 is named."""
    made = with_figures(failed(), ratio=0.92, low=0.84, high=0.9973)
    bound = shown(failed(claim=kinds.beats(0.5), faster=1.3, sd=0.01))

    assert shown(made)[1].split() == ["99.9", "%:", "0.84", "..", "0.997", "1/2", "─●─┼", "4"]
    assert "claimed > 1.50x   1/2 " in bound[1]
    assert "● ┼" in bound[1]


@pytest.mark.parametrize(
    ("claim", "said"),
    [(kinds.same_as(0.1), "claimed -10 % .. +11 %"), (kinds.no_slower_than(0.1), "claimed > 0.90x")],
)
def test_a_guard_that_holds_shows_the_interval_that_decided(claim, said):
    """The sequential interval may contain a margin that the 90 % interval excludes."""
    held = record(claim, faster=1.0, sd=0.03, pairs=20)
    text = "\n".join(shown(held))

    assert f"90 %: {held.verdict.decided_low:.2f} .. {held.verdict.decided_high:.2f}" in text
    assert "99.9 %" not in text
    assert said in text


def test_a_counter_is_compared_as_such():
    """It is no speed: lower is what the claim says."""
    made = record(kinds.lower(), faster=0.02, metric="fsyncs_per_commit")

    assert shown(made)[0].startswith("✓ holds  ")
    assert missing(shown(made)[0], "fsyncs_per_commit of flush_2", "0.0194x that of galera3") == []
    assert "fast" not in shown(made)[0]
    assert shown(made)[1].strip() == "mysqlslap write c50"
    assert "1/1024" in shown(made)[2]


def test_an_inconclusive_claim_has_the_command_to_type():
    """Its reason, the seconds that are missing, and the command on a line of its own with enough budget for them."""
    made = undecided(
        claim=kinds.no_slower_than(0.05),
        sd=0.06,
        faster=1.0,
        repeat="pytest 'suites/a.py::test_b[c]' --db-budget 12 --db-release=mysql:9.7 --db-max-pairs=20 --db-seed=813",
    )
    lines = shown(made, located=lambda test: f"../{test}")
    needed = made.verdict.needed_pairs * made.measured_seconds / 20

    assert lines[0].startswith("? inconclusive  flush_2.no_slower_than(galera3, by=0.05)   mysqlslap mixed c50")
    assert "0.98x   99.9 %: 0.91 .. 1.11" in lines[1]
    assert missing(lines[2], "budget of 120 s of measured time", "used", "(--db-budget)") == []
    more = f"needs about {needed - made.measured_seconds:.0f} s more, {made.verdict.needed_pairs} pairs in all"
    assert lines[3].strip().startswith(f"{more} or a margin >= ")
    command = shlex.split(lines[4])
    assert command[:4] == ["pytest", f"../{made.test}", "--db-release=mysql:9.7", "--db-budget"]
    assert needed < int(command[4]) < 1.25 * needed + 10
    assert len(lines) == 5


def test_there_is_no_command_that_would_not_help():
    """More than 160 pairs are never drawn, and a claim on its bound is not decided by any number."""
    many = undecided()
    none = with_figures(many, needed_pairs=None)

    assert "but no run draws more than 160: take rounds " in " ".join(line.strip() for line in shown(many))
    assert entries.rerun(many) == entries.rerun(none) == entries.rerun(record()) == entries.rerun(beside()) == ""


def test_what_there_is_to_say_of_the_rounds_stands_below():
    """Drain and arrival rate; not in the lines that are printed at once."""
    assert all(fact in shown(drained())[2] for fact in ("drain", "0.56x", "flush_2 0.500 s", "galera3 0.000 s"))
    assert len(shown(drained(), remarks=False)) == 2
    assert "open loop: 560/s" in shown(record(arrival_rate=ArrivalRate("70 %", 560.0, {})))[2]
    assert len(shown(undecided(), remarks=False)) == 3
    trips = RoundTripsTaken(1.93, 1.8, 2.05, 8, (0.0, 0.01))
    assert " ".join(map(str.strip, shown(record(round_trips=trips))[2:])) == str(trips)


def test_without_an_interval_the_bar_is_hollow():
    """Few pairs have a ratio and no interval; without pairs there is nothing."""
    few = undecided(pairs=3)

    assert "no interval yet" in shown(few)[1]
    assert "○" in shown(few)[1]
    nothing = shown(with_figures(few, ratio=math.nan, low=math.nan, high=math.nan))
    assert nothing[1].strip() == "no interval yet"


def test_a_comparison_claims_nothing():
    """It has a symbol and a word of its own, and no colour."""
    [(first, colour), *_] = entries.lines([entries.of_claim(beside())], 80)

    assert first.startswith("= compared  flush_2 is 0.98x as fast as galera3")
    assert colour == ""


def test_a_broken_test_says_why():
    """Its name, and the first line of the message."""
    assert entries.lines([entries.of_test(BROKEN)], 80) == [
        ("! broken  suites/test_flush.py::test_broken", "red"),
        ("          RuntimeError: node2 has no disk", ""),
    ]


def test_several_releases_are_named():
    """Where a run has several, each claim says its own."""
    assert "mariadb:10.11 10.11.19" not in "".join(shown(record()))
    assert "mariadb:10.11 10.11.19" in "".join(shown(record(), release=True))


def test_long_names_are_elided_in_the_middle_and_figures_never():
    """Both names keep their ends, a short one stays whole, and the ratio is always there."""
    long = "tuned_a_" * 12 + "end"
    [first, *_] = shown(record(candidate=long))
    [both, *_] = shown(record(candidate=long, baseline=f"other_{long}"))

    assert re.fullmatch(r"✓ holds  tuned_a_\S+\.\.\.\S+_end is 1\.26x as fast as galera3", first)
    assert re.fullmatch(r"✓ holds  tuned_a_\S+\.\.\.\S+end is 1\.26x as fast as other_\S+\.\.\.\S+end", both)


def test_a_wide_terminal_shows_everything():
    """Names are elided only where they have to be."""
    long = "tuned_a_" * 6
    first = shown(record(candidate=long, published=1.2), width=160)

    assert first[0].startswith(f"✓ holds  {long} is 1.26x as fast as galera3   mysqlslap write c50")


@given(LETTERS, LETTERS, LETTERS, st.integers(80, 160), st.sampled_from([record, failed, undecided, beside]))
def test_no_line_is_wider_than_the_terminal(candidate, baseline, load, width, make):
    """Whatever the names; a command alone may be longer, because a part of it is of no use."""
    made = make(candidate=candidate, baseline=f"{baseline}_b", load=load, test=f"suites/test.py::{load}", published=1.2)
    entry = entries.of_claim(made, release=True)
    broken = entries.of_test(
        dataclasses.replace(BROKEN, test=f"x.py::{load}", reason=f"{load} {baseline}: {candidate}")
    )
    lines = [line for line, _ in entries.lines([entry, broken], width)]

    assert all(len(line) <= width for line in lines if line.strip() != entry.command)
    assert not entry.command or f"    {entry.command}" in lines


def test_the_largest_differences_of_servers_stand_below_a_claim():
    """And where the rest is; while other claims run, the terminal shows only the verdict."""
    made = failed(servers=unindexed_comparison())
    text = " ".join(line.strip() for line in shown(made))

    assert missing(text, *made.servers.largest, "claims.jsonl") == []
    assert made.servers.largest[0] not in " ".join(shown(made, remarks=False))
    unknown = failed(servers=ServerComparison("galera3", "flush_2", reason="access denied"))
    assert shown(unknown)[-1].strip() == "what differs on the servers is not known: access denied"
