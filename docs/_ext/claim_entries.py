"""Claims, counters, metrics and reasons, from the package."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import examples
from entries import code, entry, example, items, markdown, page, prose

from pytest_dbcluster.claims import kinds  # registers the kinds
from pytest_dbcluster.claims.claim import KINDS, Kind, Shape
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.reasons import REASONS, Effect, Reason
from pytest_dbcluster.rounds import counters as known_counters
from pytest_dbcluster.rounds import metrics as known_metrics

assert kinds.__all__
# The method or function with which a test makes a claim, if it is not the name of the kind.
CALLED = {"differs": "against"}
# The headings of the page of counters, and what the statuses of their counters begin with; the first that fits counts.
COUNTER_GROUPS = (
    ("Semi-synchronous replication", ("rpl_semi_sync",)),
    ("Group Replication and Galera", ("wsrep", "count_transactions", "count_conflicts")),
    ("Binlog", ("binlog",)),
    ("Connections and statements", ("connection", "aborted", "questions")),
    ("InnoDB", ("innodb", "lock_", "trx_", "redo_")),
    ("Workload and drain", ("",)),
)
# How the statuses of one vendor begin; the first that fits counts.
VENDORS = (
    ("wsrep_", "Galera"),
    *((start, "MySQL") for start in ("count_", "rpl_semi_sync_source", "lock_", "trx_", "redo_", "binlog_fsyncs")),
    *((start, "MariaDB") for start in ("binlog_", "rpl_semi_sync_master", "innodb_deadlocks")),
    *((start, "MariaDB") for start in ("innodb_history_list_length", "innodb_checkpoint_age")),
)
# What a kind of claim compares.
ABOUT = {
    Shape.RATIO: "speeds, or latencies as speeds",
    Shape.COUNTER: "a counter",
    Shape.DURATION: "seconds, or another figure of repetitions",
    Shape.PROPORTION: "the repetitions of an event",
}
NATURES = {
    known_counters.Nature.WORK: "Counted in the round; it depends on what the statements ask of the servers.",
    known_counters.Nature.TIMING: "Counted in the round; it depends on when transactions meet.",
    known_counters.Nature.GAUGE: "Read at the end of the round.",
    known_counters.Nature.MAXIMUM: "The largest value since the start of the server.",
    known_counters.Nature.AVERAGE: "The average since the start of the server.",
}


def claims() -> str:
    """Every kind of claim: what it says, its margin, its first verdict, and an example."""
    return page(_claim(kind) for _, kind in sorted(KINDS.items()) if kind.paired or not kind.claims_nothing)


def _claim(kind: Kind) -> str:
    text = " ".join(inspect.getdoc(kind) or "").strip() and (inspect.getdoc(kind) or "")
    first, _, rest = text.partition("\n\n")
    claim = kind(0.05) if kind.name != "scales" else kind(2)
    if not kind.is_ratio:
        of = "measure.capacity" if kind.name == "meets" else "measure.event"
        look = f"Only series of `{of}` have it."
    elif kind.claims_nothing:
        look = "It is not a claim, so it has no verdict; it draws 20 pairs at most."
    else:
        blocks = "blocks" if kind.of_many else "pairs"
        look = f"First verdict: after {reach.first_look(claim, 0.0005)} {blocks}."
    low = f"{kind.minimum:g} {'<=' if kind.no_margin else '<'} {kind.option}"
    high = f" < {kind.below:g}" if kind.below < float("inf") else ""
    optional = ", may be left out" if kind.no_margin else ""
    has_margin = not kind.claims_nothing and kind.shape is not Shape.PROPORTION
    margin = f"Margin: {code(low + high)}{optional}." if has_margin else ""
    about = ABOUT[kind.shape]
    return entry(
        "claim",
        CALLED.get(kind.name, kind.name),
        markdown(first),
        items(rest),
        f"{margin} {look} It compares {about}.".strip(),
        f"```python\n{examples.CLAIMS[kind.name]}\n```",
    )


def statuses(name: str) -> tuple[str, ...]:
    """The statuses of a counter, of all vendors; empty for one that is not read from a server."""
    base = known_counters.PER_COMMIT.get(name, name)
    base = "paused_ns" if base == "paused_share" else base
    both: Mapping[str, Sequence[str]] = {**known_counters.DELTAS, **known_counters.STATES}
    return tuple(both.get(base, ()))


def counter_group(name: str) -> str:
    """The heading of a counter."""
    first = next(iter(statuses(name)), "")
    return next(title for title, starts in COUNTER_GROUPS if first.startswith(starts))


def counters() -> str:
    """Every counter in groups: its meaning, its statuses, what it depends on, and an example."""
    parts = []
    for title in sorted({title for title, _ in COUNTER_GROUPS}):
        parts.append(f"## {title}\n")
        parts += [_counter(name) for name in known_counters.NAMES if counter_group(name) == title]
    return page(parts)


def _counter(name: str) -> str:
    names = statuses(name)
    read = f"Status: {', '.join(map(_status, names))}." if names else "Not read from a server."
    lower, than, why = examples.COUNTERS[_base(name)]
    instead = known_counters.INSTEAD.get(name, ())
    other = (
        f" Between separate clusters compare {' or '.join(f'{{counter}}`{one}`' for one in instead)}."
        if instead
        else ""
    )
    return entry(
        "counter",
        name,
        known_counters.MEANINGS[name],
        f"{read} {NATURES[known_counters.NATURES[name]]}{other}",
        f"Example: {code(f'{lower}.lower({name!r}, than={than})'.replace(chr(39), chr(34)))}; {why}.",
    )


def _status(name: str) -> str:
    """A status with the vendor that has it, if not both have it."""
    vendor = next((vendor for start, vendor in VENDORS if name.startswith(start)), "")
    return f"{code(name)}{f' ({vendor})' if vendor else ''}"


def _base(name: str) -> str:
    return known_counters.PER_COMMIT.get(name, name)


def metrics() -> str:
    """Every metric: its meaning, unit, and an example."""
    return page(_metric(name) for name in known_metrics.ALL)


def _metric(name: str) -> str:
    units = {"/s": "operations a second", "ms": "milliseconds", "s": "seconds", "%": "percent", "": "transactions"}
    notes = ["It is 1 or 0." if name == known_metrics.RETURNED_BY else f"Unit: {units[known_metrics.unit(name)]}."]
    if name in known_metrics.OF_EVENTS:
        notes.append("Only claims of `measure.event` have it.")
    if name == known_metrics.CAPACITY:
        notes.append("Only claims of `measure.capacity` have it.")
    if name in known_metrics.QUANTILES:
        least = round(known_metrics.BEYOND / (1 - known_metrics.QUANTILES[name]))
        notes.append(f"A round needs {least} good operations. Claims compare it as a speed: lower is faster.")
    if name in known_metrics.BY_TYPE:
        notes.append(f"For one type of transaction: {code(f'{name}:new_order')}.")
    if name in known_metrics.BY_STATEMENT:
        notes.append(f"For the statement in line 7 of `order.sql`: {code(f'{name}:order:7')}.")
    return entry("metric", name, known_metrics.MEANINGS[name], " ".join(notes), example(examples.METRICS[name]))


def messages() -> str:
    """Every reason by its effect: its texts, what has happened, what to do, and an example."""
    titles = {
        Effect.INCONCLUSIVE: "A claim is inconclusive",
        Effect.VOID: "A round is void",
        Effect.STOPPED: "A measurement stops",
    }
    parts = []
    for effect, title in titles.items():
        parts.append(f"## {title}\n")
        parts += [_reason(reason) for reason in REASONS if reason.effect is effect]
    return page(parts)


def _reason(reason: Reason) -> str:
    forms = "\n".join(f"- {code(text)}" for text in reason.texts)
    return entry(
        "reason",
        reason.name,
        forms,
        prose(reason.meaning),
        f"**What to do.** {prose(reason.remedy)}",
        example(reason.example),
    )
