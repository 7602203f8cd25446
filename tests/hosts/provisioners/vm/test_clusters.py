"""Two Galera nodes in guests; every other topology keeps its contract in them with ``make guests``."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def galera(guest, guests):
    """Two nodes, each in its own guest."""
    made = guest("galera", 2, "mariadb:10.11")
    yield made
    made.close()
    guests.give_back(made.hosts)


@pytest.mark.thorough
def test_two_nodes_form_a_cluster(galera):
    """A commit on one of them is on all: their traffic goes over the network of the guests."""
    galera.nodes[0].query("CREATE DATABASE one")
    galera.nodes[0].query("CREATE TABLE one.words (id INT PRIMARY KEY, word VARCHAR(20))")
    assert galera.settle(60), galera.backlog()
    galera.nodes[1].query("INSERT INTO one.words VALUES (1, 'here')")

    assert galera.settle(60), galera.backlog()
    assert [node.query("SELECT * FROM one.words") for node in galera.nodes] == [[(1, "here")]] * 2
    assert galera.problems() == []
