"""``dbcluster compare --by-option``: what is said of each option that differs between two files."""

from __future__ import annotations

import argparse
import dataclasses
import re
import types

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.factorial.judging import judge
from pytest_dbcluster.claims.verdict import Terms
from pytest_dbcluster.cli.compare import by_option, comparison, guards
from pytest_dbcluster.cli.compare.by_option import AloneAnswer, Differing, OptionAnswer, OptionRole
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.factorial.effects import InteractionEstimate
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.reporting.tables.no_worse import Result
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.claims.factorial.test_contrasts import trial_of
from tests.cli.compare.test_comparison import NothingKnown
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy

OPTIONS = {"flush": ("1", "2"), "binlog": ("1", "0"), "hash": ("0", "1")}
NAMES = ("current", "candidate")
SERVER = ClusterSpec("standalone")


def answered(gains, interactions=(), blocks=10, sd=0.02):
    """The rows of three options with these log gains."""
    trial, terms = trial_of(gains, blocks, sd=sd), Terms(0.0005 / 6, out_of_budget="--seconds 60 are over")
    verdicts = {name: judge(kinds.effect_same_as(0.05), trial, terms, number) for number, name in enumerate(OPTIONS)}
    return OptionAnswer("tpcc", by_option.rows(Differing(OPTIONS, (), SERVER), verdicts, interactions))


def test_options_are_ranked_by_their_share_of_the_difference():
    """A share is that of the sum of all effects; an option that slows has a negative one."""
    answer = answered([0.3, 0.0, -0.1])

    assert [row.option for row in answer.rows] == ["flush", "hash", "binlog"]
    assert [row.role for row in answer.rows] == [OptionRole.CARRIES, OptionRole.CARRIES, OptionRole.NOTHING]
    assert [round(row.share, 1) for row in answer.rows] == [1.5, -0.5, 0.0]
    assert answer.is_complete
    assert answer.rows[2].text == "does nothing measurable (within 5 %)"


def test_a_table_has_both_values_the_ratio_and_the_answer():
    """The last line names what carries the difference."""
    answer = answered([0.3, 0.0, 0.0])
    head, columns, first, *_ = by_option.table(answer, NAMES)[1:]

    assert head == "tpcc: what candidate changes, option by option"
    assert columns.split()[:2] == ["option", "ratio"]
    assert "share" in columns
    assert first.startswith("flush   1 -> 2  1.3")
    assert first.endswith("carries it")
    assert by_option.sentence([answer]).startswith("flush (1.3")
    assert by_option.sentence([answer]).endswith("x) carries the difference on tpcc")
    assert by_option.outcomes([answer]) == [("dbcluster compare --by-option::tpcc", "holds", "")]


def test_an_option_that_needs_another_one_says_so():
    """Its effect is small over all, and depends on the other option."""
    pair = InteractionEstimate(("flush", "binlog"), 1.3, 1.1, 1.5, claimed=True)
    other = dataclasses.replace(pair, options=("flush", "hash"), low=0.9)
    answer = answered([0.3, 0.0, 0.0], [pair, other])

    assert {row.option: row.text for row in answer.rows} == {
        "flush": "carries it (depends on binlog)",
        "binlog": "only together with flush",
        "hash": "does nothing measurable (within 5 %)",
    }


def alone(ratio, sd=0.01):
    """The line about two of five options, which are alone this many times as fast as all of them."""
    source = FakeSource(("all", "some"), noisy(1.0, 1 / ratio, sd=sd))
    answer = guards.same(Measurement(source, Rules(seed=1, budget=40)))
    return AloneAnswer(("flush", "binlog"), 5, answer.verdict).text


def test_the_options_that_carry_it_are_compared_alone():
    """With all options that differ: equally fast, not equally fast, or the reason why it is open."""
    facts = ("flush and binlog alone against all 5 options: equally fast within 5 % (1.0", "x, 90 % ")
    assert missing(alone(1.0), *facts) == []
    assert missing(alone(0.6), "not equally fast, 0.6", "the other options matter too") == []
    assert missing(alone(1.0, sd=0.5), "could not tell, ", "40 s of measured time") == []
    left = AloneAnswer(("flush",), 2, None, "0 s are left")
    answer = dataclasses.replace(answered([0.3, 0.0, 0.0]), alone=left)
    assert by_option.table(answer, NAMES)[-1] == "flush alone against all 2 options: could not tell: 0 s are left"


@pytest.mark.parametrize("at", ["effects", "alone"])
def test_an_error_has_another_exit_code_than_an_open_answer(at):
    """Also if it ended the last rounds, of the options alone."""
    answer = answered([0.3, 0.0, 0.0])
    if at == "alone":
        failed = dataclasses.replace(answer, alone=AloneAnswer(("flush",), 2, None, "node1 died", failed=True))
    else:
        failed = OptionAnswer("tpcc", (), "node1 died", failed=True)

    assert by_option.overall([answer, failed]) is Result.BROKEN
    assert by_option.outcomes([failed]) == [("dbcluster compare --by-option::tpcc", "broken", "node1 died")]


def test_the_carrying_options_are_measured_over_all_of_them(monkeypatch, tmp_path):
    """The baseline has all options that differ, the candidate only those that carry the difference."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    measured = []
    monkeypatch.setattr(
        comparison,
        "Testbed",
        lambda _, variants, *__, **___: (
            measured.extend(variants) or FakeSource(("all", "some"), noisy(1.0, 2.0, sd=0.01))
        ),
    )
    resolution = types.SimpleNamespace(
        resolve=lambda spec: types.SimpleNamespace(cluster_key=1, name=spec.name, options=dict(spec.options))
    )
    pool = types.SimpleNamespace(resolution=resolution, turns=types.SimpleNamespace(clock=lambda: 0.0))
    kept = types.SimpleNamespace(recall=lambda *_: NothingKnown(), recorder=lambda _: lambda answer: None)
    how = {"end": 60.0, "seconds": 60.0, "seed": 1, "progress": str, "kept": kept}
    made = by_option.OptionComparison(Differing(OPTIONS, (), SERVER), pool, **how)
    found = made._measure_alone(TPCC(), answered([0.3, 0.0, 0.0]).rows, 60.0)

    assert [(one.name, one.options) for one in measured] == [
        ("all options", {name: candidate for name, (_, candidate) in OPTIONS.items()}),
        ("those alone", {"flush": "2"}),
    ]
    assert (found.options, found.count, found.verdict.outcome) == (("flush",), 3, Outcome.FAILS)
    assert found.verdict.ratio == pytest.approx(0.5, rel=0.05)
    for rows in (answered([0.0, 0.0, 0.0]).rows, answered([0.3, 0.3, 0.3]).rows):  # none of them, and all of them
        assert made._measure_alone(TPCC(), rows, 60.0) is None


def test_an_open_option_has_the_reason():
    """Then the exit code says that one has no answer."""
    answer = answered([0.05, 0.0, 0.0], sd=0.2, blocks=4)

    assert not answer.is_complete
    assert re.fullmatch(
        r"could not tell: --seconds 60 are over; it needs about \d+ times as many rounds", answer.rows[0].text
    )
    assert by_option.sentence([answer]).startswith("could not tell ")
    assert by_option.outcomes([answer])[0][1] == "inconclusive"


def test_a_workload_without_an_answer_has_the_reason():
    """No rows."""
    answer = OptionAnswer("tpcc", (), "its share of --seconds is over")

    assert by_option.table(answer, NAMES) == ["", "tpcc: no answer: its share of --seconds is over"]
    assert by_option.sentence([answer]) == "could not tell which option does it on tpcc"
    assert not answer.is_complete


def test_nothing_measurable_is_an_answer():
    """No option is blamed."""
    answer = answered([0.0, 0.0, 0.0], blocks=20)

    assert by_option.sentence([answer]) == "no option does anything measurable on tpcc"
    assert answer.is_complete


def resolution_of(defaults):
    """A resolution that knows these variables of the servers, and resolves each spec to itself."""
    return types.SimpleNamespace(
        defaults=lambda variant: {**defaults, **variant.options}, resolve=lambda spec: dict(spec.options)
    )


def variant(**options):
    """The variant of a file."""
    return types.SimpleNamespace(options={name: str(value) for name, value in options.items()})


def test_only_options_with_another_effect_are_compared():
    """An option of one file differs from what the other server has anyway; other spellings of a value do not."""
    resolution = resolution_of({"sync_binlog": "0", "innodb_io_capacity": "200", "innodb_log_buffer_size": "16777216"})
    checked = [
        variant(innodb_io_capacity=200, innodb_log_buffer_size="16M"),
        variant(innodb_io_capacity=400, innodb_log_buffer_size="16777216", sync_binlog=0),
    ]
    found = by_option.differing(resolution, ClusterSpec("standalone"), checked)

    assert found.options == {"innodb_io_capacity": ("200", "400")}
    assert list(found.variants) == [{}, {"innodb_io_capacity": "400"}]
    with pytest.raises(ConfigError, match="no option differs in effect"):
        by_option.differing(resolution, ClusterSpec("standalone"), checked[:1] * 2)


def test_a_line_without_a_value_turns_an_option_on():
    """The other server has it off."""
    found = by_option.differing(
        resolution_of({"skip_name_resolve": "OFF"}), SERVER, [variant(skip_name_resolve=""), variant()]
    )

    assert found.options == {"skip_name_resolve": ("ON", "OFF")}


@pytest.mark.parametrize(
    "options", [{"log_bin": ""}, {"log_bin": "binlog"}, {"skip_log_bin": ""}, {"disable_thing": ""}], ids=str
)
def test_an_option_without_a_second_level_is_refused_by_its_name(options):
    """Otherwise the answer would be silent about it."""
    resolution = resolution_of({"log_bin": "OFF", "sync_binlog": "0"})
    with pytest.raises(ConfigError, match=f"--by-option: {next(iter(options))} of one file has no value"):
        by_option.differing(resolution, SERVER, [variant(sync_binlog=1, **options), variant()])


def test_an_interval_that_says_nothing_blames_no_option():
    """The machine cannot show the difference, so the option is open with that reason, and no pair explains it."""
    trial = trial_of([0.3, 0.0, 0.0], 10, sd=0.02)
    blind = "an fsync takes 3 us in /dev/shm: this disk cannot show the cost of flushes"
    terms = Terms(0.0005 / 6, untrusted=blind, out_of_budget="--seconds 60 are over")
    verdicts = {name: judge(kinds.effect_same_as(0.05), trial, terms, number) for number, name in enumerate(OPTIONS)}
    pair = InteractionEstimate(("flush", "binlog"), 1.3, 1.1, 1.5, claimed=True)
    found = by_option.rows(Differing(OPTIONS, (), SERVER), verdicts, [pair])

    assert {row.role for row in found} == {OptionRole.UNKNOWN}
    assert blind in found[0].text


def test_options_that_matter_only_together_are_named():
    """Their effects cancel over all combinations."""
    pair = InteractionEstimate(("flush", "binlog"), 1.3, 1.1, 1.5, claimed=True)
    answer = answered([0.0, 0.0, 0.0], [pair], blocks=20)

    names, rest = by_option.sentence([answer]).split(" matter ")
    assert (sorted(names.split(" and ")), rest) == (["binlog", "flush"], "only together on tpcc")


@pytest.mark.parametrize("name", ["resume", "equal", "why"])
def test_what_single_options_do_not_take_is_refused(name):
    """Before anything starts, by the name of the other option."""
    given = {"by_option": True, "cnf": ["a.cnf", "b.cnf"], "release": [], "resume": False, "equal": False, "why": False}

    by_option.check(argparse.Namespace(**given))
    with pytest.raises(ConfigError, match=f"--by-option does not take --{name}"):
        by_option.check(argparse.Namespace(**{**given, name: True}))
    with pytest.raises(ConfigError, match=r"two my\.cnf files on one release"):
        by_option.check(argparse.Namespace(**{**given, "cnf": ["a.cnf"]}))
