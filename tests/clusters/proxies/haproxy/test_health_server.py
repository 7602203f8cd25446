"""The status port: what it answers for which state of a node."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxies.haproxy import health_server
from pytest_dbcluster.clusters.proxies.haproxy.health_server import HealthSettings, State, Watched
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.topologies.galera import SYNCED, Galera
from pytest_dbcluster.system import ports
from tests.support.facts import missing

NODE = Watched("node1", "127.0.0.1", 3306, 9200, Health("SHOW ME", reader=SYNCED, writer=SYNCED))
WELL = {"wsrep_ready": "ON", "wsrep_cluster_status": "Primary", "wsrep_local_state_comment": "Synced"}
# A member of a group: every one that is ONLINE takes reads, and the primary takes writes.
MEMBER = Watched(
    "node1",
    "127.0.0.1",
    3306,
    9200,
    Health("SHOW ME", reader={"state": "ONLINE"}, writer={"state": "ONLINE", "role": "PRIMARY"}),
)


class Server:
    """A server that says what it was told to say, and counts how often it was asked."""

    def __init__(self, status: Mapping[str, str] | None) -> None:
        self.status = status
        self.asked: list[str] = []

    def pairs(self, statement: str, seconds: float) -> dict[str, str]:
        """The status, or an error where there is none."""
        self.asked.append(statement)
        if self.status is None:
            raise SQLError("node1", statement, 2003, "Can't connect\nto the server")
        return dict(self.status)


@pytest.fixture
def held() -> Iterator[ports.PortLocks]:
    """Ports that nobody else takes."""
    locks = ports.PortLocks()
    yield locks
    locks.close()


def get(port: int, path: str = "/") -> tuple[int, str]:
    """What the status port answers there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_synced_node_is_well():
    """A node that is ready, primary and Synced may take traffic of both kinds."""
    state = State(NODE, Server(WELL))

    assert state.now("reader") == state.now("writer") == (True, "node1: ON, Primary, Synced")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wsrep_ready", "OFF"),
        ("wsrep_cluster_status", "non-Primary"),
        ("wsrep_local_state_comment", "Donor/Desynced"),
        ("wsrep_local_state_comment", "Joined"),
    ],
)
def test_a_node_that_lacks_one_of_them_is_not(name, value):
    """The line names what is wrong, and what was wanted."""
    well, line = State(NODE, Server({**WELL, name: value})).now()

    assert not well
    assert line == f"node1: {name} is {value!r}, wanted {SYNCED[name]!r}"


def test_a_donor_is_well_if_it_may_be():
    """The setting accepts one more value of one status; every other condition stays."""
    node = dataclasses.replace(NODE, also=Galera.donor)
    donor = {**WELL, "wsrep_local_state_comment": "Donor/Desynced"}

    assert State(node, Server(donor)).now()[0]
    assert State(node, Server(WELL)).now()[0]
    assert not State(node, Server({**donor, "wsrep_ready": "OFF"})).now()[0]
    assert not State(node, Server({**WELL, "wsrep_local_state_comment": "Joined"})).now()[0]
    assert not State(node, Server({"wsrep_ready": "ON", "wsrep_cluster_status": "Primary"})).now()[0]
    assert not State(NODE, Server(donor)).now()[0]


@pytest.mark.parametrize(
    ("role", "reader", "writer"),
    [
        ("PRIMARY", (True, "node1: ONLINE"), (True, "node1: ONLINE, PRIMARY")),
        ("SECONDARY", (True, "node1: ONLINE"), (False, "node1: role is 'SECONDARY', wanted 'PRIMARY'")),
    ],
)
def test_a_role_is_asked_for_by_itself(role, reader, writer):
    """A node may take reads and no writes; the server is asked once for both."""
    server = Server({"state": "ONLINE", "role": role})
    state = State(MEMBER, server)

    assert (state.now("reader"), state.now("writer")) == (reader, writer)
    assert server.asked == ["SHOW ME"]


def test_a_drained_node_accepts_no_traffic(tmp_path):
    """The names in a file decide at once; a missing file has none."""
    drained = tmp_path / "drained"
    state = State(NODE, Server(WELL), str(drained))
    healthy = state.now()
    drained.write_text("node2\nnode1")
    one, other = state.now(), state.now("writer")
    drained.write_text("node11")

    assert healthy == state.now() == (True, "node1: ON, Primary, Synced")
    assert one == other == (False, "node1 is drained")


def test_a_server_that_does_not_answer_is_not_well():
    """The error becomes the one line of the answer, whatever it was asked for."""
    state = State(NODE, Server(None))

    assert state.now("reader") == state.now("writer")
    well, line = state.now()
    assert not well
    assert "2003 Can't connect to the server" in line


def test_a_server_without_wsrep_is_well_when_it_answers():
    """Nothing is wanted of a standalone server beyond an answer."""
    standalone = Watched("node1", "127.0.0.1", 3306, 9200)

    assert State(standalone, Server({"uptime": "7"})).now() == (True, "node1: answers")


def test_the_server_is_asked_once_for_many_questions(monkeypatch):
    """Within FRESH seconds the answer is repeated, so curious clients cost the server nothing."""
    monkeypatch.setattr(health_server, "FRESH", 60)
    server = Server(WELL)
    state = State(NODE, server)
    answers = {state.now() for _ in range(20)}

    assert answers == {(True, "node1: ON, Primary, Synced")}
    assert len(server.asked) == 1


def test_an_old_answer_is_not_repeated(monkeypatch):
    """A state that has changed is seen by the next check."""
    monkeypatch.setattr(health_server, "FRESH", 0)
    server = Server(WELL)
    state = State(NODE, server)
    state.now()
    server.status = None

    assert state.now()[0] is False


def test_a_node_that_does_not_answer_keeps_nobody_waiting_for_long(monkeypatch):
    """Everybody who asks meanwhile is told so after PATIENCE seconds, side by side; later answers count again."""
    monkeypatch.setattr(health_server, "PATIENCE", 0.3)
    asked, answer = threading.Event(), threading.Event()

    class Silent(Server):
        def pairs(self, statement, seconds):
            asked.set()
            assert answer.wait(60)
            return super().pairs(statement, seconds)

    state = State(NODE, Silent(WELL))
    with concurrent.futures.ThreadPoolExecutor(9) as threads:
        first = threads.submit(state.now)
        assert asked.wait(60)
        others = [threads.submit(state.now, "writer") for _ in range(8)]
        assert {other.result(60) for other in others} == {(False, "node1 does not answer")}
        answer.set()
        assert first.result(60) == (True, "node1: ON, Primary, Synced")
    assert state.now("writer")[0]


def test_settings_survive_their_file():
    """What is written is what is read."""
    nodes = [NODE, dataclasses.replace(NODE, also=Galera.donor)]
    settings = HealthSettings("127.0.0.1", "dbcluster", "s3cret", nodes, "/run/drained")

    assert HealthSettings.read(settings.text()) == settings


def test_the_password_is_in_no_repr():
    """Settings that land in a log do not carry the password with them."""
    assert "s3cret" not in repr(HealthSettings("127.0.0.1", "dbcluster", "s3cret", [NODE]))


def test_a_node_that_is_down_is_answered_with_503(held):
    """Over HTTP: status 503, and one line of text that says why."""
    node = Watched("node1", "127.0.0.1", held.take(), held.take(), NODE.health)
    (server,) = health_server.serve(HealthSettings("127.0.0.1", "dbcluster", "s3cret", [node]))
    try:
        code, line = get(node.status_port)
    finally:
        server.shutdown()
        server.server_close()

    assert code == 503
    assert "node1" in line
    assert line.count("\n") == 1
    assert "s3cret" not in line


def test_a_node_that_is_well_is_answered_with_200(held, monkeypatch):
    """Over HTTP: status 200 and the state."""
    monkeypatch.setattr(health_server, "Connection", lambda *_, **__: Server(WELL))
    node = Watched("node1", "127.0.0.1", held.take(), held.take(), NODE.health)
    (server,) = health_server.serve(HealthSettings("127.0.0.1", "dbcluster", "s3cret", [node]))
    try:
        answer = get(node.status_port)
    finally:
        server.shutdown()
        server.server_close()

    assert answer == (200, "node1: ON, Primary, Synced\n")


def test_each_role_has_a_path(held, monkeypatch):
    """/ answers for reads, /writer for writes, and any other path says which there are."""
    monkeypatch.setattr(health_server, "Connection", lambda *_, **__: Server({"state": "ONLINE", "role": "SECONDARY"}))
    node = Watched("node1", "127.0.0.1", held.take(), held.take(), MEMBER.health)
    (server,) = health_server.serve(HealthSettings("127.0.0.1", "dbcluster", "s3cret", [node]))
    try:
        answers = [get(node.status_port, path) for path in ("/", "/writer", "/wirter")]
    finally:
        server.shutdown()
        server.server_close()

    *known, (status, line) = answers
    assert known == [(200, "node1: ONLINE\n"), (503, "node1: role is 'SECONDARY', wanted 'PRIMARY'\n")]
    assert (status, missing(line, "no answer at /wirter", "at / and /writer\n")) == (404, [])


@pytest.fixture
def well(held, monkeypatch):
    """The status port of a node that is well."""
    monkeypatch.setattr(health_server, "Connection", lambda *_, **__: Server(WELL))
    node = Watched("node1", "127.0.0.1", held.take(), held.take(), NODE.health)
    (server,) = health_server.serve(HealthSettings("127.0.0.1", "dbcluster", "s3cret", [node]))
    yield node.status_port
    server.shutdown()
    server.server_close()


def test_silent_clients_keep_nobody_waiting(well, monkeypatch):
    """With 300 connections open that send nothing, a check is answered at once; the oldest of them are dropped."""
    monkeypatch.setattr(health_server, "PATIENCE", 600.0)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", well), timeout=10)) for _ in range(300)]

        assert get(well) == (200, "node1: ON, Primary, Synced\n")
        assert silent[0].recv(1) == b""


def test_many_checks_at_once_are_all_answered(well, monkeypatch):
    """A hundred requests, sent before the first answer is read, have a hundred answers."""
    monkeypatch.setattr(health_server, "PATIENCE", 600.0)
    with contextlib.ExitStack() as stack:
        asking = [stack.enter_context(socket.create_connection(("127.0.0.1", well), timeout=30)) for _ in range(100)]
        for connection in asking:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answers = [connection.makefile("rb").read() for connection in asking]

    assert all(answer.startswith(b"HTTP/1.0 200") for answer in answers)


def test_a_client_that_never_ends_its_question_is_dropped(well, monkeypatch):
    """Who sends one byte after the other has PATIENCE seconds for all of them, not for each."""
    monkeypatch.setattr(health_server, "PATIENCE", 0.5)
    with socket.create_connection(("127.0.0.1", well), timeout=0.1) as slow:
        slow.sendall(b"GET / HTTP/1.0\r\nX: ")

        def dropped():
            with contextlib.suppress(TimeoutError):
                slow.sendall(b"x")
                return [] if slow.recv(1) == b"" else ["it was answered"]
            return ["it is still served"]

        with contextlib.suppress(ConnectionError):
            wait.until(dropped, "the end of the connection", seconds=30)


def test_a_taken_port_ends_the_process_with_its_name(tmp_path, held):
    """The process ends with 1 and says which port it could not have."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        file = tmp_path / "status_port.cfg"
        file.write_text(
            HealthSettings("127.0.0.1", "u", "p", [Watched("node1", "127.0.0.1", held.take(), port)]).text()
        )
        done = subprocess.run(
            [sys.executable, "-P", health_server.__file__, str(file)],
            capture_output=True,
            text=True,
            timeout=30,
            cwd=Path(health_server.__file__).parent.parent,
            check=False,
        )

    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert missing(line, "status port: ", "cannot listen", f"127.0.0.1:{port}: Address already in use") == []


def test_the_settings_are_json():
    """The file is read by another process, so its form is fixed."""
    said = json.loads(HealthSettings("127.0.0.1", "u", "p", [NODE]).text())

    assert said["nodes"][0]["status_port"] == 9200
