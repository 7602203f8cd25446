"""Guests of a user who is not root: all that holds for guests, and servers in them that answer loads."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from tests.support import conftests
from tests.support.command import COMMAND, ROOT

HERE = "tests/hosts/provisioners/vm"
NETWORK = "tests/hosts/network/test_routed_path.py"
# A network namespace of guests and one of a router, with their end; FURTHER repeats these in other forms.
NAMESPACES = "reach_each_other or a_guest_reaches or made_them[9] or kept or packets"
FURTHER = "partitioned or power or made_them[15] or killed[9]"
CLAIM = """
from pytest_dbcluster import ClusterSpec, MySQLSlap

LOADS = {"four": MySQLSlap("write", concurrency=4, queries=40), "two": MySQLSlap("write", concurrency=2, queries=40)}


def test_four_beside_two(measure):
    four, two = measure(LOADS, on=[ClusterSpec("standalone")])

    four.against(two)
"""


def test_the_doctor_shows_kernel_and_mode(home):
    """And where their memory is."""
    assert re.fullmatch(
        r"user-mode Linux [\d.]+, started without root, in a user namespace, memory in /\S+ \(.* free\)",
        home.guests(),
    )


def test_networks_and_the_end_of_guests_are_the_same_without_root(home):
    """Those tests that make or use a network namespace, or end a run: nothing stays when it is killed.

    On a path that delays packets, those of peers wait and ours do not.
    """
    modules = f"{ROOT}/{HERE}/test_provisioner.py", f"{ROOT}/{NETWORK}"
    last = home.passed("-k", NAMESPACES, "-W", "error", *modules, seconds=600)

    assert re.match(r"5 passed, \d\d deselected in ", last)


@pytest.mark.thorough
def test_partitions_power_cuts_and_other_ends_are_the_same_without_root(home):
    """Those tests of network namespaces that the usual run leaves out."""
    modules = f"{ROOT}/{HERE}/test_provisioner.py", f"{ROOT}/{NETWORK}"
    last = home.passed("-m", "not guests", "-k", FURTHER, "-W", "error", *modules, seconds=600)

    assert re.match(r"4 passed, \d\d deselected in ", last)


@pytest.mark.guests
def test_all_that_holds_for_guests_holds_without_root(home):
    """The same tests, with servers: nodes reach each other, and this process reaches each of them."""
    last = home.passed("-W", "error", f"{ROOT}/{HERE}", "--ignore-glob=*without_root*", seconds=900)

    assert int(re.match(r"(\d\d) passed", last)[1]) > 40


@pytest.mark.thorough
def test_a_server_answers_rounds_of_a_load(home):
    """A user's own test, in a directory of the user's."""
    directory = home.project("loads", CLAIM, conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.SHORT_ROUNDS)

    last = home.passed(
        "--db-provisioner=vm",
        "--db-max-pairs=2",
        f"--rootdir={directory}",
        f"--db-results={directory}/results",
        str(directory),
        seconds=600,
    )

    assert last.startswith("1 passed in ")
    (line,) = (directory / "results/claims.jsonl").read_text().splitlines()
    assert json.loads(line)["fingerprint"]["guests"].startswith("user-mode Linux ")


@pytest.mark.guests
def test_a_kept_cluster_is_used_by_the_printed_command(home):
    """It enters the network of the guests, as no browser does; ``down`` ends them."""
    up = home.run(*COMMAND, "up", "galera", "--nodes", "1", "--proxy", "haproxy", "--provisioner", "vm", seconds=300)
    assert up.returncode == 0, up.stderr
    command = re.search(r"^  writer +(\S.*--defaults-file=.*)$", up.stdout, re.MULTILINE)[1]
    assert "statistics page of the proxy" not in up.stdout

    said = home.run(*shlex.split(command), "-Ne", "SELECT @@hostname", seconds=60)
    down = home.run(*COMMAND, "down", "--all", seconds=60)

    assert said.stdout == "node1\n", said.stderr
    assert down.returncode == 0, down.stderr
    assert list((home.cache / "pytest-dbcluster/runs").glob("*/run.json")) == []
