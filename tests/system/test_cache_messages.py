"""Messages on the cache, locks and ports, as users read them."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_dbcluster.spec import HostNeeds
from pytest_dbcluster.system import cache, machine_lock, ports, shared_directory
from pytest_dbcluster.system.cgroups import Limits
from tests.support import golden


def denied(*_, **__):
    """What the system says to a user without permission."""
    raise PermissionError(13, "Permission denied", "FILE")


def damage(entry, lines):
    """Set a damaged entry aside."""
    entry.mkdir(parents=True)
    (entry / "manifest.json").write_bytes(b"{")
    assert cache.set_aside_if_damaged(entry, "manifest.json", lines.append)
    return lines[0].replace(next(entry.parent.glob(".damaged-*")).name, "ASIDE")


def test_messages_on_the_cache_and_on_locks(tmp_path, monkeypatch):
    """They say what was tried, where, what was seen and what to do next."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    entry = cache.releases() / "haproxy-amd64"
    seen = {"an entry is damaged": damage(entry, [])}
    entry.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", denied)
        seen["an entry cannot be removed"] = golden.message_of(lambda: cache.discard(entry))
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", denied)
        rest = golden.message_of(lambda: cache.discard(entry))
        seen["an entry is removed in part"] = rest.replace(next(entry.parent.glob(".removed-*")).name, "REMOVED")
    (cache.root() / "locks" / "haproxy.lock").mkdir(parents=True)
    seen["a lock is a directory"] = golden.message_of(lambda: cache.lock("haproxy", progress=print).__enter__())
    monkeypatch.setattr(cache.owned_files, "distrust_reason", lambda directory: "DIRECTORY belongs to user mallory")
    seen["another user could change programs"] = golden.message_of(lambda: cache.require_trusted(entry))
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    seen["the cache cannot be made"] = golden.message_of(lambda: cache.lock("haproxy", progress=print).__enter__())
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    seen["no port is free"] = golden.message_of(ports.PortLocks("dbcluster-golden").take)
    (tmp_path / "link").symlink_to(tmp_path)
    lock = machine_lock.MachineLock(tmp_path / "link")
    seen["the lock directory is a link"] = golden.message_of(lambda: lock.turn(machine_lock.BUILDING).__enter__())
    seen["a lock is held for too long"] = str(shared_directory.held_error("the machine: pid 4711 (alice)"))
    limits = Limits({}, {"cores": "no tree", "iops": "no disk"})
    seen["a limit is not possible"] = golden.message_of(
        lambda: limits.group("4f", "1-one-node1", HostNeeds(cores=1, iops=5))
    )

    golden.compare("cache_and_locks", seen, {tmp_path: "TMP"})
