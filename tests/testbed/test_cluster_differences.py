"""Tests of pytest_dbcluster.testbed.cluster_differences."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster.claims.cluster_difference import upper
from pytest_dbcluster.hosts.provisioners.fake import FakeProvisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import cluster_differences
from pytest_dbcluster.testbed.cluster_differences import DEFAULTS, Calibration, Default, Key
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.clusters import variant_of

RELEASE = Release("mariadb:10.11", "mariadb", "10.11.19", Path("/usr/bin"))
GALERA = variant_of(ClusterSpec("galera", nodes=3), RELEASE)
WRITE = MySQLSlap("write")
PAIRS = tuple((-1) ** number * 0.01 for number in range(24))


@pytest.fixture
def here(monkeypatch, tmp_path):
    """The key of a cluster under a workload, in a cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cluster_differences, "machine", lambda hosts: "2 x CPU, 24.0 GiB")
    return Key("2 x CPU, 24.0 GiB", "local", "galera", 3, "mariadb:10.11", "", "mysqlslap:write")


@pytest.fixture
def local():
    """A provisioner of processes of this machine, which starts none."""
    made = LocalProvisioner()
    yield made
    made.close()


def test_a_calibration_replaces_the_default(here, local):
    """It says how many pairs of clusters it rests on, and when they were measured."""
    assert cluster_differences.of(GALERA, WRITE, local).source.startswith("default of 12 pairs of clusters")
    noise = tuple(value / 3 for value in PAIRS)
    dataclasses.replace(Calibration(here), differences=PAIRS, noise=noise, date="2026-11-22").write()

    found = cluster_differences.of(GALERA, WRITE, local)
    assert found.log_ratio == pytest.approx(upper(PAIRS, Calibration(here, PAIRS, noise).noise_in_all))
    assert found.log_ratio < upper(PAIRS)
    assert (found.source, found.pairs) == ("measured on 24 pairs of clusters, 2026-11-22", 24)


@pytest.mark.parametrize(
    "other",
    [
        {"machine": "64 x CPU, 24.0 GiB"},
        {"provisioner": "container"},
        {"topology": "standalone"},
        {"nodes": 2},
        {"release": "mariadb:11.8"},
        {"proxy": "haproxy"},
        {"kind": "mysqlslap:read"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_calibration_of_anything_else_is_not_used(here, local, other):
    """Another machine may share the cache."""
    key = dataclasses.replace(here, **other)
    Calibration(key, PAIRS, PAIRS, "2026-11-22").write()

    assert cluster_differences.of(GALERA, WRITE, local).pairs == DEFAULTS["mysqlslap"].pairs
    assert cluster_differences.read(key).differences == PAIRS


def test_seven_pairs_of_clusters_are_too_few(here, local):
    """They are kept, and the default holds until the eighth."""
    known = Calibration(here, PAIRS[:7], PAIRS[:7], "2026-11-22")
    known.write()
    assert cluster_differences.of(GALERA, WRITE, local).pairs == DEFAULTS["mysqlslap"].pairs

    cluster_differences.read(here).with_pair(0.01, 0.002).write()
    assert cluster_differences.of(GALERA, WRITE, local).pairs == 8


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"format": 1}', '{"format": 1, "key": {}, "differences": ["x"], "noise": [], "date": ""}'],
)
def test_a_file_that_is_no_calibration_counts_as_none(here, text):
    """A full disk, another version or another program left it."""
    here.path.parent.mkdir(parents=True)
    here.path.write_text(text)

    assert cluster_differences.read(here) == Calibration(here)


@pytest.mark.parametrize("change", [{"differences": [math.inf] * 24}, {"noise": []}, {"format": 0}])
def test_a_calibration_that_is_damaged_counts_as_none(here, change):
    """It decides claims, so nothing in it is guessed."""
    Calibration(here, PAIRS, PAIRS, "2026-11-22").write()
    here.path.write_text(json.dumps(json.loads(here.path.read_text()) | change))

    assert cluster_differences.read(here) == Calibration(here)


def test_defaults_are_by_kind_of_workload_and_place():
    """The kind in full comes first, then the tool; hosts elsewhere have 10 %."""
    shared = frozenset({"shared-cores"})

    assert cluster_differences.default("mysqlslap:write", shared) == DEFAULTS["mysqlslap"].difference
    assert cluster_differences.default("other", shared).source == "assumed, for this kind of workload"
    assert math.expm1(cluster_differences.default("mysqlslap:write", frozenset()).log_ratio) == pytest.approx(0.10)
    assert cluster_differences.default("tpcc", frozenset()).source == "assumed, for hosts on other machines"


def test_a_default_says_whether_it_was_measured():
    """With the date, and what it was measured on."""
    measured = Default(0.04, "2026-12-01", "3 nodes on 2 cores", 24).difference

    assert (measured.source, measured.pairs) == ("default of 24 pairs of clusters, 3 nodes on 2 cores, 2026-12-01", 24)
    for default in DEFAULTS.values():
        assert default.difference.source.startswith("assumed" if not default.pairs else "default of")


def test_kinds_of_workloads_are_named_as_on_the_command_line():
    """So that what the command measures is what a test looks up."""
    kinds = [cluster_differences.kind_of(load) for load in (WRITE, SysBench("oltp_read_write"), TPCC())]

    assert kinds == ["mysqlslap:write", "sysbench:oltp_read_write", "tpcc"]


def compared(pool, *options, instances=None, **how):
    """A testbed of one server with each of these options; nothing is started."""
    specs = [ClusterSpec("standalone", release="mariadb:10.11", options=given) for given in options]
    return Testbed(WRITE, [pool.resolution.resolve(spec) for spec in specs], pool, "quick", print, instances=instances)


def test_variants_on_one_cluster_have_no_such_difference(pool):
    """A switch turns it from one to the other; an option that needs a start gives each its own."""
    shared = compared(pool, {}, {"lock_wait_timeout": "40"})
    apart = compared(pool, {}, {"innodb_autoinc_lock_mode": "2"})

    assert shared.cluster_difference(1, 0) is None
    assert apart.cluster_difference(1, 0).instances == 1
    assert pool.clusters == []


def test_instances_of_a_variant_share_the_difference(pool):
    """Their mean differs by less."""
    one, four = (compared(pool, {}, {"innodb_autoinc_lock_mode": "2"}, instances=number) for number in (1, 4))

    assert four.cluster_difference(1, 0).bound == pytest.approx(one.cluster_difference(1, 0).bound / 2)


def test_clusters_that_take_turns_have_no_such_difference(pool, monkeypatch):
    """Each turn starts a fresh cluster, so what clusters differ by is part of the interval."""
    monkeypatch.setattr(pool, "room_for_all", lambda variants: False)

    assert compared(pool, {}, {"innodb_autoinc_lock_mode": "2"}).cluster_difference(1, 0) is None


def test_an_order_has_the_largest_difference_of_its_neighbours(pool):
    """One step on a shared cluster does not excuse the other."""
    three = compared(pool, {}, {"lock_wait_timeout": "40"}, {"innodb_autoinc_lock_mode": "2"})

    assert three.cluster_difference(0, 1) is None
    assert three.cluster_difference(0, 1, 2) == three.cluster_difference(1, 2)


def test_a_calibration_is_of_the_machine_that_the_servers_run_on():
    """Of this one, unless the hosts name another: their figures say nothing about this machine."""

    class Elsewhere(FakeProvisioner):
        @property
        def environment(self):
            return {"cpu": "8 x Neoverse-N1", "memory": "32.0 GiB", "kernel": "6.12"}

    spec = ClusterSpec("galera", nodes=3)
    here, there = (Key.of_spec(spec, "mariadb:10.11", WRITE, one) for one in (FakeProvisioner(), Elsewhere()))

    assert here.machine.startswith(f"{psutil.cpu_count()} x ")
    assert there.machine == "8 x Neoverse-N1, 32.0 GiB"
