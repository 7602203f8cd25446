"""Servers that turn clients away: such rounds measure nothing, and a claim about them ends."""

from __future__ import annotations

import dataclasses
import re

import pytest

from pytest_dbcluster.errors import SeriesVoid, WorkloadError
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.testbed import round_runner
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from tests.support.facts import missing
from tests.support.fakes import Failing
from tests.support.testbeds import ONE, evidence, source

SLAP = MySQLSlap("write", concurrency=50, queries=200, rows=100)
FULL = ONE.with_options(max_connections=10).named("full")


def test_a_claim_about_a_full_server_ends_with_the_reason(shared):
    """The tool tries again and says nothing, so its rounds would be slow without a word."""
    first, full = series_of(Measurement(source(shared, SLAP, ONE, FULL), Rules(seed=1)))

    with pytest.raises(SeriesVoid) as caught:
        first.beats(full)
    said = str(caught.value)
    assert said.startswith("2 of 2 blocks of the warm-up of mysqlslap write c50 were void: full: ")
    assert " turned away (" in said
    assert "by node1: max_connections=10); the workload has 50 clients: set max_connections=60 or more" in said


@pytest.mark.parametrize("options", [{"max_connections": 25}, {"max_user_connections": 10}], ids=str)
def test_a_round_in_which_part_of_the_clients_was_turned_away_is_void(shared, options):
    """Also where a limit of the user, and not of the server, was reached; the next round with fewer clients counts."""
    made = source(shared, SLAP, ONE.with_options(options))
    done = made.round(0, block=0, position=0)

    [(name, value)] = options.items()
    assert f"{name}={value}" in done.void
    assert " turned away (" in done.void
    fewer = source(shared, dataclasses.replace(SLAP, concurrency=5), ONE.with_options(options))
    assert fewer.round(0, block=0, position=0).void == ""


def test_a_workload_that_fails_on_a_full_server_makes_a_void_round(standalone):
    """Its own message is enough; any other failure is raised as before."""
    setting = source_setting(standalone)
    full = Failing("run", WorkloadError("slap ended:\nError when connecting to server: 1040 Too many connections"))
    done = round_runner.run_round(full, setting, variant="a", block=0, position=0)

    reply = "Error when connecting to server: 1040 Too many connections"
    fixes = ("a larger max_connections", "no lower max_user_connections", "fewer clients")
    assert missing(done.void, f"clients were turned away ({reply})", *fixes) == []
    assert done.void.endswith(f"; the workload failed: {reply}")
    with pytest.raises(WorkloadError, match="syntax"):
        round_runner.run_round(Failing("run", WorkloadError("syntax")), setting, variant="a", block=0, position=0)


@pytest.mark.parametrize("release", ["mariadb:10.11", pytest.param("mysql:9.7", marks=pytest.mark.thorough)])
def test_data_that_fits_into_the_smaller_buffer_pool_is_a_note(pool, release):
    """The figures are those of the running servers: the files of the tables, and the sizes in effect."""
    on = dataclasses.replace(ONE, release=ReleaseName.parse(release))
    specs = [on.with_options(innodb_buffer_pool_size=size).named(f"pool_{size}") for size in ("24M", "32M")]
    made = source(pool, MySQLSlap("key", concurrency=2, queries=20, rows=50), *specs)
    assert list(evidence(made, 1, 0).data_fits.values()) == [""]  # nothing has run
    made.round(0, block=0, position=0)
    found = evidence(made, 1, 0)

    (line,) = found.data_fits.values()
    assert re.match(r"the data \([1-9] MiB\) fits into the smaller buffer pool \(pool_24M 24 MiB, ", line)
    assert line in found.notes


def source_setting(cluster):
    """A setting without a client."""
    from pytest_dbcluster.workloads.workload import Setting

    return Setting(cluster, cluster.hosts[0], None, "quick", print)
