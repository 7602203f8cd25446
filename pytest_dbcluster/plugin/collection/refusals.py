"""Refuses wrong releases and clusters before a run begins, so that no test has to fail because of them.

A spec that a test makes in its body is unknown here; ``testbed.resolution`` refuses it when the test uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonpath
from typing import Any

from pytest_dbcluster.clusters import proxy as proxies
from pytest_dbcluster.clusters import topology as topologies
from pytest_dbcluster.clusters.dialects.release_mixes import SERIES, NodeVersion
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.plugin import grouping
from pytest_dbcluster.plugin.settings import Settings
from pytest_dbcluster.releases import find
from pytest_dbcluster.reporting.documents.claim_id import key_of_test
from pytest_dbcluster.spec import ClusterSpec

ON_THIS_MACHINE = "local"  # the provisioner that finds or fetches programs here; others have other programs


def check(settings: Settings, items: Sequence[Any]) -> None:
    """Raise ConfigError for wrong releases of the run and wrong clusters of its tests. Starts nothing."""
    for name in settings.releases:
        if settings.releases.count(name) > 1:
            raise ConfigError(f"--db-release {name} is there twice")
        find.check_age(name)
        if settings.provisioner == ON_THIS_MACHINE:
            find.check(name)
    checked: set[ClusterSpec] = set()
    for item in items:
        for spec in grouping.specs(item):
            if spec not in checked and (wrong := _wrong(spec)):
                raise ConfigError(f"{item.nodeid.partition('::')[0]}: {spec}: {wrong}")
            checked.add(spec)


def refuse_equal_tests(items: Sequence[Any], release: object) -> None:
    """Raise ConfigError for two tests whose claims would have equal ids (``documents.claim_id``).

    release: the release of tests that are not repeated for several releases.
    """
    known: dict[tuple[str, object], Any] = {}
    for item in items:
        asked = grouping.params(item).get("db_release") or release
        key = (key_of_test(item.nodeid, str(asked)), asked)
        other = known.setdefault(key, item)
        if other.nodeid != item.nodeid:
            raise ConfigError(
                f"{other.nodeid} and {item.nodeid} have the same name {key[0]}; the history of a claim uses this name "
                "without the directory; rename one of the two tests or files"
            )
        if other is not item:
            raise ConfigError(_equal_node_ids(other, item))


def _equal_node_ids(one: Any, other: Any) -> str:
    """Why two tests have one node id: pytest omits the file of a test outside the rootdir."""
    if one.path == other.path:
        return f"pytest collected {other.nodeid} of {other.path} twice; name it once"
    return (
        f"tests of {one.path} and {other.path} have the same node id {other.nodeid}, because a file is outside "
        f"pytest's rootdir {other.config.rootpath}; run them with --rootdir={commonpath([one.path, other.path])}"
    )


def _wrong(spec: ClusterSpec) -> str:
    """Why a spec cannot be a cluster; empty if it can, or if it is planned, which skips its test."""
    try:
        for name in spec.releases:
            find.check_age(name)
        topology, nodes = topologies.topology(spec.topology), [(name.product, name.series) for name in spec.releases]
        if spec.proxy:
            proxies.proxy_class(spec.proxy).read_settings(spec, topology)
        if isinstance(spec.release, tuple) and all(len(series) >= SERIES for _, series in nodes):
            topologies.refuse_mix(spec, topology, [NodeVersion(*node) for node in nodes])
        return topology.wrong_size(spec.nodes)
    except ConfigError as error:
        return str(error)
    except Unsupported:
        return ""
