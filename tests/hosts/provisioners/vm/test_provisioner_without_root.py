"""Guests of a user who is not root: all that holds for guests, and servers in them that answer loads."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from tests.support import conftests
from tests.support.command import COMMAND, ROOT

HERE = "tests/hosts/provisioners/vm"
CLAIM = """
from pytest_dbcluster import ClusterSpec, MySQLSlap

SERVER = ClusterSpec("standalone")
LAZY = SERVER.with_options(innodb_flush_log_at_trx_commit=2).named("lazy")


def test_lazy_is_no_slower(measure):
    eager, lazy = measure(MySQLSlap("write", concurrency=4, queries=40), on=[SERVER, LAZY])

    assert lazy.no_slower_than(eager, by=0.99)
"""


def test_the_doctor_shows_kernel_and_mode(home):
    """And where their memory is."""
    assert re.fullmatch(
        r"user-mode Linux [\d.]+, started without root, in a user namespace, memory in /\S+ \(.* free\)",
        home.guests(),
    )


def test_all_that_holds_for_guests_holds_without_root(home):
    """The same tests: nothing stays when the run is killed, among others."""
    slow = "not overlooked"  # it is about the line to a guest, which is the same

    last = home.passed("-k", slow, "-W", "error", f"{ROOT}/{HERE}/test_provisioner.py", seconds=600)

    assert re.match(r"\d\d passed, 1 deselected in ", last)


def test_a_server_answers_rounds_of_a_load(home):
    """A user's own test, in a directory of the user's."""
    directory = home.project("lazy", CLAIM, conftests.OWN_MACHINE + conftests.NO_CHARTS)

    last = home.passed(
        "--db-provisioner=vm",
        f"--rootdir={directory}",
        f"--db-results={directory}/results",
        str(directory),
        seconds=600,
    )

    assert last.startswith("1 passed in ")
    (line,) = (directory / "results/claims.jsonl").read_text().splitlines()
    assert json.loads(line)["fingerprint"]["guests"].startswith("user-mode Linux ")


@pytest.mark.guests
def test_a_cluster_of_galera_runs_without_root(home):
    """Its nodes reach each other, and this process reaches each of them."""
    assert re.match(r"2 passed in ", home.passed(f"{ROOT}/{HERE}/test_clusters.py", seconds=600))


@pytest.mark.guests
def test_a_kept_cluster_is_used_by_the_printed_command(home):
    """It enters the network of the guests, as no browser does; ``down`` ends them."""
    up = home.run(*COMMAND, "up", "galera", "--nodes", "1", "--proxy", "haproxy", "--provisioner", "vm", seconds=300)
    assert up.returncode == 0, up.stderr
    command = re.search(r"^  writer +(\S.*--defaults-file=.*)$", up.stdout, re.MULTILINE)[1]
    assert "the proxy's own page" not in up.stdout

    said = home.run(*shlex.split(command), "-Ne", "SELECT @@hostname", seconds=60)
    down = home.run(*COMMAND, "down", "--all", seconds=60)

    assert said.stdout == "node1\n", said.stderr
    assert down.returncode == 0, down.stderr
    assert list((home.cache / "pytest-dbcluster/runs").glob("*/run.json")) == []
