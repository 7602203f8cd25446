"""Checks that workloads can be compared, and the lines of a message about variants."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from pytest_dbcluster.clusters.servers.variables import meaning
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import mebibytes, quantity
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.network import NetworkNeeds
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds import metrics, open_loop
from pytest_dbcluster.spec import ClusterSpec, HostNeeds
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import HasDataSet, OpenLoop, Timed, Workload

Value = TypeVar("Value")
BUFFER_POOL = "innodb_buffer_pool_size"
SHOWN = 20  # variables shown; two vendors differ in hundreds


def check_workloads(workloads: Sequence[object]) -> None:
    """Raise ConfigError for anything but workloads, and for a rate below 1 operation/s. Starts nothing."""
    for workload in workloads:
        if not isinstance(workload, Workload):
            raise ConfigError(
                f'measure(workload, on=[...]) accepts a workload, such as MySQLSlap("write"); got {workload!r}'
            )
        _refuse_unnamed(workload)
        if isinstance(workload, OpenLoop):
            open_loop.ArrivalRate.of(workload.rate)


def _refuse_unnamed(workload: Workload) -> None:
    """Raise ConfigError for a workload that is not a frozen dataclass, or has no ``__str__``."""
    name = type(workload).__name__
    parameters = getattr(workload, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        raise ConfigError(
            f"{name} is not a frozen dataclass: write @dataclasses.dataclass(frozen=True) above class {name}, since "
            "equal workloads share their tables"
        )
    if type(workload).__str__ is object.__str__:
        raise ConfigError(
            f"{name} has no __str__: add one that returns a short name with the parameters, such as "
            f'"{name.lower()} t16", since results and history have the workload under this name'
        )
    try:
        hash(workload)
    except TypeError as error:
        raise ConfigError(f"{name} cannot be hashed ({error}): use a tuple for each list or mapping in it") from None


def check_client(workloads: Iterable[Workload], release: Release) -> None:
    """Raise ConfigError for workloads that cannot run, or not with a client of this release. Starts nothing."""
    workloads = list(workloads)
    for workload in workloads:
        workload.check()
    if lacking := next(filter(None, (workload.lacks(release) for workload in workloads)), ""):
        raise ConfigError(lacking)


def check_tables(workloads: Sequence[Workload], variants: Sequence[Variant]) -> None:
    """Raise ConfigError for tables that the topology of a variant does not replicate. Starts nothing.

    workloads: one for each variant.
    """
    for workload, variant in zip(workloads, variants, strict=True):
        if reason := workload.unfit(variant.spec.topology):
            raise ConfigError(reason)


def refuse_equal(names: Sequence[str], variants: Sequence[Variant]) -> None:
    """Raise ConfigError if two variants are the same cluster with the same options. Starts nothing."""
    known: dict[object, int] = {}
    for number, one in enumerate(variants):
        own = one.spec.topology, one.spec.nodes, one.spec.proxy, tuple(one.proxy_settings.items()), one.spec.needs
        options = tuple(sorted((option, meaning(value)) for option, value in one.asked.items()))
        if (other := known.setdefault((*own, one.programs, options), number)) != number:
            both = f"{names[other]} and {names[number]}"
            raise ConfigError(f"{both} are the same cluster with the same options: keep one of them")


def metric(workloads: Sequence[Workload]) -> str:
    """The metric that all compared workloads share. Raises ConfigError if it differs."""
    return _common(workloads, "metric", [workload.metric for workload in workloads])


def parts(workloads: Sequence[Workload]) -> tuple[str, ...]:
    """The types of transactions and the statements that all workloads have; empty if one does not know its own.

    A claim compares the same part of two workloads.
    """
    known = [workload.parts for workload in workloads]
    return tuple(name for name in known[0] if all(name in other for other in known)) if all(known) else ()


def rate(workloads: Sequence[Workload]) -> float | str | None:
    """The arrival rate that all compared workloads share, as ``OpenLoop.rate``. Raises ConfigError if it differs."""
    return _common(
        workloads, "rate", [workload.rate if isinstance(workload, OpenLoop) else None for workload in workloads]
    )


def seconds(workloads: Sequence[Workload]) -> tuple[float | None, bool]:
    """The seconds of a round that the test sets (the shortest, or None), and whether the testbed chooses them.

    The testbed chooses them only if no workload sets them.
    """
    timed = [workload.seconds for workload in workloads if isinstance(workload, Timed)]
    given = [value for value in timed if value is not None]
    return min(given, default=None), bool(timed) and len(timed) == len(workloads) and not given


def _common(workloads: Sequence[Workload], name: str, values: Sequence[Value]) -> Value:
    distinct = list(dict.fromkeys(values))
    if len(distinct) > 1:
        shown = ", ".join(map(repr, distinct))
        raise ConfigError(f"{' and '.join(map(str, workloads))} cannot be compared: their {name} differs ({shown})")
    return distinct[0]


def tables(workload: Workload) -> Workload:
    """The key of a workload's tables: the workload without rate and length. Equal keys mean equal tables."""
    return with_seconds(at_rate(workload, None), None)


def data(workload: Workload) -> object:
    """What the tables of a workload are: for a data set all fields but the connections, for others ``tables``.

    Equal ones share prepared tables, so a measurement that alternates two numbers of threads prepares each once.
    """
    own = tables(workload)
    if not isinstance(workload, HasDataSet) or not dataclasses.is_dataclass(own):
        return own
    names = [field.name for field in dataclasses.fields(own) if field.compare and field.name != "threads"]
    return type(own), workload.data_set, tuple((name, getattr(own, name)) for name in names)


def with_seconds(workload: Workload, seconds: float | None) -> Workload:
    """The workload with rounds of so many seconds; a workload with a fixed amount of work stays."""
    return workload.with_seconds(seconds) if isinstance(workload, Timed) else workload


def at_rate(workload: Workload, rate: float | None) -> Workload:
    """The workload at this arrival rate, in operations a second; None for a closed loop."""
    return workload.at_rate(rate) if isinstance(workload, OpenLoop) else workload


def refuse(workloads: Iterable[Workload], profile: str, metric: str) -> None:
    """Raise ConfigError for a metric or a counter that these workloads do not have in this profile."""
    if metric in metrics.OF_DRAIN and (repeating := [workload for workload in workloads if workload.repeats(profile)]):
        raise ConfigError(metrics.NO_DRAINED.format(metric=metric, load=repeating[0]))


def tables_to_check(workloads: Iterable[Workload], profile: str) -> tuple[str, ...]:
    """The tables that remain after rounds of these workloads. They must be equal on all nodes."""
    left = (workload for workload in workloads if not workload.repeats(profile))
    return tuple(dict.fromkeys(table for workload in left for table in workload.tables))


def check_loads(workloads: Mapping[str, Workload], on: Sequence[ClusterSpec]) -> None:
    """Raise ConfigError for fewer than two workloads, and for names that are not text; files have these names."""
    if len(workloads) < 2:
        usage = "write measure(workload, on=[...])" if len(on) > 1 else "add another workload"
        raise ConfigError(
            "measure({name: workload, ...}, on=[spec, ...]) needs two or more workloads, "
            f"got {len(workloads)}: {usage}"
        )
    if wrong := [name for name in workloads if not isinstance(name, str) or not name.strip()]:
        raise ConfigError(
            f"measure({{name: workload, ...}}, on=[spec, ...]): a name is a text, got {', '.join(map(repr, wrong))}; "
            f'write a text, such as "threads {wrong[0] or 16}"'
        )


def hosts_line(needs: Mapping[str, HostNeeds]) -> list[str]:
    """One line with the limits of each variant's hosts; empty if no variant has limits."""
    limits = {name: str(host_needs) or "no limits" for name, host_needs in needs.items()}
    if not any(map(str, needs.values())):
        return []
    if len(set(limits.values())) == 1:
        return [f"each node's host: {next(iter(limits.values()))}"]
    return [f"each node's host: {'; '.join(f'{name} {limit}' for name, limit in limits.items())}"]


def undivided_lines(workloads: Iterable[Workload], hosts: Sequence[Host]) -> list[str]:
    """A line for each workload that only the first of several hosts ran, because it cannot be divided."""
    alone = dict.fromkeys(str(workload) for workload in workloads if not workload.divides) if len(hosts) > 1 else {}
    return [
        f"load from 1 of {len(hosts)} hosts: {name} cannot be divided, because its tool times only its own clients"
        for name in alone
    ]


def shapes_line(specs: Mapping[str, ClusterSpec]) -> list[str]:
    """One line with the number of nodes and the proxy of each variant; empty if all are the same."""
    shapes = {name: f"{quantity(spec.nodes, 'node')} behind {spec.proxy or 'no proxy'}" for name, spec in specs.items()}
    if len(set(shapes.values())) == 1:
        return []
    return [f"clusters: {', '.join(f'{name} {shape}' for name, shape in shapes.items())}"]


def proxy_differences(one: Variant, other: Variant) -> dict[str, tuple[str, str]]:
    """By name, such as ``haproxy fail_back``, the options of the proxy that differ; empty for different proxies."""
    if one.proxy_class is None or one.proxy_class is not other.proxy_class:
        return {}
    return {
        f"{one.spec.proxy} {option.name}": (option.text(before), option.text(after))
        for option in one.proxy_class.options
        if (before := one.proxy_settings[option.name]) != (after := other.proxy_settings[option.name])
    }


def data_fits_line(differ: Mapping[str, tuple[str, str]], names: tuple[str, str], data: int) -> str:
    """One line if buffer pools differ in size and the data fits into the smaller one; otherwise empty.

    differ: the effective variables that differ, (baseline's value, candidate's). names: (baseline, candidate). data:
    bytes of the tables; 0 before the first round.
    """
    sizes = tuple(int(value) for value in differ.get(BUFFER_POOL, ()) if value.isdigit())
    if len(sizes) != len(names) or not 0 < data <= min(sizes):
        return ""
    pools = ", ".join(f"{name} {mebibytes(size)}" for name, size in zip(names, sizes, strict=True))
    return (
        f"the data ({math.ceil(data / 2**20)} MiB) fits into the smaller buffer pool ({pools}), so this says nothing "
        "about workloads with more data; use more data than the smaller buffer pool to test its size"
    )


def data_texts(names: Sequence[str], workloads: Sequence[Workload]) -> dict[str, str]:
    """By name of a variant, the size of its workload's tables; without workloads that do not know it."""
    return {name: text for name, workload in zip(names, workloads, strict=True) if (text := workload.data_text)}


def files(names: Sequence[str], workloads: Sequence[Workload]) -> dict[str, Mapping[str, str]]:
    """By name of a variant, the digests of its workload's files; without workloads that have no files."""
    return {name: workload.files for name, workload in zip(names, workloads, strict=True) if workload.files}


def differences_line(baseline: str, candidate: str, differ: Mapping[str, tuple[str, str]]) -> str:
    """One line with the effective variables that differ between two variants, the first SHOWN with their values."""
    changes = [f"{name}: {old} -> {new}" for name, (old, new) in differ.items()]
    rest = f", and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
    return f"variables that differ ({baseline} -> {candidate}): {', '.join(changes[:SHOWN]) or 'none'}{rest}"


def rtts(variants: Mapping[str, Variant]) -> Mapping[str, float]:
    """The round-trip time of each variant in seconds, if they differ only in it; otherwise empty."""
    same = {
        dataclasses.replace(variant.spec, needs=variant.spec.needs.without_network) for variant in variants.values()
    }
    if len(same) > 1:
        return {}
    networks = {name: variant.network for name, variant in variants.items()}
    plain = {name: asked.rtt for name, asked in networks.items() if asked and asked == NetworkNeeds(rtt=asked.rtt)}
    return plain if plain.keys() == networks.keys() else {}
