"""Messages on container engines that cannot be used, as users read them."""

from __future__ import annotations

import os
import stat
import types
from pathlib import Path

import docker.errors

from pytest_dbcluster.hosts.provisioners.container import engine, images, provisioner, root_file_system
from pytest_dbcluster.releases import apt
from pytest_dbcluster.releases.catalogue import OFFERS
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from tests.support import golden


def socket_of(mode, group=0):
    """The status of a socket that belongs to root and this group."""
    return types.SimpleNamespace(st_uid=0, st_gid=group, st_mode=stat.S_IFSOCK | mode)


class EngineWithoutImages:
    """A client of docker that knows no image."""

    images = property(lambda self: self)

    def get(self, name):
        """No image has this name."""
        raise docker.errors.ImageNotFound(name)


def test_messages_on_container_engines(tmp_path, monkeypatch):
    """They say which socket was tried, what was seen and what to do next."""
    path, refused = tmp_path / "docker.sock", ConnectionRefusedError(111, "Connection refused")
    url = f"unix://{path}"
    seen = {"there is no socket": engine.refusal(url, refused)}
    path.touch()
    seen["the engine is down"] = engine.refusal(url, refused)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(engine, "_group", lambda number: "docker")
    monkeypatch.setattr(Path, "stat", lambda _: socket_of(0o660, 999))
    seen["a group may use the socket"] = engine.refusal(url, refused)
    monkeypatch.setattr(Path, "stat", lambda _: socket_of(0o600))
    seen["root may use the socket"] = engine.refusal(url, refused)
    monkeypatch.undo()
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    seen["an engine on another machine"] = golden.message_of(engine.socket_url)
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setattr(engine, "socket_paths", lambda: [str(tmp_path / "none.sock")])
    seen["no engine has a socket"] = golden.message_of(engine.socket_url)
    spec = ClusterSpec("galera", nodes=3).with_needs(iops=100)
    seen["a limit is missing"] = golden.message_of(provisioner._limits, spec, "/", frozenset({"iops"}))
    seen["an image cannot be built"] = golden.message_of(images.offer, "mysql:8.2")
    monkeypatch.setenv("PATH", str(tmp_path))
    seen["there is no apt"] = golden.message_of(root_file_system.make, OFFERS[0], [], tmp_path, print)
    lacking = types.SimpleNamespace(name="docker", socket=str(path), url=url, client=EngineWithoutImages())
    monkeypatch.setattr(engine, "knock", lambda url: None)
    seen["there is neither an image nor apt"] = golden.message_of(
        engine.image, lacking, "pytest-dbcluster/mariadb:10.5", pull=None
    )
    for program in apt.PROGRAMS:
        (tmp_path / program).touch(mode=0o755)
    seen["there is no image"] = golden.message_of(engine.image, lacking, "pytest-dbcluster/mariadb:10.5", pull=None)
    seen["mmdebstrap is missing"] = golden.message_of(root_file_system.make, OFFERS[0], [], tmp_path, print)
    release = ReleaseName.parse("mariadb:path")
    seen["a release is installed"] = golden.message_of(provisioner.ContainerProvisioner().supply, release, print)

    golden.compare("container_engine", seen, {tmp_path: "TMP"})
