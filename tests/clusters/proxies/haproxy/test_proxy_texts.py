"""The texts of HAProxy: what it is configured by, and how its statistics are read."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.proxies.haproxy import proxy
from pytest_dbcluster.clusters.proxies.haproxy.health_server import Watched
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec

NODES = [Watched(f"node{n}", "127.0.0.1", 3305 + n, 9199 + n) for n in (1, 2, 3)]
PORTS = (6001, 6002, 6003)
ROLES = [Watched(node.name, *("127.0.0.1", 3306, 9200), Health(writer={"role": "PRIMARY"})) for node in NODES]
BOTH = {"writer": ["node1"], "reader": ["node1"]}
GALERA = ClusterSpec("galera", nodes=3, proxy="haproxy")
HEADER = "# pxname,svname,status,check_status,check_code,last_chk\n"


def written(nodes=NODES, **options):
    """Haproxy's configuration with these options."""
    settings = proxy.HAProxy.read_settings(GALERA.with_proxy_options(options), topology("galera"))
    return proxy.configuration("127.0.0.1", PORTS, nodes, settings=settings)


def down(statistics, roles=BOTH, *, tracked=True):
    """What is wrong with node1 according to haproxy's statistics."""
    return proxy.state_problems(statistics, ["node1"], roles, tracked=tracked)


def test_one_check_serves_both_listeners():
    """Where nodes have no roles the writer follows the reader's checks, and its second node is a backup."""
    text = written()

    assert text.count("option httpchk") == 1
    assert text.count(" check addr 127.0.0.1 port 920") == 3
    assert "server node2 127.0.0.1:3307 track reader/node2 on-marked-down shutdown-sessions backup" in text
    assert "server node1 127.0.0.1:3306 track reader/node1 on-marked-down shutdown-sessions on-marked-up" in text


def test_each_listener_asks_for_its_own_role():
    """Where nodes have roles the writer has checks of its own, so that it goes where the primary goes."""
    text = written(ROLES)

    writer, reader = text[text.index("listen writer") : text.index("frontend")].split("listen reader")
    assert "option httpchk GET /writer\n" in writer
    assert "option httpchk GET /\n" in reader
    assert writer.count(" check addr 127.0.0.1 port 920") == reader.count(" check addr 127.0.0.1 port 920") == 3
    assert "track" not in text


def test_without_options_it_has_the_defaults():
    """They are the times and numbers of checks that the vocabulary lists."""
    text = written()

    assert "timeout connect 5000ms" in text
    assert "timeout check 2000ms" in text
    assert "inter 1000ms fastinter 100ms downinter 100ms fall 3 rise 1 on-marked-down" in text
    assert text.count("on-marked-up shutdown-backup-sessions") == 1


def test_every_option_changes_its_words():
    """Times are milliseconds, checks whole numbers."""
    text = written(connect_timeout=0.1, check_interval=2, fast_interval="0.25", check_timeout=0.5, fall=2, rise=4)

    assert "timeout connect 100ms" in text
    assert "timeout check 500ms" in text
    assert "inter 2000ms fastinter 250ms downinter 250ms fall 2 rise 4 on-marked-down" in text


@pytest.mark.parametrize("nodes", [NODES, ROLES])
def test_without_fail_back_sessions_stay(nodes):
    """The first node gets new connections again, and the others are still its backups."""
    text = written(nodes, fail_back=False)

    assert "on-marked-up" not in text
    assert text.count(" backup\n") == 2


def test_only_galera_has_donors():
    """Another topology refuses the option, and may turn it off."""
    spec = ClusterSpec("async_replication", nodes=2, proxy="haproxy")
    kind = topology("async_replication")

    with pytest.raises(ConfigError, match="nodes of async_replication are never donors"):
        proxy.HAProxy.read_settings(spec.with_proxy_options(available_when_donor=True), kind)
    assert not proxy.HAProxy.read_settings(spec.with_proxy_options(available_when_donor=0), kind)[
        "available_when_donor"
    ]


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
