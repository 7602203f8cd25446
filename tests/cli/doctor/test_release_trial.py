"""``dbcluster doctor --release``: what it tries with a release, and the report that users send."""

from __future__ import annotations

import dataclasses
import re

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.cli.doctor import release_trial
from pytest_dbcluster.cli.doctor.release_trial import Trial, TrialStep
from pytest_dbcluster.releases import local_programs, sources
from pytest_dbcluster.spec import ReleaseName
from pytest_dbcluster.version import __version__
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from tests.releases.test_layout import LAYOUTS, lay_out
from tests.support.facts import missing

NAME = ReleaseName.parse("mariadb:10.11")
DEAD = sources.AptEntry("http://127.0.0.1:9/debian", "bookworm", ("main",))


@pytest.fixture
def offline(monkeypatch):
    """A system whose only mirror does not answer."""
    monkeypatch.delenv("DBCLUSTER_MIRROR", raising=False)
    monkeypatch.setattr(sources, "host_entries", lambda: [DEAD])


SMALL = (
    MySQLSlap("write", concurrency=4, queries=200),
    SysBench("oltp_read_write", size=100, threads=4, seconds=0.5, to="writer"),
)
OPERATIONS = re.compile(r"\d+ of \d+ operations in \d+\.\d s")


def test_a_cached_release_is_tried_without_a_network(data, offline, monkeypatch):
    """Each topology that it offers runs each workload, Galera with two nodes; others are not offered for a reason."""
    monkeypatch.setattr(release_trial, "WORKLOADS", SMALL)
    trial = release_trial.try_release(NAME, ("standalone", "galera", "drbd", "group_replication"))
    results = {step.name: step.result for step in trial.steps}

    assert trial.failed == 0
    assert re.fullmatch(r"1 server ready in \d+\.\d s", results["standalone"])
    assert re.fullmatch(r"2 servers ready in \d+\.\d s", results["galera"])
    for workload in SMALL:
        assert OPERATIONS.fullmatch(results[f"standalone, {workload}"])
        assert OPERATIONS.fullmatch(results[f"galera, {workload}"])
    assert results["drbd"].startswith("not offered: ")
    assert "servers have no Group Replication" in results["group_replication"]
    facts = (
        f"pytest-dbcluster {__version__}, Python", f"mariadb:10.11, exactly {trial.release.version}", "mariadb-server",
        "basedir=CACHE/", "libgalera_smm.so", " mariadbd ", "mariadb:10.11: all worked", "Send us this whole report",
    )  # fmt: skip
    assert missing(trial.text(), *facts) == []


@pytest.mark.thorough
def test_the_workloads_of_a_trial_all_run_on_galera(data):
    """They are one of each kind, TPC-C too."""
    trial = release_trial.try_release(NAME, ("galera",))
    _, *measured = trial.steps

    assert [step.name for step in measured] == [f"galera, {workload}" for workload in release_trial.WORKLOADS]
    assert [step.result for step in measured if not OPERATIONS.fullmatch(step.result)] == []
    assert trial.failed == 0


@dataclasses.dataclass(frozen=True)
class Killing(SysBench):
    """A workload whose server dies in its run."""

    def run(self, setting):
        """Kill the server."""
        setting.cluster.nodes[0].kill()
        return super().run(setting)


def test_a_failure_has_the_end_of_the_log(data, monkeypatch):
    """The other workloads still run, and fail too, because the server is gone."""
    monkeypatch.setattr(release_trial, "WORKLOADS", (Killing("oltp_point_select", size=100, threads=1, seconds=0.5),))

    trial = release_trial.try_release(NAME, ("standalone",))
    started, failed = trial.steps

    assert (started.failed, failed.failed) == (False, True)
    assert failed.log[0] == "-- node1, error.log"
    assert [line for line in failed.log if "ready for connections" in line]
    assert len(failed.log) <= 1 + release_trial.TAIL
    assert missing(trial.text(), "FAILED: ", "ready for connections", "1 step failed with mariadb:10.11") == []


def test_a_release_that_does_not_start_ends_with_1(data, tmp_path, monkeypatch, capsys):
    """The programs of this directory print a version, and cannot do more."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lay_out(LAYOUTS["MySQL's tarball"], tmp_path / "mysql")

    assert main.main(["doctor", "--release", f"mysql:8.4={tmp_path / 'mysql'}"]) == 1
    said = capsys.readouterr().out
    assert missing(said, "mysql:8.4, exactly 8.4.8", str(tmp_path / "mysql"), "packages", "none: no packages") == []
    assert re.search(r"^standalone +FAILED: ", said, re.MULTILINE)
    assert re.search(r"^galera +not offered: .* has no Galera library", said, re.MULTILINE)


def test_a_release_that_cannot_be_fetched_has_the_reasons(data, tmp_path, offline, monkeypatch, capsys):
    """Nothing is started; the report has the reasons and the machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(local_programs, "_SBIN", ())

    assert main.main(["doctor", "--release", "mariadb:11.8"]) == 1
    said = capsys.readouterr().out
    assert missing(said, "fetch", "FAILED: mariadb:11.8 cannot be fetched", "127.0.0.1:9", "machine", "Linux") == []
    assert "1 step failed with mariadb:11.8" in said


def test_a_report_hides_passwords_and_the_home_directory(monkeypatch, tmp_path):
    """Users paste it into a public issue."""
    from pytest_dbcluster import redaction

    monkeypatch.setenv("HOME", str(tmp_path))
    password = redaction.new_password()
    step = TrialStep("galera", f"could not start\n{tmp_path}/x: {password}", failed=True, log=["a line"])

    said = Trial(NAME, None, [step]).text()

    assert missing(said, "FAILED: could not start", "~/x: ***", "a line") == []
    assert str(tmp_path) not in said
