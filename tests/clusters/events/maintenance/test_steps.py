"""The steps of a rolling event: their text, their specs, and what they refuse."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_dbcluster.clusters.events.event import Stage
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import Restart, SetOptions, Upgrade
from pytest_dbcluster.spec import ClusterSpec

GALERA = ClusterSpec("galera", nodes=3, release="mariadb:10.11")


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Restart(), "restart"),
        (SetOptions(innodb_io_capacity=500, sync_binlog=0), "set innodb_io_capacity=500, sync_binlog=0"),
        (SetOptions({"wsrep_slave_threads": 4}), "set wsrep_slave_threads=4"),
        (Upgrade("mariadb:11.8"), "upgrade to mariadb:11.8"),
    ],
)
def test_a_step_has_a_short_text(step, text):
    """Equal steps are equal values."""
    assert str(step) == text
    assert step in {step}


def test_a_restart_changes_no_spec():
    """The servers stay as they are."""
    assert Restart().stages(GALERA) == ()


def test_options_change_the_spec_once():
    """The spec keeps its name and its other options."""
    [changed] = SetOptions(sync_binlog=0).stages(GALERA.with_options(innodb_io_capacity=500).named("mine"))

    assert dict(changed.options) == {"innodb_io_capacity": "500", "sync_binlog": "0"}
    assert (changed.release, changed.short_name) == (GALERA.release, "mine")


def test_an_upgrade_has_a_stage_for_each_node():
    """The last node is the first one with the new release."""
    texts = [spec.release_text for spec in Upgrade("mariadb:11.8").stages(GALERA)]

    assert texts == ["mariadb:10.11+10.11+11.8", "mariadb:10.11+11.8+11.8", "mariadb:11.8"]


@pytest.mark.parametrize(("before", "after", "refused"), [("10.11.19", "11.8.6", False), ("11.8.6", "10.11.19", True)])
def test_only_a_newer_release_is_an_upgrade(before, after, refused):
    """The message names the node, and both versions."""
    stages = [Stage([SimpleNamespace(product="mariadb", version=one)] * 2, {}) for one in (before, after)]
    if not refused:
        Upgrade("mariadb:11.8").check_stages(*stages)
        return
    with pytest.raises(ConfigError, match=r"node1 has mariadb 11\.8\.6, and mariadb 10\.11\.19 is not newer"):
        Upgrade("mariadb:10.11").check_stages(*stages)


def test_no_options_are_refused():
    """The message has an example."""
    with pytest.raises(ConfigError, match=r"such as SetOptions\(innodb_io_capacity=2000\)"):
        SetOptions()
