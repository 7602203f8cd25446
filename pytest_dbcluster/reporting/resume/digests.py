"""Digests: what the answer of a claim, or a drawn curve, depends on, as a short hash of each part.

Two claims with the same id and the same digests ask the same of the same servers, so one answer serves both. The seed
is no part: another random order asks the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence

from pytest_dbcluster.measuring.evidence import ResolvedSpec
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.redaction import redact
from pytest_dbcluster.reporting.documents.run_document import MachineDocument
from pytest_dbcluster.reporting.history.entry import machine_key

ROUNDS = "number of rounds"  # a part of what an interrupted answer depends on
LENGTH = 16  # characters of a hash
# The parts, as messages name them.
CLAIM, VALUES, CLUSTERS, RELEASE, LOAD, OPTIONS, MACHINE = (
    "its margin or metric",
    "its values or metric",
    "its clusters or their my.cnf",
    "its release",
    "its workload",
    "the run's options",
    "the machine",
)


@dataclasses.dataclass(frozen=True)
class Conditions:
    """What all claims of a run depend on."""

    options: tuple[object, ...]
    """The options of the run, such as its profile, the limits of a claim and its alpha."""

    machine: MachineDocument
    """The machine, as in ``run.json``."""


def digests(
    question: Question,
    variants: Sequence[ResolvedSpec],
    loads: Sequence[object],
    conditions: Conditions,
    *,
    instances: int,
) -> Mapping[str, str]:
    """The digest of each part.

    variants, loads: of the question, in its order. instances: of each variant.
    """
    claim = question.claim
    asked = {CLAIM: _digest(claim.kind, claim.margin, question.metric, question.asserted)}
    return asked | _measured(variants, loads, conditions, instances)


def digests_of_curve(
    values: Sequence[object],
    metric: str,
    variants: Sequence[ResolvedSpec],
    loads: Sequence[object],
    conditions: Conditions,
    *,
    instances: int,
) -> Mapping[str, str]:
    """The digest of each part of a curve. values: of its field. loads: of each value, for each variant."""
    asked = {VALUES: _digest(metric, *map(repr, values))}
    return asked | _measured(variants, loads, conditions, instances)


def _measured(
    variants: Sequence[ResolvedSpec], loads: Sequence[object], conditions: Conditions, instances: int
) -> dict[str, str]:
    """The digests of what is measured, and where."""
    machine = conditions.machine
    return {
        CLUSTERS: _digest(instances, *map(_cluster, variants)),
        RELEASE: _digest(*map(_release, variants)),
        LOAD: _digest(*map(repr, loads)),
        OPTIONS: _digest(*conditions.options),
        MACHINE: _digest(machine_key(machine), machine.device),
    }


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the parts that differ; all of them for an answer of an older version, which has no digests.

    The rounds of an interrupted answer count as changed, since a claim whose rounds go on has more.
    """
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]


def _digest(*values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:LENGTH]


def _cluster(variant: ResolvedSpec) -> tuple[object, ...]:
    """What a cluster is: its shape, and all options that its servers get, wherever they were written."""
    spec = variant.document
    options = sorted((name, redact(value)) for name, value in variant.options.items())
    return (spec.topology, spec.nodes, spec.proxy or None, spec.limits, variant.instance, options)


def _release(variant: ResolvedSpec) -> tuple[object, ...]:
    """The release of a cluster. Programs in a directory of the user may be built anew without another version."""
    return (variant.document.release, variant.document.version, variant.image, variant.built)
