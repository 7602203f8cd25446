"""Clusters and variants of specs whose release a test has in hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pytest_dbcluster import registry
from pytest_dbcluster.clusters import startup
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.startup import ResolvedCluster
from pytest_dbcluster.clusters.topologies.standalone import Standalone
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.resolution import check_release, look_up, settings_of
from pytest_dbcluster.testbed.variants import Variant


def bring_up(
    spec: ClusterSpec, release: Release, provisioner: Provisioner, *, options: Mapping[str, str], **how: Any
) -> Cluster:
    """A cluster that is ready, of a spec that is checked as in a run; its options are taken as they are."""
    form, proxy = look_up(spec, provisioner)
    check_release(release, form, proxy)
    settings = settings_of(form, options, spec.topology)
    own = {name: value for name, value in options.items() if name not in settings}
    return startup.bring_up(ResolvedCluster(spec, release, form, proxy, own, settings), provisioner, **how)


def variant_of(spec: ClusterSpec, release: Any, static: Any = (), dynamic: Any = ()) -> Variant:
    """A variant with these options, by name or as pairs; a test that asks for nothing of a release gives None."""
    words = dialect(release.product, release.version) if release else dialect("mariadb")
    options = (tuple(sorted(dict(given).items())) for given in (static, dynamic))
    form = topology(spec.topology) if spec.topology in registry.names("topology") else Standalone()
    return Variant(spec, release, form, None, words, *options)


def written(node: Node, name: str) -> str:
    """Three rows of a new table, written on one node; returns the name of the table."""
    node.query("CREATE DATABASE IF NOT EXISTS kept")
    node.query(f"CREATE TABLE kept.{name} (id INT PRIMARY KEY)")
    node.query(f"INSERT INTO kept.{name} VALUES (1), (2), (3)")
    return f"kept.{name}"


def as_load(node: Node) -> Connection:
    """A connection with the account that loads use."""
    return Connection(node.name, dataclasses.replace(node.endpoint, user="dbcluster_load"))


def running(cluster, name):
    """One variable of each node."""
    return [node.query(f"SELECT @@global.{name}")[0][0] for node in cluster.nodes]
