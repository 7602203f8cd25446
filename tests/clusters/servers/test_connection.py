"""Control connections to a server that this process reaches by sockets of somebody else."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import socket
import ssl
import threading
import time

import pytest
from mysql.connector.protocol import MySQLProtocol

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers import connection as connection_module
from pytest_dbcluster.clusters.servers.connection import AppendingConnection, Connection, Endpoint, NoAnswer, SQLError
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import through_socket
from pytest_dbcluster.releases import find
from pytest_dbcluster.system import processes

NOWHERE = "192.0.2.1"  # an address for documents (RFC 5737)


def elsewhere(endpoint, asked):
    """The endpoint at an address that leads nowhere; its sockets lead to the server, and are noted in ``asked``."""

    def connects(address, port, seconds):
        asked.append((address, port, seconds))
        return socket.create_connection((endpoint.host, port), seconds)

    return dataclasses.replace(endpoint, host=NOWHERE, connects=connects)


@contextlib.contextmanager
def tunnel(path, endpoint, *, spoils=False):
    """A UNIX socket that leads to an endpoint, once. spoils: what the server says after its greeting arrives wrong."""

    def carry(source, target, spoil=None):
        with contextlib.suppress(OSError):
            while data := source.recv(2**16):
                target.sendall(spoil(data) if spoil else data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    said = []

    def spoil(data):
        said.append(data)
        return data if len(said) == 1 else b"x" * len(data)

    def serve():
        with listening.accept()[0] as near, socket.create_connection((endpoint.host, endpoint.port)) as far:
            there = threading.Thread(target=carry, args=(near, far))
            there.start()
            carry(far, near, spoil if spoils else None)
            there.join()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        serving = threading.Thread(target=serve)
        serving.start()
        yield path
        serving.join()


def test_a_connection_takes_the_socket_that_it_is_given(standalone):
    """With the timeout of the connection; a closed connection asks for another socket."""
    asked = []
    endpoint = elsewhere(standalone.nodes[0].endpoint, asked)
    connection = Connection("node1", endpoint, seconds=7)

    assert connection.query("SELECT 1 + 1") == [(2,)]
    assert connection.query("SELECT 'words'") == [("words",)]
    connection.close()
    assert connection.query("SELECT 3") == [(3,)]
    connection.close()
    assert asked == [(NOWHERE, endpoint.port, 7)] * 2


def test_a_large_result_and_a_large_statement_pass(standalone):
    """Whole, in both directions."""
    connection = Connection("node1", elsewhere(standalone.nodes[0].endpoint, []))
    words = "x" * 1_000_000

    assert connection.query(f"SELECT '{words}', LENGTH('{words}')") == [(words, len(words))]
    connection.close()


def test_rows_of_texts_are_whole(standalone):
    """NULL, an empty text, letters of several bytes, and more rows than arrive at once."""
    connection = Connection("node1", elsewhere(standalone.nodes[0].endpoint, []))

    assert connection.query("SELECT 'ä' UNION ALL SELECT '' UNION ALL SELECT NULL") == [("ä",), ("",), (None,)]
    many = connection.query("SELECT CONCAT('row ', seq), REPEAT('x', seq % 300) FROM mysql.seq_1_to_20000")
    assert many == [(f"row {number}", "x" * (number % 300)) for number in range(1, 20001)]
    connection.close()


class Counted(socket.socket):
    """A socket that counts how often it sends."""

    sent = 0

    def sendall(self, data, *flags):
        """As any other."""
        Counted.sent += 1
        super().sendall(data, *flags)


def counted(address, port, seconds):
    """A connected socket of that kind."""
    made = Counted()
    made.settimeout(seconds)
    made.connect((address, port))
    return made


def test_a_statement_is_one_exchange_and_so_is_a_batch(standalone):
    """The driver would ask before each statement whether the server is there: another round trip."""
    connection = Connection("node1", dataclasses.replace(standalone.nodes[0].endpoint, connects=counted))
    connection.query("SELECT 1")
    before = Counted.sent
    rows = connection.query("SELECT 2")
    batch = connection.batch(["SET @n = 3", "SELECT @n, 'a;b'", "SHOW STATUS LIKE 'no such'", "SELECT 4"])

    assert (rows, batch) == ([(2,)], [[], [(3, "a;b")], [], [(4,)]])
    assert Counted.sent - before == 2
    connection.close()


def test_the_first_statement_of_a_batch_that_fails_ends_it(standalone):
    """Those before it have been run, and the connection stays usable."""
    connection = Connection("node1", standalone.nodes[0].endpoint)
    with pytest.raises(SQLError, match="1193 Unknown system variable 'nonsense'"):
        connection.batch(["SET @n = 1", "SELECT @@nonsense", "SET @n = 2"])

    assert connection.query("SELECT @n") == [(1,)]
    connection.close()


def test_an_answer_that_cannot_be_read_is_a_lost_connection(standalone, monkeypatch):
    """The next statement has a new connection, so it does not get the rest of this answer."""
    sql = Connection("node1", standalone.nodes[0].endpoint)
    assert sql.query("SELECT 1") == [(1,)]
    with monkeypatch.context() as patched:
        patched.setattr(MySQLProtocol, "parse_column", lambda *_: bytearray()[0])
        with pytest.raises(SQLError, match="2027 malformed answer: ") as raised:
            sql.batch(["SELECT 2", "SELECT 3"])

    assert raised.value.lost
    assert sql.query("SELECT 4") == [(4,)]
    sql.close()


def test_each_statement_of_a_batch_has_the_limit_of_the_batch(standalone):
    """The limit of the attempt to connect says nothing about them, whether they are first or follow others."""
    endpoint = standalone.nodes[0].endpoint
    with contextlib.closing(Connection("patient", endpoint, seconds=1)) as connection:
        patient = connection.batch(["SELECT SLEEP(1.5)", "SELECT SLEEP(1.5)"])
        began = time.monotonic()
        with pytest.raises(NoAnswer) as caught:
            connection.batch(["SELECT 1", "SELECT SLEEP(600)"], 2)

    assert patient == [[(0,)], [(0,)]]
    assert "within 2 s" in str(caught.value)
    assert 2 <= time.monotonic() - began < 60


def test_statements_that_follow_all_others_take_no_exchange_of_their_own(standalone, monkeypatch):
    """The caller gets the answers that it asked for; those of the others lie beside, each from the last exchange."""
    connection = Connection("node1", standalone.nodes[0].endpoint)
    along = AppendingConnection(
        connection, ["SELECT 7", "SET @followed = COALESCE(@followed, 0) + 1", "SELECT @followed"]
    )
    exchanges = []
    results = connection.results
    monkeypatch.setattr(connection, "results", lambda asked, seconds: exchanges.append(asked) or results(asked))
    with contextlib.closing(along):
        assert along.answers is None

        assert along.records("SELECT 1 AS one, NULL AS none") == [{"one": "1", "none": ""}]
        assert along.answers == [[(7,)], [], [(1,)]]
        assert along.batch(["SELECT 2", "SET @x = 3", "SELECT @x"]) == [[(2,)], [], [(3,)]]
        assert along.answers == [[(7,)], [], [(2,)]]
        assert len(exchanges) == 2


@pytest.fixture(scope="module")
def encrypting(bring, mysql):
    """A server of MySQL."""
    made = bring("standalone", 1, mysql)
    yield made
    made.close()


def test_encryption_works_over_such_a_socket(encrypting):
    """MySQL's control connections are encrypted until the server knows the password."""
    (node,) = encrypting.nodes
    connection = Connection("node1", elsewhere(node.endpoint, []))

    assert node.endpoint.tls
    assert connection.pairs("SHOW STATUS LIKE 'Ssl_cipher'")["ssl_cipher"] != ""
    connection.close()


def test_encryption_works_over_a_socket_of_this_machine(encrypting, tmp_path):
    """A UNIX socket that leads to a server on another machine; the connector by itself refuses encryption there."""
    (node,) = encrypting.nodes
    with tunnel(tmp_path / "to-node1", node.endpoint) as path:
        endpoint = dataclasses.replace(node.endpoint, host=NOWHERE, connects=through_socket(str(path)))
        connection = Connection("node1", endpoint)

        assert connection.pairs("SHOW STATUS LIKE 'Ssl_cipher'")["ssl_cipher"] != ""
        connection.close()


def test_encryption_reads_no_certificates_of_this_machine(encrypting, monkeypatch):
    """They take longer to read than a connection takes, and none is verified."""
    node, read = encrypting.nodes[0], []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: read.append("certificates"))
    for name in ("one", "another"):
        with contextlib.closing(Connection(name, node.endpoint)) as connection:
            assert connection.query("SHOW STATUS LIKE 'Ssl_cipher'")[0][1] != ""

    assert read == []


def test_encryption_that_fails_is_a_lost_connection(encrypting, tmp_path):
    """With the reason; the statement was not refused by a server."""
    (node,) = encrypting.nodes
    with tunnel(tmp_path / "to-node1", node.endpoint, spoils=True) as path:
        endpoint = dataclasses.replace(node.endpoint, host=NOWHERE, connects=through_socket(str(path)))
        with pytest.raises(SQLError, match=r"^node1: 'SELECT 1' failed: 2055 .*192\.0\.2\.1") as caught:
            Connection("node1", endpoint).query("SELECT 1")

    assert caught.value.lost


def test_a_socket_that_cannot_be_made_is_a_lost_connection():
    """With the reason; the statement was not refused by a server."""

    def refused(address, port, seconds):
        raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(SQLError, match=r"^node1: 'SELECT 1' failed: 2003 .*192\.0\.2\.1:5.*Connection ref") as caught:
        Connection("node1", Endpoint(NOWHERE, 5, "root", "", connects=refused)).query("SELECT 1")

    assert caught.value.lost


@pytest.mark.parametrize("release", ["mariadb:10.11", "mysql:9.7"])
def test_limits_of_a_users_file_do_not_end_a_control_connection(briefly, release):
    """A production my.cnf may end connections that are idle for a minute, and long statements."""
    limit = "max_execution_time" if release.startswith("mysql") else "max_statement_time"
    cluster = briefly("standalone", 1, find.find(release), wait_timeout="1", **{limit: "1"})
    with contextlib.closing(Connection("node1", cluster.nodes[0].endpoint)) as connection:
        before = connection.query("SELECT CONNECTION_ID(), @@wait_timeout, @@global.wait_timeout")
        time.sleep(2)

        assert connection.query("SELECT CONNECTION_ID(), @@wait_timeout, @@global.wait_timeout") == before
        assert before[0][1:] == (2147483, 1)
        assert connection.query("SELECT SLEEP(1.5)") == [(0,)]
    assert SQLError("node1", "SELECT 1", 4031, "idle").lost


@contextlib.contextmanager
def stopped(node):
    """The server of a node is stopped by a signal, and continues afterwards."""
    node.process.signal(signal.SIGSTOP)
    try:
        wait.until(lambda: [] if processes.is_stopped(node.process.pid) else ["it runs"], "its stop", seconds=60)
        yield
    finally:
        node.process.signal(signal.SIGCONT)


def test_a_stopped_server_ends_a_statement_within_its_limit(standalone):
    """The error names the node, the kind of the statement and the limit; the connection opens again afterwards."""
    (node,) = standalone.nodes
    with contextlib.closing(Connection("node1", node.endpoint)) as connection:
        connection.query("SELECT 1")
        began = time.monotonic()
        with stopped(node), pytest.raises(NoAnswer) as caught:
            connection.query("CHECKSUM TABLE mysql.plugin", 2)

        assert time.monotonic() - began < 30
        assert str(caught.value).startswith("node1 did not answer a CHECKSUM statement within 2 s")
        assert caught.value.lost
        assert connection.query("SELECT 2") == [(2,)]


def test_a_stopped_server_ends_the_attempt_to_connect(standalone):
    """The kernel accepts connections for it; its greeting never comes."""
    (node,) = standalone.nodes
    connection = Connection("node1", node.endpoint, seconds=1)
    with stopped(node), pytest.raises(NoAnswer, match=r"^node1 did not answer a SELECT statement within 1 s"):
        connection.query("SELECT 1")

    node.query("SELECT 1")  # it has no limit of a second
    assert connection.query("SELECT 2") == [(2,)]
    connection.close()


def test_a_statement_too_large_for_a_stopped_server_ends(standalone, monkeypatch):
    """The server does not take all of it; without a limit the client would write for ever."""
    monkeypatch.setattr(connection_module, "WRITE_SECONDS", 1.0)
    (node,) = standalone.nodes
    with contextlib.closing(Connection("node1", node.endpoint)) as connection:
        connection.query("SELECT 1")
        with stopped(node), pytest.raises(NoAnswer, match=r"^node1 did not answer a SELECT statement within 1 s"):
            connection.query(f"SELECT LENGTH('{'x' * 15_000_000}')", 60)


def test_a_look_at_the_server_ends_a_statement_long_before_its_limit(standalone):
    """The error is that of the look; the late answer is nobody's."""
    (node,) = standalone.nodes

    def look():
        raise ProvisionError("the host is gone")

    with contextlib.closing(Connection("node1", node.endpoint, look=look)) as connection:
        with pytest.raises(ProvisionError, match="the host is gone"):
            connection.query("SELECT SLEEP(600)", 3600)

        assert connection.query("SELECT 2") == [(2,)]


@contextlib.contextmanager
def deaf():
    """A port of this machine that no longer answers: it neither accepts nor refuses, as a machine that is gone."""
    with contextlib.ExitStack() as ends:
        listening = ends.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        error = 0
        while error == 0:
            waiting = ends.enter_context(socket.socket())
            waiting.settimeout(0.2)
            error = waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


def test_a_look_at_the_server_ends_the_attempt_to_connect_long_before_its_limit():
    """A machine that is gone does not even refuse."""
    looks = []

    def look():
        looks.append(1)
        raise ProvisionError("the host is gone")

    with deaf() as port, pytest.raises(ProvisionError, match="the host is gone"):
        Connection("node1", Endpoint("127.0.0.1", port, "root", ""), seconds=600, look=look).query("SELECT 1")

    assert looks == [1]


def test_the_attempt_to_connect_has_a_limit():
    """The error says that it was reached, and that the statement was not refused by a server."""
    with deaf() as port, pytest.raises(SQLError, match=rf"2003 .*127\.0\.0\.1:{port}.*timed out") as caught:
        Connection("node1", Endpoint("127.0.0.1", port, "root", ""), seconds=1).query("SELECT 1")

    assert caught.value.lost


def test_an_interrupted_thread_ends_its_statement(standalone):
    """Whoever has asked in several threads leaves them at once, and not when the last server has answered."""
    (node,) = standalone.nodes
    connection = Connection("node1", node.endpoint)
    begun = []

    def ask():
        with wait.threads(1) as threads:
            begun.append(threads.submit(connection.query, "SELECT SLEEP(600)", 3600))
            wait.until(lambda: [] if begun[0].running() else ["not asked"], "the statement", seconds=30)
            raise KeyboardInterrupt

    with contextlib.closing(connection), pytest.raises(KeyboardInterrupt):
        ask()

    assert isinstance(begun[0].exception(), KeyboardInterrupt)


def test_how_to_connect_is_no_part_of_what_an_endpoint_is():
    """Two endpoints of one server are equal, and none shows it."""
    usual = Endpoint("127.0.0.1", 5, "root", "")
    other = dataclasses.replace(usual, connects=socket.create_connection)

    assert usual == other
    assert "connects" not in repr(other)
