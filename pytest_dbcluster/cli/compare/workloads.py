"""The workloads of ``dbcluster compare``, from its options; and how much data they have."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence

from pytest_dbcluster.cli.workload_option import workload_of
from pytest_dbcluster.clusters.servers.variables import as_number
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import memory_bytes, memory_text, whole_mebibytes
from pytest_dbcluster.hosts.given import Add, HelpText
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


def add_data(add: Add) -> None:
    """Add the options for the size of the data."""
    usual, warehouse = (whole_mebibytes(one.data_set_bytes) for one in (SysBench(), TPCC()))
    add(
        "--size",
        metavar="SIZE",
        help=HelpText(
            f"data of sysbench, such as 2G, in {TABLES} tables (default: {SysBench().size} rows, {usual})",
            f"data of sysbench, such as 2G (default {usual})",
        ),
    )
    add(
        "--warehouses",
        type=int,
        metavar="N",
        help=HelpText(
            f"data of tpcc, {warehouse} for each warehouse (default 1)", f"data of tpcc, {warehouse} each (default 1)"
        ),
    )


def workloads_of(arguments: argparse.Namespace) -> list[Workload]:
    """The workloads of a comparison with their data. Raises ConfigError for the data of a workload that is not there.

    ``--size`` is for sysbench, ``--warehouses`` for tpcc.
    """
    texts = arguments.workload or DEFAULT_WORKLOADS
    for option, tool in (("size", "sysbench"), ("warehouses", "tpcc")):
        if getattr(arguments, option) is not None and not any(text.partition(":")[0] == tool for text in texts):
            raise ConfigError(f"--{option} is for {tool}, and this comparison has only {', '.join(texts)}")
    made: list[Workload] = []
    for text in texts:
        workload = workload_of(text, arguments.threads)
        if isinstance(workload, SysBench) and arguments.size is not None:
            tables = 1 if workload.script in ONE_TABLE else TABLES
            rows = _size(arguments.size) // BYTES // tables
            workload = dataclasses.replace(workload, table_count=tables, size=rows)
        elif isinstance(workload, TPCC) and arguments.warehouses is not None:
            workload = dataclasses.replace(workload, warehouses=arguments.warehouses)
        made.append(workload)
    return made


def _size(text: str) -> int:
    """The bytes of ``--size``. Raises ConfigError."""
    try:
        size = memory_bytes(text)
    except ConfigError:
        size = 0
    if size < LEAST_SIZE:
        raise ConfigError(f"--size {text!r}: it accepts {memory_text(LEAST_SIZE)} or more, such as 512M or 2G")
    return size


def fitting_line(workloads: Sequence[Workload], variants: Sequence[Variant]) -> str:
    """``data_line`` for the larger buffer pool of these variants."""
    pools = [as_number(variant.options.get(BUFFER_POOL, "")) or USUAL_POOL for variant in variants]
    return data_line(workloads, int(max(pools)))


def data_line(workloads: Sequence[Workload], pool: int) -> str:
    """One line about data that fit into the larger buffer pool, with the options for more data; otherwise empty.

    pool: bytes of the larger innodb_buffer_pool_size.
    """
    fitting = [workload for workload in workloads if 0 < workload.data_set_bytes <= pool]
    if not fitting:
        return ""
    wanted = math.ceil(MORE_DATA * pool / 2**20) * 2**20
    options = [_more_data(workload, wanted) for workload in fitting]
    data = ", ".join(f"{workload} {whole_mebibytes(workload.data_set_bytes)} of tables" for workload in fitting)
    more = " and ".join(dict.fromkeys(options))
    return (
        f"the data fit into a buffer pool of {whole_mebibytes(pool)}: {data}; for more data than that: {more}, and "
        "a longer --seconds, which includes the first load"
    )


def _more_data(workload: Workload, wanted: int) -> str:
    """What gives a workload ``wanted`` bytes of data: an option, or rows of the user."""
    if isinstance(workload, TPCC):
        return f"--warehouses {math.ceil(wanted / TPCC().data_set_bytes)}"
    return f"more rows in {workload.read.name}" if isinstance(workload, SQLFiles) else f"--size {memory_text(wanted)}"
