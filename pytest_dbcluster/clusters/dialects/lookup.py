"""Look up the dialect of a vendor's version. Vendors differ by data here, not by branches in the code."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Mapping
from typing import Any

from pytest_dbcluster.clusters.dialects.dialect import Dialect
from pytest_dbcluster.clusters.dialects.implied_options import implied_options
from pytest_dbcluster.clusters.dialects.mariadb import MARIADB
from pytest_dbcluster.clusters.dialects.mysql import MYSQL
from pytest_dbcluster.clusters.dialects.pxc import PXC
from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.releases import catalogue

_DIALECTS = {"mariadb": MARIADB, "mysql": MYSQL}
# Product -> fields that differ from those of the server that it is built from.
_PRODUCTS: dict[str, Mapping[str, Any]] = {"pxc": PXC}
# (vendor, first version, first version after the range, fields that differ from the newest version's)
_VERSIONS: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    (
        "mysql",
        catalogue.OLDEST["mysql"],
        (9,),  # performance_schema.variables_metadata came with 9.0
        {
            "variables": "SELECT LOWER(v.variable_name), v.variable_value, 0, '', COALESCE(i.min_value, ''), "
            "COALESCE(i.max_value, ''), '', 'GLOBAL' FROM performance_schema.global_variables v "
            "LEFT JOIN performance_schema.variables_info i USING (variable_name) ORDER BY 1"
        },
    ),
    # The statuses of the redo log came with 8.0.30.
    ("mysql", catalogue.OLDEST["mysql"], (8, 0, 30), {"log_current": "", "log_flushed": ""}),
)


@functools.cache
def dialect(vendor: str, version: str = "") -> Dialect:
    """Return the dialect of a vendor's version (``10.11.19``); an empty text is the newest version.

    Percona Server has the dialect of MySQL. Percona XtraDB Cluster differs from it by the fields of ``pxc.PXC``.

    Raises Unsupported for an unknown vendor, and for a version older than the oldest known one.
    """
    upstream = catalogue.upstream(vendor)
    if upstream not in _DIALECTS:
        raise Unsupported(f"unknown server {vendor}; known: {', '.join(_DIALECTS)}")
    series = numbers(version)
    changed = _PRODUCTS.get(vendor, {})
    result = dataclasses.replace(_DIALECTS[upstream], implied=implied_options(upstream, series), **changed)
    if old := catalogue.too_old(vendor, version, series):
        raise Unsupported(old)
    newest = (*series, math.inf)  # a series is its newest version
    for name, first, end, changes in _VERSIONS:
        if name == upstream and series and first <= newest < end:
            result = dataclasses.replace(result, **changes)
    return result


def numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers: (10, 11, 19) for ``10.11.19``; () for text without a number."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
