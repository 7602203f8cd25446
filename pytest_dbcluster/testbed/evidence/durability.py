"""``Durability``: what a commit guarantees when it returns, and so which variants may be compared.

Weaker guarantees make a variant faster. If the test's options set the difference, the comparison is allowed and the
message shows the labels. If the difference comes from topologies, vendors or releases, the test has to allow it with
``across_durability=True``.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_dbcluster.clusters.dialects.mariadb import MARIADB
from pytest_dbcluster.clusters.dialects.mysql import MYSQL
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.testbed.variants import Variant

FLUSH = "innodb_flush_log_at_trx_commit"
BINLOG_OFF = "binlog off"
SEMISYNC = (MARIADB.semisync, MYSQL.semisync)
DRBD = ("drbd_protocol", "drbd_connected")
SWITCHES = ("log_bin", "skip_log_bin", "disable_log_bin")
# Options of both vendors with the same meaning: equal values are not a difference.
_MEANING = {
    name: meaning
    for semisync in SEMISYNC
    for name, meaning in ((semisync.wait_point, "wait_point"), (semisync.wanted, "wanted"))
    if name
}
# The part "acknowledged" of a label has two items: who has the commit, and when the commit waits for them. Each has
# separate options, which do not explain a difference in the other.
WHO = (*(semisync.wanted for semisync in SEMISYNC if semisync.wanted), "group_replication_consistency", *DRBD)
WAITS = tuple(semisync.wait_point for semisync in SEMISYNC)
# The options that decide each part of the label. Others, such as a primary's timeout, do not explain a difference.
OPTIONS: Mapping[str, Sequence[str]] = {
    "flush": (FLUSH,),
    "binlog": ("sync_binlog",),
    "acknowledged": (*WHO, *WAITS),
    "consistency": ("group_replication_consistency", "wsrep_sync_wait", "wsrep_causal_reads"),
}
REMEDY = "measure(..., across_durability=True) allows the comparison"
MAKE_EQUAL = "; options that make them equal, or --db-parity normalised, remove the difference"


@dataclasses.dataclass(frozen=True)
class Durability:
    """The durability label of a result, as four texts."""

    flush: str
    """When InnoDB flushes its log."""

    binlog: str
    """How often the server flushes the binlog, or that the binlog is off."""

    acknowledged: str
    """Which nodes have a commit when it returns."""

    consistency: str = ""
    """What a read on another node may miss; empty for one node."""

    @classmethod
    def of(cls, topology: Topology, variables: Mapping[str, str], nodes: int) -> Durability:
        """The label of a cluster of this topology whose writer has these effective variables."""
        binlog = variables.get("log_bin", "OFF") == "ON"
        return cls(
            flush=f"flush={variables.get(FLUSH, '?')}",
            binlog=f"sync_binlog={variables.get('sync_binlog', '?')}" if binlog else BINLOG_OFF,
            acknowledged=topology.acknowledgement(variables, nodes),
            consistency=topology.consistency(variables) if nodes > 1 else "",
        )

    def __str__(self) -> str:
        return ", ".join(part for part in dataclasses.astuple(self) if part)


@dataclasses.dataclass(frozen=True)
class LabelledVariant:
    """A variant with its durability label."""

    name: str
    """Name in messages."""

    variant: Variant
    """The variant."""

    durability: Durability
    """Its label."""


def compare(labelled: Sequence[LabelledVariant], parts: Sequence[str] = tuple(OPTIONS)) -> None:
    """Raise ConfigError for the first two labels that differ in ``parts``, unless the test set the difference."""
    for first, second in itertools.combinations(labelled, 2):
        differing = {part: source for part, source in _differences(first, second) if part in parts and source}
        if differing:
            sources = ", ".join(f"{part} (from {source})" for part, source in differing.items())
            labels = "; ".join(f"{item.name}: {_label_text(item.durability, parts)}" for item in (first, second))
            raise ConfigError(
                f"{first.name} and {second.name} differ in durability, and the test's options did not set that: "
                f"{sources} differs [{labels}]. Weaker durability is faster. "
                f"{REMEDY}{MAKE_EQUAL if differing.keys() & {'flush', 'binlog'} else ''}"
            )


def compare_promises(
    names: Sequence[str],
    variants: Sequence[Variant],
    defaults: Callable[[Variant], Mapping[str, str]],
    *,
    allowed: bool,
) -> None:
    """Compare acknowledgement guarantees before any cluster starts; they follow mainly from the topology.

    defaults: returns the variables at a variant's start. allowed: whether they may differ. Raises ConfigError as
    ``compare`` does.
    """
    if allowed or len({variant.spec.topology for variant in variants}) == 1:
        return
    labelled = [
        LabelledVariant(name, variant, Durability.of(variant.topology, defaults(variant), variant.spec.nodes))
        for name, variant in zip(names, variants, strict=True)
    ]
    compare(labelled, ("acknowledged",))


def _label_text(label: Durability, parts: Sequence[str]) -> str:
    return ", ".join(text for part in parts if (text := getattr(label, part)))


def _differences(first: LabelledVariant, second: LabelledVariant) -> Iterator[tuple[str, str]]:
    """The parts that differ, each with the source of the difference; empty if the test set the difference."""
    for part in OPTIONS:
        values = getattr(first.durability, part).casefold(), getattr(second.durability, part).casefold()
        if values[0] != values[1]:
            yield part, _source(part, _deciding_options(part, *values), first.variant, second.variant)


def _deciding_options(part: str, first: str, second: str) -> Sequence[Sequence[str]]:
    """The options that decide the items in which two texts of a part differ.

    A text of the part "acknowledged" has two items: "received by 2 replicas (AFTER_SYNC)".
    """
    if part != "acknowledged":
        return [SWITCHES if BINLOG_OFF in (first, second) else OPTIONS[part]]
    (who, _, waits), (other_who, _, other_waits) = first.partition(" ("), second.partition(" (")
    return [WHO] * (who != other_who) + [WAITS] * (waits != other_waits)


def _source(part: str, deciding: Sequence[Sequence[str]], first: Variant, second: Variant) -> str:
    """The source of a difference: topologies, vendors or releases; empty if the test set the difference.

    The test set it if its options differ for each item that differs.
    """
    topologies = first.spec.topology != second.spec.topology
    fixed = topologies and part in ("acknowledged", "consistency")  # no option can change this
    if not fixed and all(_test_options(first, names) != _test_options(second, names) for names in deciding):
        return ""
    sources = [f"the topologies {first.spec.topology} and {second.spec.topology}"] if topologies else []
    if fixed:
        return sources[0]
    if first.release.product != second.release.product:
        sources.append(f"the defaults of {first.release.product} and {second.release.product}")
    elif (first.release_name, first.version) != (second.release_name, second.version):
        sources.append(f"the releases {first.release_name} and {second.release_name}")
    return " or ".join(sources)


def _test_options(variant: Variant, names: Sequence[str]) -> dict[str, str]:
    """The values of these options that the test set, in lower case, by a name common to both vendors."""
    given = {name: value for name, value in variant.asked.items() if name in names}
    return {_MEANING.get(name, name): value.strip().casefold() for name, value in given.items()}
