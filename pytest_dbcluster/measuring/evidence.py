"""Evidence: what a message and a record say about the clusters of a question, besides its rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_dbcluster.network import Delay
from pytest_dbcluster.rounds.busy_machine import OthersLoad

Step = tuple[str, str]  # the names of two neighbours of a question: candidate and baseline


@dataclasses.dataclass(frozen=True)
class SpecDocument:
    """The cluster of one variant."""

    topology: str
    """The name of the topology."""

    nodes: int
    """The number of nodes."""

    release: str
    """The release, such as ``mariadb:10.11``; ``mariadb:10.11+11.8`` if nodes differ."""

    version: str
    """The exact version; ``10.11.19+11.8.6`` if nodes differ."""

    proxy: str
    """The name of the proxy; empty for none."""

    options: Mapping[str, str]
    """The options of the spec, by name."""

    cnf: tuple[str, ...]
    """The names of its my.cnf files, without directories."""

    limits: str
    """The limits of each host, as text; empty for none."""

    storage: str
    """The storage profile, or ``iops=N``; empty for the machine's own disk."""

    parity: str
    """``vendor`` or ``normalised``."""

    proxy_options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The options of the proxy in the spec, by name; empty in older results."""


@dataclasses.dataclass(frozen=True)
class ResolvedSpec:
    """A variant as it runs, for records and for what they depend on."""

    name: str
    """The short name of its spec; a variant's own name may have more."""

    document: SpecDocument
    """Its cluster, as it is stored."""

    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """All requested options of the servers and of the topology, by name, wherever they are written."""

    instance: int = 0
    """The number of the first of its clusters."""

    image: str = ""
    """The id of the containers' image; empty without containers."""

    built: str = ""
    """Place, size and time of a server program of the user; empty for a release that we fetch."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What is known about the variants of a question. It is gathered after the last round, while the clusters run."""

    durability: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By variant, the failures that a commit survives, as text."""

    differences: Mapping[Step, Mapping[str, tuple[str, str]]] = dataclasses.field(default_factory=dict)
    """What differs between neighbours of a question: (baseline's value, candidate's).

    By name, server variables, and options of the proxy such as ``haproxy fail_back``.
    """

    data_fits: Mapping[Step, str] = dataclasses.field(default_factory=dict)
    """For each two neighbours, a line if the data fits into the smaller of two buffer pools; else empty."""

    data: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By variant, the size of its workload's tables when they are loaded; without workloads that do not know it."""

    files: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """By variant, the SHA-256 of each file of its workload; without workloads that have no files."""

    delays: Mapping[str, tuple[Delay, ...]] = dataclasses.field(default_factory=dict)
    """By variant, the round trips of its network; without the variants that ask for none."""

    specs: Mapping[str, ResolvedSpec] = dataclasses.field(default_factory=dict)
    """By variant, its cluster."""

    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What figures depend on because of the hosts, besides this machine."""

    rtts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The round-trip time of all variants in seconds, if they differ only in it."""

    mode: str = ""
    """The mode of the workload, as published figures name it; empty without modes."""

    others_before: OthersLoad | None = None
    """The cores of this machine that other programs took before the first round; None for hosts elsewhere."""

    notes: tuple[str, ...] = ()
    """The lines about the clusters at the end of a message."""
