"""Galera's own options in the differences between variants: what was tuned is there, what a node is called is not."""

from __future__ import annotations

import pytest

from pytest_dbcluster import release as releases
from pytest_dbcluster.options import differences
from pytest_dbcluster.provider_options import parse, spread

LIST = "base_dir = /a/node1/; base_port = 29009; gcs.fc_limit = {limit}; gmcast.listen_addr = tcp://127.0.0.1:29009; "


def server(limit, **more):
    """What a server says of itself."""
    return {"sync_binlog": "0", "wsrep_node_name": "n1", "wsrep_provider_options": LIST.format(limit=limit), **more}


def test_a_list_is_read_as_its_options():
    """An option may have no value, or one with an equals sign in it; the list ends with a semicolon."""
    assert parse("gcache.size = 128M; gcomm.thread_prio = ; odd = a=b; ") == {
        "gcache.size": "128M",
        "gcomm.thread_prio": "",
        "odd": "a=b",
    }
    assert parse("") == {}


def test_each_option_has_its_own_name():
    """Those that every node has for itself are left out, as are its name and the list as a whole."""
    assert spread(server(16)) == {"sync_binlog": "0", "gcs.fc_limit": "16"}
    assert spread({"sync_binlog": "0", "hostname": "a"}) == {"sync_binlog": "0"}


def test_an_option_with_a_variable_of_its_own_is_there_once():
    """As the list calls it; what the list leaves out is there by its variable, addresses are not."""
    separate = {
        "wsrep_provider_gcs_fc_limit": "16",
        "wsrep_provider_gcs_vote_policy": "0",
        "wsrep_provider_base_port": "29009",
        "wsrep_provider_ist_recv_bind": "",
        "wsrep_provider_pc_bootstrap": "OFF",
    }

    assert spread(server(16, **separate)) == {
        "sync_binlog": "0",
        "gcs.fc_limit": "16",
        "wsrep_provider_gcs_vote_policy": "0",
    }


@pytest.mark.parametrize("version", ["mariadb:10.11", "mariadb:11.8"])
def test_nodes_differ_in_what_was_asked_for(version, briefly):
    """Two clusters with other limits of flow control differ in them; two nodes of one of them in nothing."""
    release = releases.find(version)
    tuned = briefly("galera", 1, release, wsrep_provider_options="gcs.fc_limit=1000;gcs.fc_factor=0.9").nodes[0]
    one, other = briefly("galera", 2, release).nodes
    said = {node: spread(node.variables()) for node in (tuned, one, other)}

    assert differences(said[one], said[other]) == {}
    assert differences(said[one], said[tuned]) == {"gcs.fc_factor": ("1.0", "0.9"), "gcs.fc_limit": ("16", "1000")}
