"""The workloads of ``dbcluster compare``, from its options; and how much data they have."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence

from pytest_dbcluster.cli.workload_option import workload_of
from pytest_dbcluster.clusters.servers.variables import as_number
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import Report, memory_bytes, memory_text, option_seconds, whole_mebibytes
from pytest_dbcluster.hosts.given import Add, HelpText
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.testbed.capacity.objective_testbed import check_rate_free
from pytest_dbcluster.testbed.comparability import BUFFER_POOL
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sysbench import BYTES, ONE_TABLE, SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from pytest_dbcluster.workloads.workload import Workload

DEFAULT_WORKLOADS = ("sysbench:oltp_read_write", "tpcc")
TABLES = 8  # of sysbench with --size; it loads them in parallel
LEAST_SIZE = 2**20  # bytes of --size
USUAL_POOL = 2**27  # bytes of a server's buffer pool without the option
MORE_DATA = 1.5  # suggested data / the buffer pool
MOST_DATA = 2**29  # bytes of a workload that no option asks for


def add_data(add: Add) -> None:
    """Add the options for the size of the data."""
    usual, warehouse = (whole_mebibytes(one.data_set_bytes) for one in (SysBench(), TPCC()))
    add(
        "--size",
        metavar="SIZE",
        help=HelpText(
            f"data of sysbench, such as 2G, in {TABLES} tables (default: {SysBench().size} rows, {usual}; if buffer "
            "pools differ, more than the larger one)",
            f"data of sysbench, such as 2G (default {usual})",
        ),
    )
    add(
        "--warehouses",
        type=int,
        metavar="N",
        help=HelpText(
            f"data of tpcc, {warehouse} for each warehouse (default 1; if buffer pools differ, more than the larger "
            "one)",
            f"data of tpcc, {warehouse} each (default 1)",
        ),
    )


def add_capacity(add: Add) -> None:
    """Add the option for an objective, which ``objective_of`` reads."""
    whole = (
        "compare the arrival rates at which a latency percentile crosses an objective, such as p95=20ms, in place of"
    )
    add(
        "--capacity",
        metavar="P=TIME",
        help=HelpText(f"{whole} throughput and p95", "capacities at an objective, such as p95=20ms"),
    )


def workloads_of(arguments: argparse.Namespace) -> list[Workload]:
    """The workloads of a comparison with their data. Raises ConfigError for the data of a workload that is not there.

    ``--size`` is for sysbench, ``--warehouses`` for tpcc. Raises what ``objective_of`` raises.
    """
    texts = arguments.workload or DEFAULT_WORKLOADS
    for option, tool in (("size", "sysbench"), ("warehouses", "tpcc")):
        if getattr(arguments, option) is not None and not any(text.partition(":")[0] == tool for text in texts):
            raise ConfigError(f"--{option} is for {tool}, and this comparison has only {', '.join(texts)}")
    made: list[Workload] = []
    for text in texts:
        workload = workload_of(text, arguments.threads)
        if isinstance(workload, SysBench) and arguments.size is not None:
            workload = _of_size(workload, _size(arguments.size))
        elif isinstance(workload, TPCC) and arguments.warehouses is not None:
            workload = dataclasses.replace(workload, warehouses=arguments.warehouses)
        made.append(workload)
    objective_of(arguments, made)
    return made


def _of_size(workload: SysBench, size: int) -> SysBench:
    tables = 1 if workload.script in ONE_TABLE else TABLES
    return dataclasses.replace(workload, table_count=tables, size=size // BYTES // tables)


def choose_data(
    workloads: Sequence[Workload], variants: Sequence[Variant], arguments: argparse.Namespace, tell: Report
) -> list[Workload]:
    """The workloads with ``beyond_pools``; tells which data fit into the larger buffer pool."""
    chosen = beyond_pools(workloads, variants, arguments)
    if line := fitting_line(chosen, variants):
        tell(line)
    return chosen


def beyond_pools(
    workloads: Sequence[Workload], variants: Sequence[Variant], arguments: argparse.Namespace
) -> list[Workload]:
    """The workloads with more data than the larger buffer pool, if the pools of the variants differ.

    Data that fit into both pools would not show the difference. An option for the data counts instead, and a workload
    gets at most ``MOST_DATA``.
    """
    pools = _pools(variants)
    wanted = _more_than(max(pools))
    if len(set(pools)) == 1 or wanted > MOST_DATA:
        return list(workloads)
    return [_beyond(workload, wanted, arguments) for workload in workloads]


def _beyond(workload: Workload, wanted: int, arguments: argparse.Namespace) -> Workload:
    if isinstance(workload, SysBench) and arguments.size is None and workload.data_set_bytes < wanted:
        return _of_size(workload, wanted)
    if isinstance(workload, TPCC) and arguments.warehouses is None and workload.data_set_bytes < wanted:
        return dataclasses.replace(workload, warehouses=_warehouses(wanted))
    return workload


def _pools(variants: Sequence[Variant]) -> list[int]:
    """The bytes of each variant's buffer pool."""
    return [int(as_number(variant.options.get(BUFFER_POOL, "")) or USUAL_POOL) for variant in variants]


def _more_than(pool: int) -> int:
    """The bytes of data that do not fit into a buffer pool, in whole MiB."""
    return math.ceil(MORE_DATA * pool / 2**20) * 2**20


def _warehouses(size: int) -> int:
    return math.ceil(size / TPCC().data_set_bytes)


def _size(text: str) -> int:
    """The bytes of ``--size``. Raises ConfigError."""
    try:
        size = memory_bytes(text)
    except ConfigError:
        size = 0
    if size < LEAST_SIZE:
        raise ConfigError(f"--size {text!r}: it accepts {memory_text(LEAST_SIZE)} or more, such as 512M or 2G")
    return size


def objective_of(arguments: argparse.Namespace, workloads: Sequence[Workload]) -> Objective | None:
    """The objective of ``--capacity``, such as ``p95=20ms``; None without one.

    Raises ConfigError for another text, and for a workload without an open loop.
    """
    if arguments.capacity is None:
        return None
    if getattr(arguments, "by_option", False) or len(getattr(arguments, "cnf", ())) > 2:
        raise ConfigError("--capacity compares two files or releases as a whole, without --by-option")
    if getattr(arguments, "why", False):
        raise ConfigError("--capacity has no extra rounds: leave --why out, or compare the throughput with --why")
    percentile, _, time = arguments.capacity.partition("=")
    objective = Objective.of("--capacity", {percentile: option_seconds(f"--capacity {percentile}=", time, "20ms")})
    for workload in workloads:
        check_rate_free(workload)
    return objective


def fitting_line(workloads: Sequence[Workload], variants: Sequence[Variant]) -> str:
    """``data_line`` for the larger buffer pool of these variants."""
    return data_line(workloads, max(_pools(variants)))


def data_line(workloads: Sequence[Workload], pool: int) -> str:
    """One line about data that fit into the larger buffer pool, with the options for more data; otherwise empty.

    pool: bytes of the larger innodb_buffer_pool_size.
    """
    fitting = [workload for workload in workloads if 0 < workload.data_set_bytes <= pool]
    if not fitting:
        return ""
    options = [_more_data(workload, _more_than(pool)) for workload in fitting]
    data = ", ".join(f"{workload} {whole_mebibytes(workload.data_set_bytes)} of tables" for workload in fitting)
    more = " and ".join(dict.fromkeys(options))
    return (
        f"the data fit into a buffer pool of {whole_mebibytes(pool)}: {data}; for more data than that: {more}, and "
        "a longer --seconds, which includes the first load"
    )


def _more_data(workload: Workload, wanted: int) -> str:
    """What gives a workload ``wanted`` bytes of data: an option, or rows of the user."""
    if isinstance(workload, TPCC):
        return f"--warehouses {_warehouses(wanted)}"
    return f"more rows in {workload.read.name}" if isinstance(workload, SQLFiles) else f"--size {memory_text(wanted)}"
