"""The messages of the engine: none, another machine's, one that may not be asked, one that cannot be used."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import socket
import socketserver
import sys
import threading
from pathlib import Path

import pytest

from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.container import engine
from tests.support.facts import missing

VERSION = {"Version": "28.1", "Components": [{"Name": "Engine"}]}


class Fake(socketserver.ThreadingUnixStreamServer):
    """An engine that answers two questions, and with an error every other one and an interface that is too old."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, path, answers):
        self.answers = answers
        super().__init__(str(path), Answering)


class Answering(http.server.BaseHTTPRequestHandler):
    """What it says."""

    def address_string(self):
        """Nobody: the peer of a local socket has no address."""
        return ""

    def log_message(self, *words):
        """Say nothing."""

    def do_GET(self):
        """Answer by the last word of the path."""
        found = self.server.answers.get(self.path.rpartition("/")[2])
        oldest = (self.server.answers["version"] or {}).get("MinAPIVersion") or ""
        found = None if self.path.split("/")[1] < f"v{oldest}" else found
        body = json.dumps(found if found is not None else {"message": "no such page"}).encode()
        self.send_response(200 if found is not None else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def listening(tmp_path, monkeypatch):
    """``listening(info={...})``: an engine that says this is the one of DOCKER_HOST; its socket."""
    ends = contextlib.ExitStack()

    def listening(info=None, version=VERSION):
        path = tmp_path / "engine.sock"
        fake = ends.enter_context(Fake(path, {"version": version, "info": {} if info is None else info}))
        threading.Thread(target=fake.serve_forever, args=(0.01,), daemon=True).start()
        ends.callback(fake.shutdown)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        return path

    with ends:
        yield listening


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The places of engines, in a directory of the test's own."""
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "user"))
    monkeypatch.setattr(engine, "DOCKER_SOCKET", str(tmp_path / "docker.sock"))
    monkeypatch.setattr(engine, "SYSTEM_RUN", str(tmp_path / "system"))
    return tmp_path


def test_no_engine_says_where_it_was_looked_for(places):
    """All places, and the ways out."""
    with pytest.raises(ProvisionError) as caught:
        engine.connect()

    sockets = [f"{places}/{name}.sock" for name in ("docker", "user/podman/podman", "system/podman/podman")]
    assert missing(caught.value, "no container engine", "no socket at", ", ".join(sockets), engine.WAYS_OUT) == []
    assert not engine.has_socket()


def test_the_first_socket_that_is_there_is_asked(places):
    """Docker, then the user's Podman, then the system's."""
    for place in reversed(engine.socket_paths()):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).touch()

        assert engine.socket_url() == f"unix://{place}"


@pytest.mark.parametrize("given", ["tcp://10.0.0.1:2375", "ssh://somebody@elsewhere"])
def test_an_engine_of_another_machine_is_refused(monkeypatch, given):
    """Its containers would not see this machine's directories."""
    monkeypatch.setenv("DOCKER_HOST", given)

    with pytest.raises(Unsupported, match=rf"DOCKER_HOST={given} is an engine on another machine; .* unix://PATH"):
        engine.connect()


def test_a_socket_that_is_not_there_is_named(tmp_path, monkeypatch):
    """As DOCKER_HOST says it."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere")

    with pytest.raises(
        ProvisionError, match=rf"^no container engine: {tmp_path}/nowhere does not exist\. What you can do: "
    ):
        engine.connect()


def test_a_socket_that_nobody_listens_on_is_told_apart(tmp_path, monkeypatch):
    """A daemon that was killed leaves its socket."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/left")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/left")

    with pytest.raises(ProvisionError, match=r"/left does not answer: .*Connection refused\. What you can do: "):
        engine.connect()


@pytest.mark.parametrize(
    ("mode", "group", "way"),
    [
        (0o660, 1, r"root:daemon\): join that group \(`usermod -aG daemon USER`, then log in again\), or run as root"),
        (0o600, 1, r"root:daemon\): run as that user, or run as root"),
        (0o660, 54321, r"root:54321\): join that group \(`usermod -aG 54321 USER`"),
    ],
)
def test_a_socket_without_permission_says_whose_it_is(tmp_path, monkeypatch, mode, group, way):
    """And how to be allowed to ask: the group helps where it may write."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    place = tmp_path / "docker.sock"
    place.touch()
    place.chmod(mode)
    os.chown(place, 0, group)
    monkeypatch.setattr(engine.os, "access", lambda path, mode: False)

    with pytest.raises(ProvisionError, match=rf"^no permission to use .*/docker\.sock \(user 0, the socket .* {way}"):
        raise ProvisionError(engine.refusal(f"unix://{place}", PermissionError(13, "Permission denied")))


def test_an_engine_is_known_by_what_it_says(listening):
    """Its name, its version and its socket; Podman names itself among its components."""
    place = listening()
    with contextlib.closing(engine.connect()) as docker:
        assert (docker.name, docker.version, docker.socket) == ("docker", "28.1", place)


def test_podman_is_known_by_its_components(listening):
    """Its socket speaks as Docker's does."""
    listening(version={"Version": "4.3.1", "Components": [{"Name": "Podman Engine"}]})
    with contextlib.closing(engine.connect()) as podman:
        assert (podman.name, podman.version) == ("podman", "4.3.1")


@pytest.mark.parametrize(("oldest", "used"), [("1.12", "1.41"), ("1.44", "1.44"), (None, "1.41")])
def test_an_engine_that_refuses_our_interface_is_asked_for_its_oldest(listening, oldest, used):
    """Docker 29 refuses versions before 1.44. Other engines accept older ones, or do not say what they accept."""
    listening(version=VERSION | {"MinAPIVersion": oldest})
    with contextlib.closing(engine.connect()) as made:
        assert (made.api, made.client.api.api_version, made.arguments["version"]) == (used, used, used)


def test_a_rootless_engine_is_unsupported(listening):
    """Its networks are in a namespace of the user's, out of this machine's reach."""
    place = listening(info={"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]})

    with pytest.raises(
        Unsupported, match=rf"the container engine at unix://{place} runs rootless, so we cannot reach its networks"
    ):
        engine.connect()


def test_what_is_no_engine_does_not_answer(listening):
    """A socket on which somebody else listens."""
    listening(info=None, version=None)

    with pytest.raises(ProvisionError, match=r"does not answer: 404 .*no such page"):
        engine.connect()


def test_without_the_package_the_extra_is_named(listening, monkeypatch):
    """The core is installed without it."""
    listening()
    monkeypatch.setitem(sys.modules, "docker", None)

    with pytest.raises(Unsupported, match=r"pip install 'pytest-dbcluster\[container\]'"):
        engine.connect()


@pytest.mark.parametrize(("said", "disabled"), [(None, True), ("true", True), ("", True), ("false", False)])
def test_ryuk_is_off_unless_asked_for(monkeypatch, said, disabled):
    """It would be one more image to pull, and ends what one worker of several has started."""
    config = pytest.importorskip("testcontainers.core.config").testcontainers_config
    monkeypatch.setattr(config, "ryuk_disabled", False)
    monkeypatch.delenv("TESTCONTAINERS_RYUK_DISABLED", raising=False)
    if said is not None:
        monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", said)

    engine._configure_testcontainers()

    assert config.ryuk_disabled is disabled


def test_a_limit_that_the_engine_would_drop_is_named():
    """Docker starts a container without a limit that its kernel lacks, and says no more than a warning."""
    able = {"MemoryLimit": True, "CpuCfsQuota": True, "Warnings": None}

    assert engine.ignored_limits(able) == frozenset()
    assert engine.ignored_limits({**able, "MemoryLimit": False}) == {"memory"}
    assert engine.ignored_limits({**able, "CpuCfsQuota": False}) == {"cores"}
    warning = "WARNING: No blkio throttle.write_iops_device support"
    assert engine.ignored_limits({**able, "Warnings": [warning]}) == {"iops"}
