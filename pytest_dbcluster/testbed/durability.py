"""Durability: what a commit that has returned is worth, and which of two variants may be compared.

Whoever promises less is faster for that alone. Where the test itself set the difference, that is its question and
the label is printed; where topologies, vendors or releases bring it along, the test has to say that it knows.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

from pytest_dbcluster.clusters.dialects.mariadb import MARIADB
from pytest_dbcluster.clusters.dialects.mysql import MYSQL
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.testbed.variants import Variant

FLUSH = "innodb_flush_log_at_trx_commit"
BINLOG_OFF = "binlog off"
SEMISYNC = (MARIADB.semisync, MYSQL.semisync)
SWITCHES = ("log_bin", "skip_log_bin", "disable_log_bin")
# What the vendors call the same: set alike on both, it is no difference that a test has made.
_MEANING = {
    name: meaning
    for words in SEMISYNC
    for name, meaning in ((words.wait_point, "wait_point"), (words.wanted, "wanted"))
    if name
}
# Who has a commit and when it waits for them stand in one part of the label: the options of one explain nothing of the
# other.
WHO = (*(words.wanted for words in SEMISYNC if words.wanted), "group_replication_consistency")
WAITS = tuple(words.wait_point for words in SEMISYNC)
# The options that the label shows, by part: for how long a primary waits, say, is none of them, and explains nothing.
OPTIONS: Mapping[str, Sequence[str]] = {
    "flush": (FLUSH,),
    "binlog": ("sync_binlog",),
    "acknowledged": (*WHO, *WAITS),
    "consistency": ("group_replication_consistency", "wsrep_sync_wait", "wsrep_causal_reads"),
}
WAY_OUT = "measure(..., across_durability=True) compares them all the same"
EQUAL = "; options that make them equal, or --db-parity normalised, take the difference away"


@dataclasses.dataclass(frozen=True)
class Durability:
    """The label that stands beside a result.

    flush: when InnoDB's log is flushed. binlog: how often the binlog is, or that there is none. acknowledged: who has
    a commit when it returns. consistency: what a read on another node may miss; empty where there is no choice.
    """

    flush: str
    binlog: str
    acknowledged: str
    consistency: str = ""

    @classmethod
    def of(cls, topology: Topology, variables: Mapping[str, str], nodes: int) -> Durability:
        """The label of a cluster of this topology whose writer has these effective variables."""
        on = variables.get("log_bin", "OFF") == "ON"
        return cls(
            flush=f"flush={variables.get(FLUSH, '?')}",
            binlog=f"sync_binlog={variables.get('sync_binlog', '?')}" if on else BINLOG_OFF,
            acknowledged=topology.acknowledged(variables, nodes),
            consistency=topology.consistency(variables) if nodes > 1 else "",
        )

    def __str__(self) -> str:
        return ", ".join(part for part in dataclasses.astuple(self) if part)


@dataclasses.dataclass(frozen=True)
class Labelled:
    """A variant under the name that a test knows it by, with its label."""

    name: str
    variant: Variant
    durability: Durability


def compare(labelled: Sequence[Labelled], parts: Sequence[str] = tuple(OPTIONS)) -> None:
    """Raise ConfigError for the first two labels that differ on one of ``parts`` although no test asked for it."""
    for one, other in itertools.combinations(labelled, 2):
        found = {part: source for part, source in _differences(one, other) if part in parts and source}
        if found:
            said = ", ".join(f"{part} (from {source})" for part, source in found.items())
            labels = "; ".join(f"{item.name}: {_shown(item.durability, parts)}" for item in (one, other))
            raise ConfigError(
                f"a commit of {one.name} is not worth the same as one of {other.name}, and the test did not set "
                f"that itself: {said} differs [{labels}]. Who promises less is faster for that alone: "
                f"{WAY_OUT}{EQUAL if found.keys() & {'flush', 'binlog'} else ''}"
            )


def _shown(label: Durability, parts: Sequence[str]) -> str:
    return ", ".join(text for part in parts if (text := getattr(label, part)))


def _differences(one: Labelled, other: Labelled) -> Iterator[tuple[str, str]]:
    """The parts that differ, each with where that comes from; empty when the test itself set it."""
    for part in OPTIONS:
        values = getattr(one.durability, part).casefold(), getattr(other.durability, part).casefold()
        if values[0] != values[1]:
            yield part, _source(part, _deciding(part, *values), one.variant, other.variant)


def _deciding(part: str, one: str, other: str) -> Sequence[Sequence[str]]:
    """The options of each thing that differs between these texts of a part: "received by 2 replicas (AFTER_SYNC)"."""
    if part != "acknowledged":
        return [SWITCHES if BINLOG_OFF in (one, other) else OPTIONS[part]]
    (who, _, waits), (other_who, _, other_waits) = one.partition(" ("), other.partition(" (")
    return [WHO] * (who != other_who) + [WAITS] * (waits != other_waits)


def _source(part: str, deciding: Sequence[Sequence[str]], one: Variant, other: Variant) -> str:
    """Where a difference comes from: topologies, and below them vendors or releases; empty for the test's own.

    It is the test's own where it set the options of all that differs otherwise.
    """
    topologies = one.spec.topology != other.spec.topology
    fixed = topologies and part in ("acknowledged", "consistency")  # no option makes another topology of it
    if not fixed and all(_set(one, names) != _set(other, names) for names in deciding):
        return ""
    sources = [f"the topologies {one.spec.topology} and {other.spec.topology}"] if topologies else []
    if fixed:
        return sources[0]
    if one.release.product != other.release.product:
        sources.append(f"the defaults of {one.release.product} and {other.release.product}")
    elif (one.release.name, one.release.version) != (other.release.name, other.release.version):
        sources.append(f"the releases {one.release.name} and {other.release.name}")
    return " or ".join(sources)


def _set(variant: Variant, names: Sequence[str]) -> dict[str, str]:
    """What the test set of these options, by what they mean on either vendor; the case of a value means nothing."""
    chosen = {name: value for name, value in variant.options.items() if name in names}
    return {_MEANING.get(name, name): value.strip().casefold() for name, value in chosen.items()}
