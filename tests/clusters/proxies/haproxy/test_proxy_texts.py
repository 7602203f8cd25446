"""The texts of HAProxy: what it is configured by, and how its statistics are read."""

from __future__ import annotations

from pytest_dbcluster.clusters.proxies.haproxy import proxy
from pytest_dbcluster.clusters.proxies.haproxy.health_server import Watched
from pytest_dbcluster.clusters.servers.health import Health

NODES = [Watched(f"node{n}", "127.0.0.1", 3305 + n, 9199 + n) for n in (1, 2, 3)]
PORTS = (6001, 6002, 6003)
ROLES = [Watched(node.name, *("127.0.0.1", 3306, 9200), Health(writer={"role": "PRIMARY"})) for node in NODES]
BOTH = {"writer": ["node1"], "reader": ["node1"]}
HEADER = "# pxname,svname,status,check_status,check_code,last_chk\n"


def down(statistics, roles=BOTH, *, tracked=True):
    """What is wrong with node1 according to haproxy's statistics."""
    return proxy.state_problems(statistics, ["node1"], roles, tracked=tracked)


def test_one_check_serves_both_listeners():
    """Where nodes have no roles the writer follows the reader's checks, and its second node is a backup."""
    text = proxy.configuration("127.0.0.1", PORTS, NODES)

    assert text.count("option httpchk") == 1
    assert text.count(" check addr 127.0.0.1 port 920") == 3
    assert "server node2 127.0.0.1:3307 track reader/node2 on-marked-down shutdown-sessions backup" in text
    assert "server node1 127.0.0.1:3306 track reader/node1 on-marked-down shutdown-sessions on-marked-up" in text


def test_each_listener_asks_for_its_own_role():
    """Where nodes have roles the writer has checks of its own, so that it goes where the primary goes."""
    text = proxy.configuration("127.0.0.1", PORTS, ROLES)

    writer, reader = text[text.index("listen writer") : text.index("frontend")].split("listen reader")
    assert "option httpchk GET /writer\n" in writer
    assert "option httpchk GET /\n" in reader
    assert writer.count(" check addr 127.0.0.1 port 920") == reader.count(" check addr 127.0.0.1 port 920") == 3
    assert "track" not in text


def test_a_server_is_well_only_after_a_check():
    """Haproxy calls a server UP before its first check; we do not."""
    text = HEADER + "writer,node1,UP,,,\nreader,node1,UP,,,\n"

    assert down(text) == ["haproxy: reader/node1 is UP (not checked yet)"]


def test_a_server_that_is_down_is_named_with_the_check():
    """The problem says which listener, which node, and what the check saw."""
    text = HEADER + "writer,node1,DOWN,,,\nreader,node1,DOWN,L7STS,503,Service Unavailable\n"

    assert down(text) == ["haproxy: reader/node1 is DOWN (L7STS 503 Service Unavailable)"]


def test_a_check_under_way_is_no_problem():
    """Haproxy marks with a star that the next check has begun."""
    text = HEADER + "writer,node1,UP,,,\nreader,node1,UP,* L7OK,200,\n"

    assert down(text) == []


def test_a_server_that_haproxy_does_not_list_is_missing():
    """Statistics without the node are a problem, as is a writer that did not follow."""
    assert down(HEADER) == ["haproxy: reader/node1 is missing (not checked yet)"]
    half = HEADER + "writer,node1,DOWN,,,\nreader,node1,UP,L7OK,200,\n"
    assert down(half) == ["haproxy: writer/node1 is DOWN"]


def test_a_server_without_the_role_has_to_be_out():
    """Haproxy calls a secondary UP in the writer until its first check: it must not take writes, nor be waited for."""
    secondary = {"writer": [], "reader": ["node1"]}
    reader = HEADER + "reader,node1,UP,L7OK,200,\n"

    assert down(reader + "writer,node1,UP,,,\n", secondary, tracked=False) == [
        "haproxy: writer/node1 is UP (not checked yet), wanted DOWN"
    ]
    assert down(reader + "writer,node1,DOWN,L7STS,503,\n", secondary, tracked=False) == []


def test_a_writer_with_checks_of_its_own_has_to_pass_one():
    """UP alone says nothing then; both listeners are named."""
    text = HEADER + "reader,node1,DOWN,L7STS,503,\nwriter,node1,UP,,,\n"

    assert down(text, tracked=False) == [
        "haproxy: reader/node1 is DOWN (L7STS 503)",
        "haproxy: writer/node1 is UP (not checked yet)",
    ]
