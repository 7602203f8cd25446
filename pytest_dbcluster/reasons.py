"""Reasons: why a claim has no verdict, a round is void, or a measurement stops; with what to do about each.

The texts are made where the reason is found, with its figures. This module has their form, so that a text leads to its
meaning. The page reference/messages of the documentation has one entry for each reason.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib.metadata
import os
import re
import urllib.parse
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"  # of a checkout
PAGE, LABEL = "reference/messages.html", "Documentation"  # the page on the site, whose address has this label
GUIDE = "how-to/inconclusive.md"  # the text that names every reason
IN_CHECKOUT = (f"_build/html/{PAGE}", GUIDE)  # the built page comes first
NAME = f"docs/{GUIDE} in the source of pytest-dbcluster"  # for readers who have neither a file nor a site
CI = ("CI", "BUILD_NUMBER")  # variables of CI services, as pytest knows them
URI = "%/:?#[]@!$&()*+,;="  # what a URI may have beside letters, digits and -._~


class Effect(enum.Enum):
    """What a reason does to a claim; the value is a sentence for the documentation."""

    INCONCLUSIVE = "The claim is inconclusive."
    VOID = "The round is void and is drawn again."
    STOPPED = "The measurement stops, and the test is broken."


@dataclasses.dataclass(frozen=True)
class Reason:
    """One reason."""

    name: str
    """Its name, and its anchor on the page."""

    effect: Effect
    """What it does to a claim."""

    texts: tuple[str, ...]
    """Each form of its text; ``{words}`` in braces stand for what differs."""

    meaning: str
    """What has happened, in a sentence or two."""

    remedy: str
    """What to do."""

    example: str
    """A text of this reason."""

    @property
    def advice(self) -> str:
        """The remedy without marks of Markdown."""
        return re.sub(r"\*(.+?)\*", r'"\1"', self.remedy).replace("`", "")

    def matches(self, text: str) -> bool:
        """Whether a message contains this reason."""
        return any(re.search(_pattern(form), text) for form in self.texts)


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to do about the reasons of a message."""

    text: str
    """The remedy of each reason, in one paragraph of plain text."""

    address: str
    """The page with all of it, as ``address`` returns it."""

    link: str
    """The address as a ``file``, ``http`` or ``https`` URI, with no character that ends an attribute; else empty."""

    def __str__(self) -> str:
        """The remedies and the address, as plain text."""
        return f"{self.text} {self.address}".rstrip()


def find(text: str) -> list[Reason]:
    """The reasons that a message contains, in the order of ``REASONS``."""
    return [reason for reason in REASONS if reason.matches(text)]


def address(found: Sequence[Reason]) -> str:
    """The page that says what to do about these reasons: a file of a checkout, a URL of the site, or the page's name.

    The readers of a CI job have another machine, so it shows no file. The URL has the anchor of a single reason. Empty
    without reasons.
    """
    if not found:
        return ""
    on_ci = any(os.environ.get(name) for name in CI)
    if not on_ci and (known := [DOCS / name for name in IN_CHECKOUT if (DOCS / name).is_file()]):
        return str(known[0])
    if not (site := _site()):
        return NAME
    anchor = f"#reason-{found[0].name}" if len(found) == 1 else ""
    return f"{site}/{PAGE}{anchor}"


def _site() -> str:
    """The URL of the documentation, without a slash at its end; empty if the package has no site."""
    try:
        links = importlib.metadata.metadata("pytest-dbcluster").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    site: str = dict(link.split(", ", 1) for link in links).get(LABEL, "")
    return site.rstrip("/")


def advice(text: str) -> Advice | None:
    """What to do about the reasons that a message contains; None without a known reason."""
    if not (found := find(text)):
        return None
    page = address(found)
    return Advice(" ".join(reason.advice for reason in found), page, _link(page))


def _link(page: str) -> str:
    """The URI of a page that a reader may follow; empty for anything but a file or a web page."""
    if page.startswith("/"):
        return Path(page).as_uri()
    return urllib.parse.quote(page, safe=URI) if page.startswith(("https://", "http://")) else ""


def _pattern(form: str) -> str:
    parts = re.split(r"\{[^{}]*\}", form)
    return ".+?".join(map(re.escape, parts))


def _inconclusive(name: str, *texts: str, means: str, do: str, example: str) -> Reason:
    return Reason(name, Effect.INCONCLUSIVE, texts, means, do, example)


def _void(name: str, *texts: str, means: str, do: str, example: str) -> Reason:
    return Reason(name, Effect.VOID, texts, means, do, example)


def _stopped(name: str, *texts: str, means: str, do: str, example: str) -> Reason:
    return Reason(name, Effect.STOPPED, texts, means, do, example)


REASONS: tuple[Reason, ...] = (
    _inconclusive(
        "budget-used",
        "budget of {seconds} s of measured time used ({option})",
        "budget of {seconds} s of measured time ({option}): its next {n} pairs would take longer than the {m} s left",
        means="The measured time of the claim is used, and its pairs do not decide it.",
        do="If the message says *needs about N pairs in all*, repeat the printed command, with a larger --db-budget. "
        "If it says *needs a different test*, more time cannot help. "
        "Then claim `same_as` or `no_slower_than`, or another margin.",
        example="budget of 120 s of measured time used (--db-budget)",
    ),
    _inconclusive(
        "budget-below-first-look",
        "a verdict needs at least {pairs} pairs, which take {seconds} s",
        "a verdict needs at least {pairs}: {rounds} rounds of {seconds} s take {time} s",
        means="The budget ends before the first look, and no claim is decided before it.",
        do="Use a larger --db-budget, or shorter rounds. The message names the smallest budget that can decide.",
        example="a verdict needs at least 12 pairs: 12 x 2 rounds of 4 s take 96 s, more than its budget of 20 s",
    ),
    _inconclusive(
        "pairs-used",
        "cap of {pairs} pairs",
        means="The claim has its maximum number of pairs, and they do not decide it.",
        do="Take longer rounds in the test, which scatter less, or claim a larger margin.",
        example="cap of 12 pairs",
    ),
    _inconclusive(
        "futile",
        "stopped early: even {pairs} pairs would almost surely not decide",
        means="At a look, the chance that the maximum of pairs decides is below 1 %. So no more are drawn.",
        do="If the message says *needs a different test*, more time cannot help. "
        "Then claim `same_as` or `no_slower_than`, or another margin. "
        "Otherwise take longer rounds, which scatter less: a larger `queries=` of MySQLSlap, or `seconds=` of others.",
        example="stopped early: even 160 pairs would almost surely not decide (chance < 1 %)",
    ),
    _inconclusive(
        "budget-too-small",
        "stopped early: the rest of {budget} would almost surely not decide",
        means="At a look, the chance that the rest of the claim's budget decides is below 1 %. So no more are drawn.",
        do="If the message says *needs about N pairs in all*, repeat the printed command, with a larger --db-budget. "
        "If it says *needs a different test*, more time cannot help. "
        "Then claim `same_as` or `no_slower_than`, or another margin.",
        example="stopped early: the rest of the 120 s of measured time (--db-budget) would almost surely not decide "
        "(chance < 1 %)",
    ),
    _inconclusive(
        "run-budget-spent",
        "the run's budget of {seconds} s is spent (--db-run-budget)",
        means="The time of the whole run is used. No claim draws more rounds, and no cluster starts.",
        do="Use a larger --db-run-budget, fewer tests, or continue the run with --db-resume.",
        example="the run's budget of 5 s is spent (--db-run-budget); nothing was drawn",
    ),
    _inconclusive(
        "run-budget-too-short",
        "the run's budget has {seconds} s left (--db-run-budget), and this claim takes",
        means="The rest of the run's time ends before the first look of this claim. Nothing is started for it.",
        do="Use a larger --db-run-budget, or continue the run with --db-resume.",
        example="the run's budget has 12 s left (--db-run-budget), and this claim takes 56 s or more",
    ),
    _inconclusive(
        "pair-of-clusters-too-slow",
        "a pair of clusters took more than {time}",
        "{reason}, after {pairs} of {rounds} rounds of each cluster",
        means="`dbcluster calibrate` could not draw its rounds of one pair of clusters in time.",
        do="Measure on a quiet machine, with fewer --rounds, or with a workload of shorter rounds.",
        example="a pair of clusters took more than 2 h, after 12 of 40 rounds of each cluster",
    ),
    _inconclusive(
        "share-of-time-used",
        "its share of --seconds ({seconds} s) is over",
        "--seconds {seconds} are over",
        means="`dbcluster compare` divides --seconds between its workloads, and the share of this one is used.",
        do="Use more --seconds.",
        example="its share of --seconds (100 s) is over",
    ),
    _inconclusive(
        "p95-needs-time",
        "p95 needs rounds of {seconds} s here, {total} s in total, but",
        means="`dbcluster compare` has too little time left for rounds with enough operations for p95.",
        do="Use more --seconds, or more --threads.",
        example="p95 needs rounds of 4.3 s here, 89 s in total, but 60 s are left; use more --seconds",
    ),
    _inconclusive(
        "machine-taken",
        "another run had the machine while this run waited: {process}",
        "{reason} while it waited for machines: others use {machines}",
        means="Another run measured during the rest of this run's time.",
        do="Run one after the other, or use a larger --db-run-budget.",
        example="another run had the machine while this run waited: run 4f of pid 4711 (alice)",
    ),
    _inconclusive(
        "void-rounds-differ",
        "of {rounds} rounds, {number} of the candidate and {other} of the baseline were void",
        means="One variant has more void rounds than the other. If its slow rounds are void, it looks too fast.",
        do="Find the reason of its void rounds in the message, and remove it. More pairs do not help.",
        example="of 22 rounds, 2 of the candidate and 0 of the baseline were void",
    ),
    _inconclusive(
        "equal-clusters-differ",
        "too close to the bound of the claim: equal clusters can differ by {percent}",
        "equal clusters can differ by {percent}, more than the distance from the interval to the bound of the claim",
        "cannot answer: equal clusters can differ by {percent}",
        means="The variants run on separate clusters, and two equal clusters can differ by as much as was measured.",
        do="Use measure(..., instances=4), run `dbcluster calibrate` on this machine, or claim another margin.",
        example="too close to the bound of the claim: equal clusters can differ by 5.0 %",
    ),
    _inconclusive(
        "rounding",
        "rounding could decide: the tool prints the time of a round in steps of up to {step}",
        means="The tool prints times in steps, and the rounded digits could change the answer.",
        do="Make the rounds longer: a larger queries= of MySQLSlap.",
        example="rounding could decide: the tool prints the time of a round in steps of up to 11 % of a round",
    ),
    _inconclusive(
        "totals-disagree",
        "the typical round and the totals disagree: {ratio} in the median pair, {total} in all rounds together",
        means="A few rounds have most of the counts. They say the opposite of the typical round.",
        do="Make the rounds longer, so that each round has its share of rare events.",
        example="the typical round and the totals disagree: 0.25x in the median pair, 2.23x in all rounds together",
    ),
    _inconclusive(
        "few-counts",
        "{number} of {pairs} pairs counted anything",
        means="The counter is zero in most pairs, and such pairs are no evidence.",
        do="Use a workload that causes what the counter counts, longer rounds, or another counter.",
        example="0 of 28 pairs counted anything",
    ),
    _inconclusive(
        "flush-costs-nothing",
        "an fsync takes {microseconds} us in {directory}: this disk cannot show the cost of flushes",
        means="The data directory is on tmpfs, or on a disk that does not wait for a flush.",
        do="Set DBCLUSTER_DATA_DIR to a directory on a real disk, or limit a fast disk with iops= or --db-storage.",
        example="an fsync takes 3 us in /dev/shm: this disk cannot show the cost of flushes",
    ),
    _inconclusive(
        "shared-cores",
        "nodes share {cores}: a claim about node scaling means nothing here",
        "use separate hosts, or cores= if the provisioner offers it",
        means="All nodes run on the cores of one machine, so more nodes get no more cores.",
        do="Use separate hosts (--db-provisioner ssh or ec2), or with_needs(cores=...) if the machine has enough.",
        example="nodes share 2 cores: a claim about node scaling means nothing here",
    ),
    _inconclusive(
        "near-capacity",
        "{rate}/s was measured to be {share} of the slowest variant's capacity, and above {limit} a tail latency",
        means="The arrival rate is above 70 % of the capacity, so the latency shows the queue and not the server.",
        do='Set a lower rate, or rate="70 %", which follows the capacity.',
        example="600/s was measured to be 75 % of the slowest variant's capacity, and above 70 % a tail latency",
    ),
    _inconclusive(
        "above-capacity",
        "{variant} fell behind the rate of {rate}/s in {number} of {rounds} rounds",
        means="A variant did not keep the arrival rate in most rounds, so its queue grew.",
        do="Set a lower rate.",
        example="slow fell behind the rate of 455/s in 8 of 8 rounds, so the rate is above its capacity",
    ),
    _inconclusive(
        "load-generator",
        "the load generator is the bottleneck: {variants}",
        "the load generator runs inside pytest, which used {cores} of the one core",
        "a thread of the load generator{place} was on a CPU for {share} % of the time",
        "the load generator{place} used {used} of its {cores}",
        "this may hide the difference that decides the claim",
        means="The load generator was at its limit in most rounds, so the round measured it and not the servers.",
        do="Give it a machine (--db-load-host), fewer threads, or a workload with less work for the client.",
        example="the load generator is the bottleneck: b, 2 of 3 rounds (the load generator used 1.6 of its 2 cores)",
    ),
    _inconclusive(
        "busy-machine",
        "the machine was busy: in the median round",
        "other programs take {used} of {cores}",
        means="Other programs used a tenth of the cores or more, so the rounds scatter more.",
        do="End the other programs, or measure later.",
        example="the machine was busy: in the median round other programs take 1.5 of 2 cores",
    ),
    _inconclusive(
        "spot-interrupted",
        "AWS interrupts the spot instance of {machine}",
        means="AWS takes an instance back, and says so two minutes before. The claim draws no further block.",
        do="Try again later, or leave out --db-ec2-spot.",
        example="AWS interrupts the spot instance of server2: try again later, or leave out --db-ec2-spot",
    ),
    _inconclusive(
        "repetitions-used",
        "the interval of {repetitions} contains the bound of the claim",
        means="All repetitions or rounds that the test asks for are done. Their values lie on both sides of the bound.",
        do="Use a larger times=, or another bound. The message has every value.",
        example="the interval of 11 repetitions contains the bound of the claim",
    ),
    _inconclusive(
        "event-budget-used",
        "budget of {seconds} s for events (--db-event-budget): {n} took {used} s, the next block of {m} needs {more} s",
        means="The next block of repetitions does not fit into the budget, and those so far do not decide.",
        do="Use a larger --db-event-budget, or a smaller times= of measure.event.",
        example="budget of 60 s for events (--db-event-budget): 7 repetitions took 51 s, the next block of 1 needs 7 s",
    ),
    _inconclusive(
        "repetition-without-end",
        "but {n} beside it had no end: {reason}",
        means="The repetitions with figures make the claim hold. In another one the cluster did not become whole.",
        do="Find out why the cluster did not become whole: that repetition may be the worst one. Then measure again.",
        example="11 repetitions, as planned, but 1 repetition beside it had no end: after the event kill other the "
        "cluster galera3 did not become whole: node3 not ready after 300 s",
    ),
    _void(
        "event-not-proven",
        "the event is not proven: {message}",
        means="Neither the kernel nor the servers show that the event happened, so its figures say nothing.",
        do="Read the message. Another program may have ended or continued the server.",
        example="the event is not proven: kill of node3: node3 not ready after 10 s: it still runs",
    ),
    _void(
        "cluster-not-whole",
        "after the event {event} the cluster {cluster} did not become whole: {error}",
        means="After the event a node did not come back, or did not apply everything, so no other round uses it.",
        do="Read the error log of the node below logs/. A cluster that never comes back does not survive the event.",
        example="after the event kill other the cluster galera3 did not become whole: node3 not ready after 300 s",
    ),
    _void(
        "not-drained",
        "not drained after {seconds} s: {nodes}",
        "after its reset not drained",
        means="A node had not applied all writes 30 s after the round, or after the reset before it.",
        do="Look at the node that the message names: its replication is slow or has stopped.",
        example="after its reset not drained after 30 s: node2 is behind",
    ),
    _void(
        "turned-away",
        "turned away ({nodes})",
        "clients were turned away ({message})",
        "{reason}: set {value} and no lower max_user_connections, or use fewer clients",
        means="A server had no free connection, so the round measured how long clients wait for one.",
        do="Set a larger max_connections in the spec, or use fewer clients.",
        example="53 connections turned away (53 by node1: max_connections=10); the workload has 50 clients",
    ),
    _void(
        "saturated",
        "saturated: {done} of {offered} operations done at {rate}/s",
        means="An open loop did less than 95 % of its operations: the rate is above the capacity of the variant.",
        do='Set a lower rate, or a share such as rate="70 %", which is lowered once if it is too high.',
        example="saturated: 80 of 100 operations done at 50/s, less than 95 %",
    ),
    _void(
        "no-operation",
        "no operation succeeded: 0 of {operations}",
        means="Every operation of the round ended in an error, so the round is no evidence of any speed.",
        do="Read the errors in the ledger of the round (rounds/*.jsonl), and repair the workload or the cluster.",
        example="no operation succeeded: 0 of 100",
    ),
    _void(
        "workload-failed",
        "the workload failed: {message}",
        means="The workload ended with an error in a round in which the cluster changed or turned clients away.",
        do="Read the first part of the reason: it says what changed.",
        example="the primary changed from node1 to node2; the workload failed: 1290: read-only",
    ),
    _void(
        "load-host-late",
        "load host {name} began {late} s late in a round of {seconds} s",
        means="One of several load hosts began so late that its part of the round is missing.",
        do="End other programs on that host, or leave it out.",
        example="load host b began 1.20 s late in a round of 2 s: other programs keep it busy, or its network is slow",
    ),
    _void(
        "semisync-fallback",
        "semi-sync fell back to asynchronous: {status} is {value} {when} the round",
        "rpl_semi_sync_{option} changed from {before} to {after}",
        "commits returned without an acknowledgement: {status} changed from {before} to {after}",
        "the number of replicas that acknowledge changed: {status} changed from {before} to {after}",
        means="The primary did not wait for its replicas during the whole round, so commits were faster.",
        do="Look at the replicas. If they are slow, use a longer timeout of semi-sync in the spec.",
        example="semi-sync fell back to asynchronous: rpl_semi_sync_source_status is OFF after the round",
    ),
    _void(
        "group-changed",
        "the group no longer exists: {view}",
        "the primary changed from {before} to {after}",
        "member {name} was {before} before the round and is {after} after it",
        "a member left the group and rejoined: the view changed from {before} to {after}",
        means="A member of the group left, rejoined, or lost its role during the round.",
        do="Look at the error log of that member. A busy machine can make a member answer too late.",
        example="member node2 was ONLINE before the round and is not a member after it",
    ),
    _void(
        "drbd-changed",
        "DRBD on {host} changed from {before} to {after}",
        "changes on {host} changed from {before} to {after}",
        means="The connection, a role or a disk of DRBD changed during the round, if only for a moment.",
        do="Keep round trips well below 10 s, after which DRBD gives up a silent peer.",
        example="DRBD on node1 changed from 'Connected' to 'StandAlone'",
    ),
    _void(
        "router-lost",
        "the router between the nodes is gone",
        "which held the network namespace of {name}, has ended",
        means="The program that delays packets between the nodes ended, so their distance was not kept.",
        do="Something has ended a process of the run. Run again, and read the last line of the router's console.",
        example="the router between the nodes is gone (a guest; the last line of its console: nothing)",
    ),
    _void(
        "errors-logged",
        "{number} [ERROR] lines, the first: {line}",
        means="A server wrote errors into its log during the void round.",
        do="Read the error log of the node; the results keep it below logs/ if the cluster failed.",
        example="the primary changed; 1 [ERROR] lines, the first: node1 logged: 2026-11-21 [ERROR] it stumbled",
    ),
    _stopped(
        "too-many-void",
        "{number} times a round of {workload} was void in the first {pairs} pairs",
        "{number} of {blocks} blocks of the warm-up of {workload} were void",
        "the anchor: {number} void rounds",
        means="More than a tenth of the pairs had void rounds (and more than one), or the whole warm-up.",
        do="The text after the colon is the reason of the last void round. Remove that reason.",
        example="2 of 2 blocks of the warm-up of mysqlslap write c50 were void: full: 53 connections turned away",
    ),
    _stopped(
        "capacity-unknown",
        "the capacity of {variant} could not be measured: {reason}",
        "did nothing in a closed loop, so there is no capacity to take a share of",
        means="An open loop takes a share of the capacity, and the closed loop before it measured none.",
        do="Remove the reason in the message, or set a rate in operations a second.",
        example="the capacity of a could not be measured: the primary changed",
    ),
    _stopped(
        "check-failed",
        "cluster {cluster} failed its check after the rounds: {faults}",
        means="After the rounds a node lagged behind, tables differed between nodes, or a log had a new error.",
        do="Read the fault. Tables that differ are an error of the server or of its options, not of speed.",
        example="cluster standalone1 failed its check after the rounds: node1 logged: [ERROR] InnoDB: something broke",
    ),
    _stopped(
        "failed-before-round",
        "cluster {cluster} failed before a round: {faults}",
        means="A server wrote an error into its log between two rounds.",
        do="Read the error log of the node below logs/.",
        example="cluster standalone1 failed before a round: node1 logged: 2026-11-21 [ERROR] it stumbled",
    ),
    _stopped(
        "workload-check-failed",
        "{workload} on {cluster}: the workload's check failed: {violations}",
        means="A condition of the workload does not hold, or an acknowledged order is lost or invented.",
        do="This is a wrong database, not a slow one. Keep the results, and report it to the vendor.",
        example="bank on standalone1: the workload's check failed: node1: the books do not balance",
    ),
    _stopped(
        "lock-held",
        "waited {time} ({option}) for {process}; end that process, or raise",
        means="Another process kept the machine or a file of the cache for longer than the run waits.",
        do="End that process, or use a longer --db-wait. What was measured is written; --db-resume continues.",
        example="waited 30 min (--db-wait) for the machine: pid 4711 (alice); end that process, or raise --db-wait",
    ),
)
