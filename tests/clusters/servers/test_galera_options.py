"""Galera's own options in the differences between variants: what was tuned is there, what a node is called is not."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.servers.galera_options import server_differences, spread
from pytest_dbcluster.clusters.servers.path_options import provider_pairs
from pytest_dbcluster.releases import find
from pytest_dbcluster.testbed.comparability import differences_line

LIST = "base_dir = /a/node1/; base_port = 29009; gcs.fc_limit = {limit}; gmcast.listen_addr = tcp://127.0.0.1:29009; "


def server(limit, **more):
    """The global variables of a server."""
    return {"sync_binlog": "0", "wsrep_node_name": "n1", "wsrep_provider_options": LIST.format(limit=limit), **more}


def test_a_list_is_read_as_its_options():
    """An option may have no value, or one with an equals sign in it; the list ends with a semicolon."""
    assert provider_pairs("gcache.size = 128M; gcomm.thread_prio = ; odd = a=b; ") == {
        "gcache.size": "128M",
        "gcomm.thread_prio": "",
        "odd": "a=b",
    }
    assert provider_pairs("") == {}


def test_each_option_has_its_own_name():
    """Those that every node has for itself are left out, as are its name and the list as a whole."""
    assert spread(server(16)) == ({"sync_binlog": "0"}, {"gcs.fc_limit": "16"})
    assert spread({"sync_binlog": "0", "hostname": "a"}) == ({"sync_binlog": "0"}, {})


def test_an_option_with_a_variable_of_its_own_is_there_once():
    """As the list calls it; what the list leaves out is there by its variable, addresses are not."""
    separate = {
        "wsrep_provider_gcs_fc_limit": "16",
        "wsrep_provider_gcs_vote_policy": "0",
        "wsrep_provider_base_port": "29009",
        "wsrep_provider_ist_recv_bind": "",
        "wsrep_provider_pc_bootstrap": "OFF",
    }

    assert spread(server(16, **separate)) == (
        {"sync_binlog": "0"},
        {"gcs.fc_limit": "16", "wsrep_provider_gcs_vote_policy": "0"},
    )


def test_a_server_without_galera_differs_in_its_variables_alone():
    """All options differ then, and their sixty would leave no room for what tells the two apart."""
    options = "; ".join(f"evs.option{number} = {number}" for number in range(60))
    node = {"sync_binlog": "0", "max_connections": "151", "wsrep_provider_options": options}
    alone = {"sync_binlog": "1", "max_connections": "500", "wsrep_provider_options": ""}
    found = server_differences(node, alone)

    assert found == {"max_connections": ("151", "500"), "sync_binlog": ("0", "1")}
    assert server_differences(alone, node).keys() == found.keys()
    assert "sync_binlog: 0 -> 1" in differences_line("galera", "alone", found)


def test_variables_come_before_options():
    """Options come after the variables, so that a shortened line loses options first."""
    tuned = {**server(1000), "sync_binlog": "1", "zz_last": "2"}

    assert list(server_differences(server(16), tuned)) == ["sync_binlog", "zz_last", "gcs.fc_limit"]


def test_a_variable_of_an_option_that_one_version_has_is_no_difference():
    """MariaDB 11.8 shows options as variables, 10.11 shows none; what both have is compared."""
    new, tuned = {"wsrep_provider_gcs_vote_policy": "0"}, {"wsrep_provider_gcs_vote_policy": "1"}

    assert server_differences(server(16), server(1000, **new)) == {"gcs.fc_limit": ("16", "1000")}
    assert server_differences(server(16, **new), server(16, **tuned)) == {"wsrep_provider_gcs_vote_policy": ("0", "1")}


@pytest.mark.parametrize("version", ["mariadb:10.11", "mariadb:11.8"])
def test_nodes_differ_in_what_was_asked_for(version, briefly, galera2):
    """Two clusters with other limits of flow control differ in them; two nodes of one of them in nothing."""
    release, shared = find.find(version), galera2.nodes[0].release.name == version
    tuned = briefly("galera", 1, release, wsrep_provider_options="gcs.fc_limit=1000;gcs.fc_factor=0.9").nodes[0]
    one, other = (galera2 if shared else briefly("galera", 2, release)).nodes
    said = {node: node.variables() for node in (tuned, one, other)}

    assert server_differences(said[one], said[other]) == {}
    assert server_differences(said[one], said[tuned]) == {
        "gcs.fc_factor": ("1.0", "0.9"),
        "gcs.fc_limit": ("16", "1000"),
    }
