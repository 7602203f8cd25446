"""``Backup``: the tools of both vendors on real servers, and what is refused."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.clusters.events.event import Stage
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import Backup
from pytest_dbcluster.spec import ClusterSpec


@pytest.mark.parametrize(
    ("event", "fact"),
    [
        (Backup("xtrabackup"), 'it accepts "mariabackup", "mysqldump", "clone"'),
        (Backup("mysqldump", "node4"), "has 3 nodes"),
        (Backup("mysqldump", "first"), '"writer", "other" or a name'),
    ],
)
def test_a_wrong_backup_is_refused(event, fact):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        event.check(ClusterSpec("galera", nodes=3), topology("galera"))
    assert fact in str(caught.value)


def test_a_release_without_the_tool_is_refused(mariadb, mysql):
    """The message names the release, and the tools that it has."""
    for tool, release, has in (
        ("mariabackup", mariadb, True),
        ("mysqldump", mariadb, True),
        ("clone", mariadb, False),
        ("mariabackup", mysql, False),
        ("mysqldump", mysql, True),
        ("clone", mysql, True),
    ):
        refused = pytest.raises(ConfigError, match=f'{release.name} .* does not have it; it has "')
        with contextlib.nullcontext() if has else refused:
            Backup(tool).equip(Stage([release], {}), [])


@pytest.mark.parametrize("tool", ["mariabackup", "mysqldump"])
def test_a_backup_of_a_node_is_complete_and_goes_again(galera2, tool, monkeypatch):
    """Its bytes are counted before it is removed."""
    node = galera2.nodes[1]
    sizes = []
    size = type(node.host).tree_size
    monkeypatch.setattr(type(node.host), "tree_size", lambda *of: sizes.append(size(*of)) or sizes[-1])
    event = Backup(tool)
    event.prepare(galera2)
    happened = event.act(galera2)

    assert (happened.void, happened.node, list(happened.marks)) == ("", "node2", ["complete"])
    assert sizes[0] > 100_000
    assert event.restore(galera2, happened) is None
    with pytest.raises(FileNotFoundError):
        node.host.pull(f"{node.host.directory}/backup")
    galera2.new_errors()


def test_a_clone_of_mysql_is_complete_and_its_plugin_goes_again(briefly, mysql):
    """The variables of the server are those from before."""
    cluster = briefly("standalone", 1, mysql)
    before = cluster.nodes[0].variables().keys()
    event = Backup("clone", "writer")
    event.prepare(cluster)
    happened = event.act(cluster)

    assert (happened.void, list(happened.marks)) == ("", ["complete"])
    assert event.restore(cluster, happened) is None
    assert cluster.nodes[0].variables().keys() == before


def test_a_tool_that_fails_proves_nothing(standalone, monkeypatch):
    """The reason has its last words."""
    [node] = standalone.nodes
    monkeypatch.setattr(node, "password", "wrong")
    happened = Backup("mysqldump", "writer").act(standalone)

    assert "Access denied" in happened.void
