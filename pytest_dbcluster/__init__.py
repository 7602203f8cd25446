"""Performance claims about MariaDB and MySQL clusters, written as pytest tests and answered with an interval.

The names below are the public interface; everything else may change. Each name is imported at its first use, so loading
the plugin stays cheap in projects that measure nothing.

- ``ClusterSpec``, ``HostNeeds``, ``ReleaseName``: the cluster that a test asks for.
- ``LuaScript``, ``MySQLSlap``, ``SQLFiles``, ``SysBench``, ``TPCC``: workloads.
- ``Workload``, ``Setting``, ``RunResult``, and the protocols ``HasDataSet``, ``OpenLoop`` and ``Timed``: for a workload
  that you write in Python. ``pytest_dbcluster.testing`` has its tests.
- ``Measure``: the type of the fixture ``measure``. It returns ``Series``, ``EventSeries``, ``Effects``,
  ``CapacitySeries``, ``Curve`` and ``Winner``. A claim returns an ``Answer``. The events of ``measure.event`` are in
  ``pytest_dbcluster.events``.
- ``ordered``: the claim that each series is faster than the series before it.
- ``fades``: the claim that what slows one pair of series slows another pair less.
- ``ClaimFailed``, ``Inconclusive``, ``ConfigError``, ``Unsupported``, ``DBClusterError``: the errors of a test.
- ``__version__``: the version of the package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_dbcluster.errors import ClaimFailed, ConfigError, DBClusterError, Inconclusive, Unsupported
    from pytest_dbcluster.measuring.answer import Answer
    from pytest_dbcluster.measuring.capacity.capacity_series import CapacitySeries
    from pytest_dbcluster.measuring.curve import Curve
    from pytest_dbcluster.measuring.event_series import EventSeries
    from pytest_dbcluster.measuring.factorial.effects import Effects
    from pytest_dbcluster.measuring.race.winner import Winner
    from pytest_dbcluster.measuring.series import Series, fades, ordered
    from pytest_dbcluster.plugin.fixture import Measure
    from pytest_dbcluster.rounds.round import RunResult
    from pytest_dbcluster.spec import ClusterSpec, HostNeeds, ReleaseName
    from pytest_dbcluster.version import __version__ as __version__
    from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
    from pytest_dbcluster.workloads.script import LuaScript
    from pytest_dbcluster.workloads.sql import SQLFiles
    from pytest_dbcluster.workloads.sysbench import SysBench
    from pytest_dbcluster.workloads.tpcc import TPCC
    from pytest_dbcluster.workloads.workload import HasDataSet, OpenLoop, Setting, Timed, Workload

__all__ = [
    "TPCC",
    "Answer",
    "CapacitySeries",
    "ClaimFailed",
    "ClusterSpec",
    "ConfigError",
    "Curve",
    "DBClusterError",
    "Effects",
    "EventSeries",
    "HasDataSet",
    "HostNeeds",
    "Inconclusive",
    "LuaScript",
    "Measure",
    "MySQLSlap",
    "OpenLoop",
    "ReleaseName",
    "RunResult",
    "SQLFiles",
    "Series",
    "Setting",
    "SysBench",
    "Timed",
    "Unsupported",
    "Winner",
    "Workload",
    "fades",
    "ordered",
]

_HOMES = {
    "errors": ("ClaimFailed", "ConfigError", "DBClusterError", "Inconclusive", "Unsupported"),
    "measuring.answer": ("Answer",),
    "measuring.capacity.capacity_series": ("CapacitySeries",),
    "measuring.curve": ("Curve",),
    "measuring.event_series": ("EventSeries",),
    "measuring.factorial.effects": ("Effects",),
    "measuring.race.winner": ("Winner",),
    "measuring.series": ("Series", "fades", "ordered"),
    "plugin.fixture": ("Measure",),
    "rounds.round": ("RunResult",),
    "spec": ("ClusterSpec", "HostNeeds", "ReleaseName"),
    "version": ("__version__",),
    "workloads.mysqlslap": ("MySQLSlap",),
    "workloads.script": ("LuaScript",),
    "workloads.sql": ("SQLFiles",),
    "workloads.sysbench": ("SysBench",),
    "workloads.tpcc": ("TPCC",),
    "workloads.workload": ("HasDataSet", "OpenLoop", "Setting", "Timed", "Workload"),
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use (PEP 562). Raises AttributeError for any other name."""
    for module, names in _HOMES.items():
        if name in names:
            value: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, for completion in a shell."""
    return sorted(__all__)
