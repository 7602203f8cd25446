"""Control connections to a server that this process reaches by sockets of somebody else."""

from __future__ import annotations

import dataclasses
import socket

import pytest

from pytest_dbcluster.clusters.servers.connection import Connection, Endpoint, SQLError

NOWHERE = "192.0.2.1"  # an address for documents (RFC 5737)


def elsewhere(endpoint, asked):
    """The endpoint at an address that leads nowhere; its sockets lead to the server, and are noted in ``asked``."""

    def connects(address, port, seconds):
        asked.append((address, port, seconds))
        return socket.create_connection((endpoint.host, port), seconds)

    return dataclasses.replace(endpoint, host=NOWHERE, connects=connects)


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


def test_encryption_works_over_such_a_socket(briefly, mysql):
    """MySQL's control connections are encrypted until the server knows the password."""
    (node,) = briefly("standalone", 1, mysql).nodes
    connection = Connection("node1", elsewhere(node.endpoint, []))

    assert node.endpoint.tls
    assert connection.pairs("SHOW STATUS LIKE 'Ssl_cipher'")["ssl_cipher"] != ""
    connection.close()


def test_a_socket_that_cannot_be_made_is_a_lost_connection():
    """With the reason; the statement was not refused by a server."""

    def refused(address, port, seconds):
        raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(
        SQLError, match=r"^node1: 'SELECT 1' was refused: 2003 .*192\.0\.2\.1:5.*Connection ref"
    ) as caught:
        Connection("node1", Endpoint(NOWHERE, 5, "root", "", connects=refused)).query("SELECT 1")

    assert caught.value.lost


def test_how_to_connect_is_no_part_of_what_an_endpoint_is():
    """Two endpoints of one server are equal, and none shows it."""
    usual = Endpoint("127.0.0.1", 5, "root", "")
    other = dataclasses.replace(usual, connects=socket.create_connection)

    assert usual == other
    assert "connects" not in repr(other)
