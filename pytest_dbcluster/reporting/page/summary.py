"""The top of the page: one sentence, facts about the runs, and the tests without a claim."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from pytest_dbcluster import reasons
from pytest_dbcluster.claims import wording
from pytest_dbcluster.formatting import duration, gibibytes
from pytest_dbcluster.reasons import Advice
from pytest_dbcluster.reporting.documents.run_document import CUT_SHORT
from pytest_dbcluster.reporting.page import words
from pytest_dbcluster.reporting.page.sources import LISTED, Source
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.rounds import busy_machine
from pytest_dbcluster.system.tracing import time_spent

HEADLINE = ("refuted", "inconclusive", "holds")  # the outcomes of claims in the order of the sentence
NAMED = 3  # refuted claims that the sentence names
# CSS variables: of the groups in ``time_spent.GROUPS``, and of the rest of the time.
BAR = ("--blue", "--sky", "--orange", "--purple", "--brown", "--violet", "--holds", "--margin", "--open", "--published")
REST = "--grid"
# For a test without a reason.
NO_REASON = dict.fromkeys(LISTED, "no reason was given") | {CUT_SHORT: "it began, and did not end"}


@dataclasses.dataclass(frozen=True)
class Count:
    """A number of claims or tests that ended alike."""

    state: str
    """A word of ``words.SYMBOLS``."""

    symbol: str
    """The symbol of the state."""

    number: int
    """The number of claims or tests."""

    @property
    def word(self) -> str:
        """The state as a word after the number: 1 holds, 2 hold."""
        return wording.state_count(self.state, self.number).partition(" ")[2]


@dataclasses.dataclass(frozen=True)
class TestRow:
    """A test that was broken, cut short or skipped."""

    __test__ = False  # so that pytest does not collect this class as a test because of its name

    state: str
    """A word of ``words.SYMBOLS``."""

    symbol: str
    """The symbol of the state."""

    test: str
    """The node id."""

    reason: str
    """Why it was broken, cut short or skipped."""

    source: str
    """Its results directory; empty on a page of one directory."""

    @property
    def advice(self) -> Advice | None:
        """What to do about its reason, as the documentation says; None if that says nothing about it."""
        return reasons.advice(self.reason)


def sentence(sources: Sequence[Source]) -> str:
    """``1 of 60 claims is refuted, 59 hold; refuted: flush_2 is not faster than galera3 (update); 1 test is broken.``

    Without claims, the number of drawn curves.
    """
    asserted = [record for source in sources for record in source.claims if record.asserted]
    parts = []
    if asserted:
        parts += _outcomes(asserted)
    else:
        parts.append("No claim was decided")
        if drawn := sum(len(source.curves) for source in sources):
            parts.append(words.plural(drawn, "curve was drawn", "curves were drawn"))
    broken = sum(len(source.tests("broken")) for source in sources)
    if broken:
        parts.append(words.plural(broken, "test is broken", "tests are broken"))
    return f"{'; '.join(parts)}."


def _outcomes(asserted: Sequence[ClaimRecord]) -> list[str]:
    """The number of claims with each outcome, and in words what the refuted ones say."""
    whole = len(asserted)
    by_state = {state: [record for record in asserted if words.state(record) == state] for state in HEADLINE}
    found = {state: len(records) for state, records in by_state.items() if records}
    refuted = by_state["refuted"]
    named = _name_refuted(refuted) if refuted else ""
    if len(found) == 1:
        [state] = found
        claims = "The only claim" if whole == 1 else f"All {whole} claims"
        return [": ".join(filter(None, [f"{claims} {_is(state, whole)}", named]))]
    first, *others = found
    counted = [f"{found[first]} of {whole} claims {_is(first, found[first])}"]
    counted += [f"{found[state]} {_is(state, found[state])}" for state in others]
    return [", ".join(counted), *([f"refuted: {named}"] if named else [])]


def _is(state: str, number: int) -> str:
    """The state as a verb: ``holds``, ``hold``, ``is refuted``, ``are inconclusive``."""
    if state == "holds":
        return "holds" if number == 1 else "hold"
    return f"{'is' if number == 1 else 'are'} {state}"


def _name_refuted(refuted: Sequence[ClaimRecord]) -> str:
    """The first refuted claims in words, and the number of the others."""
    sentences = ", ".join(f"{words.sentence(record)} ({record.load})" for record in refuted[:NAMED])
    return f"{sentences}, and {len(refuted) - NAMED} more" if len(refuted) > NAMED else sentences


def counts(sources: Sequence[Source]) -> list[Count]:
    """The claims by outcome, then the tests of LISTED; without outcomes that do not occur."""
    numbers = Counter(words.state(record) for source in sources for record in source.claims)
    numbers.update(test.outcome for source in sources for test in source.tests(*LISTED))
    return [Count(state, symbol, numbers[state]) for state, symbol in words.SYMBOLS.items() if numbers[state]]


def tests(sources: Sequence[Source]) -> list[TestRow]:
    """The broken tests, then those that were cut short, then the skipped ones, each with its reason."""
    return [
        TestRow(test.outcome, words.SYMBOLS[test.outcome], test.test, test.reason or NO_REASON[outcome], source.name)
        for outcome in LISTED
        for source in sources
        for test in source.tests(outcome)
    ]


@dataclasses.dataclass(frozen=True)
class TimePart:
    """A part of the bar that shows where the time of a run went."""

    group: str
    """The group of phases."""

    seconds: float
    """Its seconds."""

    share: float
    """Its share of the run, from 0 to 1."""

    colour: str
    """The CSS variable of its colour."""


def time_bar(source: Source) -> list[TimePart]:
    """The parts of the bar, the largest first; none for a run without them."""
    parts = time_spent.shares(source.run.time_spent) if source.run else {}
    colours = {group: BAR[number % len(BAR)] for number, group in enumerate(time_spent.GROUPS)}
    return [TimePart(group, *values, colours.get(group, REST)) for group, values in parts.items()]


def about(source: Source) -> dict[str, str]:
    """Facts about the run of a directory, by name: time, releases, machine, commit, version, command."""
    records: list[ClaimRecord | CurveRecord] = [*source.claims, *source.curves]
    releases = ", ".join(dict.fromkeys(record.release for record in records))
    if (run := source.run) is None:
        first = records[0] if records else None
        return {"releases": releases, **({"profile": first.profile, **first.fingerprint} if first else {})}
    machine = run.machine
    releases = releases or ", ".join(f"{name} {version}".strip() for name, version in run.releases.items())
    disk = " on ".join(filter(None, (machine.file_system, machine.device)))
    lasted = f", {duration(run.ended - run.began)}" if run.ended else ""
    changed = ", with changes that are not committed" if run.dirty else ""
    return {
        "run": f"{words.moment(run.began)}{lasted}",
        "releases": releases,
        "machine": f"{machine.cpus} x {machine.cpu} ({machine.cores:g} usable), {gibibytes(machine.memory)}",
        "kernel": machine.kernel,
        **busy_machine.environment_entry(claim.others for claim in source.claims),
        "data": disk,
        "commit": f"{run.commit[:12]}{changed}" if run.commit else "none",
        "profile": records[0].profile if records else "",
        "pytest-dbcluster": run.plugin_version,
        "command": run.command,
    }
