"""dbcluster calibrate: pairs of fresh equal clusters, kept one by one, and the difference that they say."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import random
import re
import signal
import subprocess

import pytest

from pytest_dbcluster.claims.cluster_difference import upper
from pytest_dbcluster.cli import calibrate
from pytest_dbcluster.cli.calibrate import CalibrationPlan
from pytest_dbcluster.errors import ProvisionError, SeriesVoid
from pytest_dbcluster.rounds import counters, round_length
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import calibrations
from pytest_dbcluster.testbed.calibrations import Calibration, CalibrationKey
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from tests.support.command import ROOT, alone
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy

KEY = CalibrationKey("2 x CPU, 24.0 GiB", "fake", "galera", 3, "mariadb:10.11", "", "mysqlslap:write")


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def said(own_cache):
    """The lines of progress."""
    return []


@dataclasses.dataclass
class Fresh:
    """Pairs of clusters that were never started; their speeds differ by ``sd``, and each round varies by 1 %.

    ends: the number of the pair at which Ctrl-C is pressed. wrong: numbers of pairs whose tables differ afterwards.
    """

    sd: float = 0.02
    ends: int | None = None
    wrong: tuple[int, ...] = ()
    begun: list[int] = dataclasses.field(default_factory=list)
    left: list[int] = dataclasses.field(default_factory=list)

    @contextlib.contextmanager
    def __call__(self, number):
        """One pair."""
        self.begun.append(number)
        draw = random.Random(number)
        try:
            if number == self.ends:
                raise KeyboardInterrupt
            means = [math.exp(draw.gauss(0, self.sd)) for _ in range(2)]
            wrong = SeriesVoid("tables differ") if number in self.wrong else None
            yield FakeSource(("one", "other"), noisy(*means, sd=0.01, seed=number), wrong=wrong)
        finally:
            self.left.append(number)


def test_f_is_computed_from_as_many_pairs_of_clusters_as_asked(said):
    """It is near the .995 quantile of the true difference, and each pair is a fresh one."""
    fresh = Fresh()

    calibrate.run_plan(KEY, fresh, CalibrationPlan(24, 24), "throughput", progress=said.append)
    known = calibrations.read(KEY)
    assert fresh.begun == fresh.left == list(range(24))
    f, noise = known.difference("throughput").log_ratio, known.noise("throughput")
    assert f == upper(known.differences("throughput"), noise)
    assert f == pytest.approx(2.8 * 0.02 * math.sqrt(2), rel=0.4)
    assert noise == pytest.approx(0.01 * math.sqrt(2 / 24), rel=0.5)
    assert said[0].startswith("pair 1 of 24: the clusters differ by ")
    assert " left" in said[0]
    assert " left" not in said[-1]


def test_the_time_is_shared_by_the_pairs_of_clusters():
    """Each gets an equal part of what is left, so a slow start is made good; without a limit there is none."""
    plan = CalibrationPlan(24, seconds=480.0)

    assert plan.share(0.0, 0) == 20.0
    assert plan.share(60.0, 2) == pytest.approx(420 / 22)
    assert plan.share(500.0, 23) == 0.0
    assert CalibrationPlan(24).share(500.0, 23) == math.inf
    assert (CalibrationPlan(24).most_rounds, plan.most_rounds, CalibrationPlan(24, 12, 480.0).most_rounds) == (
        40,
        160,
        12,
    )


@pytest.mark.parametrize(("until", "rounds"), [(-math.inf, 8), (math.inf, 20)], ids=["used", "left"])
def test_a_used_time_still_has_two_opening_blocks(until, rounds):
    """Their halves say what the noise of the rounds is; with time left as many are drawn as the plan allows."""
    with Fresh()(0) as source:
        difference, noise = calibrate.difference_of(source, 20, until)["throughput"]

    counted = [block for _, block, _ in source.rounds if block >= 0]
    assert len(counted) == 2 * rounds
    assert abs(difference) < 0.1
    assert 0 < noise < 0.03  # .0041 in the median of 400 seeds, and .0188 at most


def test_clusters_that_do_not_differ_have_a_small_f(said):
    """What is left is the noise of the rounds."""
    calibrate.run_plan(KEY, Fresh(sd=0.0), CalibrationPlan(24, 24), "throughput", progress=said.append)

    assert calibrations.read(KEY).difference("throughput").bound < 0.015


def test_an_interrupted_calibration_keeps_what_it_has_and_goes_on(said):
    """Each pair is in the cache when it is done; the pair that was interrupted ends and is not counted."""
    fresh = Fresh(ends=5)

    with pytest.raises(KeyboardInterrupt):
        calibrate.run_plan(KEY, fresh, CalibrationPlan(12, 8), "throughput", progress=said.append)
    assert fresh.left == [0, 1, 2, 3, 4, 5]
    assert missing(said[-1], "interrupted", "5 of 12 pairs of clusters are kept", "same command continues") == []
    five = calibrations.read(KEY).pairs
    assert len(five) == 5

    calibrate.run_plan(KEY, Fresh(), CalibrationPlan(12, 8), "throughput", progress=said.append)
    assert calibrations.read(KEY).pairs[:5] == five
    assert len(calibrations.read(KEY).pairs) == 12
    assert any(
        line.startswith("galera of 3 x mariadb:10.11, mysqlslap:write, fake: continuing with 5 pairs of")
        for line in said
    )


def test_a_pair_that_fails_is_left_out(said):
    """One is a mishap; three in a row are an error, and what was measured before is kept."""
    calibrate.run_plan(KEY, Fresh(wrong=(2, 4)), CalibrationPlan(9, 8), "throughput", progress=said.append)
    assert len(calibrations.read(KEY).pairs) == 9
    assert len([line for line in said if not missing(line, "left out", "tables differ")]) == 2

    with pytest.raises(SeriesVoid):
        calibrate.run_plan(KEY, Fresh(wrong=(1, 2, 3)), CalibrationPlan(20, 8), "throughput", progress=said.append)
    assert len(calibrations.read(KEY).pairs) == 10


def test_a_cache_that_cannot_be_written_is_an_error(said, monkeypatch):
    """It names the file; nothing was kept before."""

    def full(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Calibration, "write", full)
    with pytest.raises(
        ProvisionError, match=r"^cannot keep the calibration in .*galera3-mysqlslap-write-\w+\.json: No sp"
    ):
        calibrate.run_plan(KEY, Fresh(), CalibrationPlan(8, 8), "throughput", progress=said.append)


def test_the_summary_says_f_and_what_it_rests_on():
    """With the file; before enough pairs are known, how many are missing."""

    def known(*values):
        pairs = tuple({"throughput": (value, 0.002), "fsyncs": (2 * value, 0.0)} for value in values)
        return calibrate.summary(Calibration(KEY, pairs, "2026-11-22"), 24, "throughput")

    few, lines = known(*(0.01,) * 5), known(*(0.01, -0.03) * 12)

    (line,) = few
    assert missing(line, f"{KEY}: 5 of 24 pairs of clusters", "replaces the default after 3 more") == []
    assert re.match(rf"{re.escape(str(KEY))}: equal clusters differ by 6\.[45] % at most in throughput \(1", lines[0])
    assert [fact for fact in ("less than 2.0 %", "the largest by 3.0 %", "of 0.2 %") if fact not in lines[1]] == []
    assert re.fullmatch(r"in other metrics: fsyncs 1[0-9.]+ %", lines[2])
    assert lines[3] == f"kept in {KEY.path}"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("galera", "--pairs", "7"), "--pairs 7: use 8 or more pairs of clusters, and 8 rounds or more of each"),
        (("galera", "--rounds", "7"), "--pairs 24 --rounds 7: use"),
        (("galera", "--seconds", "100"), "--seconds 100: 24 pairs of clusters need 120 s or more"),
        (("galera", "--seconds", "1m"), "--seconds 60: 24 pairs of clusters need 120 s or more"),
        (("galera", "--seconds", "nan"), "--seconds 'nan': it accepts a time in ms, s, min, h or d"),
        (("galera", "--open-loop"), "--open-loop: mysqlslap:write has no arrival rate"),
        (("galera", "--workload", "tpch"), "unknown workload 'tpch'; known: tpcc, sysbench, mysqlslap"),
        (("galara",), "unknown topology 'galara'"),
        (("galera", "--provisioner", "here"), "unknown provisioner 'here'"),
    ],
)
def test_wrong_arguments_are_one_sentence(called, words, error):
    """Nothing is started; the exit code is 2."""
    ended = called("calibrate", *words)

    assert ended.returncode == 2
    assert f"dbcluster: {error}" in ended.stderr  # after the lines of a wait for the machine
    assert "Traceback" not in ended.stderr


def test_the_help_says_what_it_is_for(called):
    """What is measured, what it changes, that it can be interrupted, and an example."""
    text = " ".join(called("calibrate", "--help").stdout.split())

    assert "Measure how far fresh equal clusters differ." in text
    assert "Later claims between separate clusters use it in place of a default." in text
    assert "After Ctrl-C, the same command continues." in text
    assert "example: dbcluster calibrate galera --workload mysqlslap:write" in text
    assert "eight minutes with --seconds 8m" in text


def test_real_clusters_are_started_afresh_for_each_pair(pool, monkeypatch):
    """Two servers under a real load, twice; no server of the first pair is in the second, and none is left."""
    monkeypatch.setattr(round_length, "STEPS", 20)
    workload = MySQLSlap("write", concurrency=4, queries=40, rows=50, int_columns=1, char_columns=1)
    variant = pool.resolution.resolve(ClusterSpec("standalone", release="mariadb:10.11"), switched=False)
    fresh, servers = calibrate.FreshPairs(variant, workload, pool), []
    for number in (0, 1):
        with fresh(number) as source:
            found = calibrate.difference_of(source, 8)
            difference, noise = found["throughput"]
            servers.append({node.process.pid for cluster in pool.clusters for node in cluster.nodes})
        assert math.isfinite(difference)
        assert noise > 0
        assert {"goodput", "drained_throughput", "fsyncs_per_commit"} <= found.keys()
        assert not found.keys() & counters.STATES.keys()
        assert pool.clusters == []
    assert [len(pids) for pids in servers] == [2, 2]
    assert not servers[0] & servers[1]


def test_sigterm_ends_a_calibration_as_any_command(tmp_path):
    """What was measured is kept and said, the servers end, and the exit code is that of SIGTERM."""
    words = [alone(tmp_path), "calibrate", "standalone", "--release", "mariadb:10.11", "--pairs", "1000"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=ROOT) as started:
        before = list(itertools.takewhile(lambda line: "ready in" not in line, started.stderr))
        started.terminate()
        rest = started.stderr.read()

    assert before
    assert re.search(r"interrupted: \d+ of 1000 pairs of clusters are kept; the same command continues\n", rest)
    assert started.returncode == 128 + signal.SIGTERM
