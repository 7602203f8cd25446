"""The anchor on a real server."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.testbed import anchor
from tests.support.facts import missing


def test_the_anchor_is_the_speed_of_a_pinned_server(monkeypatch):
    """Its operations/s; the server has the pinned options and is gone afterwards."""
    monkeypatch.setattr(anchor, "SECONDS", 0.0)
    monkeypatch.setattr(anchor, "LEAST", 1)
    said = []
    speed = anchor.measure("local", {}, said.append)

    assert speed > 0
    (started,) = [line for line in said if line.startswith("starting ")]
    options = "innodb_buffer_pool_size=128M, innodb_flush_log_at_trx_commit=2, sync_binlog=0"
    assert missing(started, "1 x mariadb:10.11", "standalone") == []
    assert started.endswith(f" with {options}")


def test_a_provisioner_that_is_not_there_is_an_error():
    """The run reports it, and goes on without an anchor."""
    with pytest.raises(ConfigError):
        anchor.measure("nowhere", {}, print)
