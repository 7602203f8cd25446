"""Which versions the nodes of one cluster may have."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.dialects import release_mixes
from pytest_dbcluster.clusters.dialects.release_mixes import NodeVersion
from pytest_dbcluster.clusters.topology import topology


def nodes(text):
    """The nodes of ``mariadb 10.11.19, 11.8``; each without a product has that of the one before it."""
    found, product = [], ""
    for part in text.split(", "):
        *names, version = part.split()
        product = names[0] if names else product
        found.append(NodeVersion(product, tuple(map(int, version.split(".")))))
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mariadb 10.11.19, 11.8.6", ""),
        ("mariadb 10.5, 10.11, 11.8", ""),
        ("mariadb 10.11.19, 10.11.3", ""),
        ("mariadb 11.8, 10.11", "node2 (mariadb 10.11) is older than its source node1 (mariadb 11.8): a replica has"),
        ("mariadb 10.11, 11.8, 10.5", "node3 (mariadb 10.5) is older than its source node1 (mariadb 10.11)"),
        ("mysql 8.0.36, 8.4.3", ""),
        ("mysql 8.4, 9.7", ""),
        ("mysql 8.4, 9.2", ""),
        ("mysql 9.2, 9.7", ""),
        ("mysql 8.0.36, 9.7.1", "mysql 9.7.1 is more than one step after mysql 8.0.36: mysql 8.4 lies between"),
        ("mysql 9.2, 9.8", "mysql 9.8 is more than one step after mysql 9.2: mysql 9.7 lies between"),
        ("percona 8.0, 9.7", "percona 9.7 is more than one step after percona 8.0: percona 8.4 lies between"),
        ("mariadb 10.11, mysql 10.12", "the nodes of a cluster have one product, not mariadb and mysql"),
        ("mysql 8.4, percona 8.4", "one product, not mysql and percona"),
    ],
)
def test_a_replica_has_the_version_of_its_source_or_a_newer_one(text, words):
    """One step of MySQL's upgrade paths at most, and of one product."""
    assert_says(release_mixes.replicas(nodes(text)), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mysql 8.0.34, 8.0.36", ""),
        ("mysql 8.0.36, 8.0.34", "node2 (mysql 8.0.34) is older than node1 (mysql 8.0.36): a member does not join"),
        ("mysql 8.0, 8.0.34", ""),
        ("mysql 8.4.6, 8.4.2", ""),
        ("mysql 8.4.6, 9.7.1, 8.4.2", ""),
        ("mysql 9.7, 8.4", "node2 (mysql 8.4) is older than node1 (mysql 9.7)"),
        ("mysql 8.0.36, 9.7", "mysql 9.7 is more than one step after mysql 8.0.36"),
    ],
)
def test_a_member_does_not_join_a_newer_group(text, words):
    """The first node is in the group before all others. From 8.4 on patch versions do not count."""
    assert_says(release_mixes.group(nodes(text)), words)


def test_newer_members_of_a_multi_primary_group_accept_no_writes():
    """So such a group has one version."""
    assert "accept no writes" in release_mixes.group(nodes("mysql 8.4.6, 9.7.1"), multi_primary=True)
    assert release_mixes.group(nodes("mysql 8.4.6, 8.4.2"), multi_primary=True) == ""
    asked = {"group_replication_single_primary_mode": "OFF"}
    group = topology("group_replication")

    assert "accept no writes" in group.refuses_mix(nodes("mysql 8.4.6, 9.7.1"), asked)
    assert group.refuses_mix(nodes("mysql 8.4.6, 9.7.1"), {}) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mariadb 10.11, 11.4", ""),
        ("mariadb 11.8, 11.4, 11.8", ""),
        ("mariadb 10.11.19, 10.11.3", ""),
        (
            "mariadb 11.8.6, 10.11.19",
            "mariadb 10.11.19 and mariadb 11.8.6 in one Galera cluster: the vendor validates neighbouring series only, "
            "and 11.4 lies between",
        ),
        ("mariadb 10.5, 11.4", "and 10.6, 10.11 lies between"),
    ],
)
def test_galera_names_the_series_between_its_members(text, words):
    """It is a remark: the members do join. Products are not mixed."""
    assert release_mixes.galera(nodes(text)) == ""
    assert_says(release_mixes.galera_remark(nodes(text)), words)
    assert_says(release_mixes.galera(nodes("mariadb 10.11, pxc 8.4")), "one product, not mariadb and pxc")


@pytest.mark.parametrize("name", ["standalone", "drbd"])
def test_other_topologies_have_one_release(name):
    """Both hosts of a pair run the server on the same data."""
    assert (
        topology(name).refuses_mix(nodes("mariadb 10.11, 11.8"), {}) == "all nodes of such a cluster have one release"
    )


def assert_says(text, words):
    """The text begins with, or has, these words; empty words stand for no text."""
    assert words in text if words else text == ""
