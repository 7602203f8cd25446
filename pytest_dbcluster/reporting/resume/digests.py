"""Digests: what the answer of a claim, or a drawn curve, depends on, as a short hash of each part.

Two claims with the same id and digests ask the same of the same servers, so one answer serves both. The seed is not a
part of them: it changes only the order of the rounds.
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

    variants, loads: those of the question, in its order. instances: the number of instances of each variant.
    """
    claim = question.claim
    share = (claim.share,) if claim.share != 0.5 else ()
    # A test may assert what it only showed before. Answers of earlier versions have this value in their digest.
    claims = not claim.of_kind.claims_nothing
    asked = {CLAIM: _digest(claim.kind, claim.margin, *share, question.metric, claims)}
    return asked | _digests_of_measurement(variants, loads, conditions, instances)


def digests_of_curve(
    values: Sequence[object],
    metric: str,
    variants: Sequence[ResolvedSpec],
    loads: Sequence[object],
    conditions: Conditions,
    *,
    instances: int,
) -> Mapping[str, str]:
    """The digest of each part of a curve.

    values: those of its field. loads: the workloads of all values and variants.
    """
    asked = {VALUES: _digest(metric, *map(repr, values))}
    return asked | _digests_of_measurement(variants, loads, conditions, instances)


def _digests_of_measurement(
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
    """The names of the parts that differ. An answer of an older version has no digests, so all of its parts differ.

    The rounds of an interrupted answer count as changed, because a claim that goes on has more rounds.
    """
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]


def _digest(*values: object) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:LENGTH]


def _cluster(variant: ResolvedSpec) -> tuple[object, ...]:
    """The shape of a cluster, and all options of its servers and its proxy, wherever they were written."""
    spec = variant.document
    options = sorted((name, redact(value)) for name, value in variant.options.items())
    shape = (spec.topology, spec.nodes, spec.proxy or None, spec.limits, variant.instance, options)
    return (*shape, sorted(spec.proxy_options.items())) if spec.proxy_options else shape


def _release(variant: ResolvedSpec) -> tuple[object, ...]:
    """The release of a cluster. A user may build the programs in their own directory again without a new version."""
    return (variant.document.release, variant.document.version, variant.image, variant.built)
