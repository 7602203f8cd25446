"""Measuring tests with several workers: who runs what, and what the process in front knows of it."""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.reporting.documents.run_document import read_run
from pytest_dbcluster.system import cache
from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
CACHE = cache.root().parent  # read before pytester gives its runs a home of their own
MODULE = """
    import os
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec({topology!r}, nodes={nodes})
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_first(measure, record_property):
        record_property("process", os.getpid())
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)

    def test_second(measure, record_property):
        record_property("process", os.getpid())
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        assert other.beats(one)
"""
WORDS = ["-p", "no:cacheprovider"]
QUICK = FAKE.read_text() + conftests.NO_CHARTS


@pytest.fixture
def made_up(pytester, monkeypatch):
    """A suite on made-up rounds: three modules, the first and the last of which share a cluster."""
    pytester.makeconftest(QUICK)
    for name, value in {**conftests.ONLY_OURS, "COLUMNS": "400"}.items():  # no line of ours is wrapped
        monkeypatch.setenv(name, value)
    for name, topology, nodes in (("a", "galera", 3), ("b", "standalone", 1), ("c", "galera", 3)):
        pytester.makepyfile(**{f"test_{name}": MODULE.format(topology=topology, nodes=nodes)})
    return pytester


def run(pytester, *more, workers=1):
    """A run with workers, which are processes of their own."""
    return pytester.runpytest_inprocess(*WORDS, f"-n{workers}", *more)


def processes(pytester):
    """Which process ran the tests of each module, from the JUnit file."""
    found = {}
    for case in itertools.chain.from_iterable(ElementTree.parse(pytester.path / "junit.xml").getroot()):
        [value] = [one.get("value") for one in case.iter("property") if one.get("name") == "process"]
        found.setdefault(case.get("classname"), set()).add(value)
    return found


# Drawing charts and making the page takes longer than all else in these runs.
SKETCHES = """
PATCHES["pytest_dbcluster.reporting.charts.claim.svg"] = lambda *given, **more: "<svg/>"
PATCHES["pytest_dbcluster.reporting.page.report_page.html"] = lambda *given: "page"
"""
LATE = """
FakeSession.close = lambda self, **how: self.report.line("said at the end") or DBSession.close(self, **how)
"""


def test_every_cluster_is_on_one_worker_and_every_result_in_front(made_up):
    """Two modules share a cluster and so a worker; terminal, files and Allure have all six claims, and no others.

    The JUnit file has the message of each claim. A line after the last test of a worker reaches the terminal, and is
    no test in that file.
    """
    for stale in ("run.json", "allure-results/of-before-result.json", "rounds/07-of-before.csv"):
        (made_up.path / "reports" / "latest" / stale).parent.mkdir(parents=True, exist_ok=True)
        (made_up.path / "reports" / "latest" / stale).touch()
    made_up.makeconftest(FAKE.read_text() + SKETCHES + LATE)
    result = run(made_up, "-p", "allure_pytest", "--junit-xml=junit.xml", "--db-seed=4", workers=2)

    result.assert_outcomes(passed=6)
    ran = processes(made_up)
    assert {len(one) for one in ran.values()} == {1}
    assert ran["test_a"] == ran["test_c"] != ran["test_b"]

    result.stdout.fnmatch_lines(["expected time: *6 tests*", "*performance claims*", "6 hold  *report: *"])
    assert sum(line.startswith("expected time") for line in result.outlines) == 1
    assert any(
        line.startswith(("[gw0] mysqlslap write   block 1", "[gw1] mysqlslap write   block 1"))
        for line in result.outlines
    )
    shown = [line for line in result.outlines if "✓ holds  other is " in line]
    assert sum(line.startswith(("[gw0] ✓ holds", "[gw1] ✓ holds")) for line in shown) == 6
    assert sum(line.startswith("✓ holds") for line in shown) == 6
    assert sorted(line for line in result.outlines if "said at" in line) == [f"[gw{n}] said at the end" for n in (0, 1)]
    cases = list(ElementTree.parse(made_up.path / "junit.xml").getroot().iter("testcase"))
    assert sorted(case.get("name") for case in cases) == ["test_first"] * 3 + ["test_second"] * 3
    assert all("HOLDS: other is faster than " in case.findtext("system-out") for case in cases)

    latest = made_up.path / "reports" / "latest"
    claims = [json.loads(line) for line in (latest / "claims.jsonl").read_text().splitlines()]
    assert len({claim["rounds_file"] for claim in claims}) == len({claim["chart_file"] for claim in claims}) == 6
    assert all((latest / claim[name]).stat().st_size for claim in claims for name in ("rounds_file", "chart_file"))
    assert {claim["seed"] for claim in claims} == {4}
    assert all("--db-seed 4 fixed the order" in claim["message"] for claim in claims)
    assert (latest / "summary.md").read_text().count("`other.beats(") == 6
    told = [json.loads(path.read_text()) for path in (latest / "allure-results").glob("*-result.json")]
    assert sorted(len(one["steps"]) for one in told) == [1] * 6
    assert len(list((latest / "rounds").iterdir())) == 6
    assert (latest / "allure-results" / "categories.json").exists()


OTHERS = """
    import os
    from pytest_dbcluster.system import machine_lock as machine

    def test_takes_cores(record_property):
        record_property("process", os.getpid())
        record_property("does", [one.does for one in machine.this().holders() if one.pid == os.getpid()])
"""


MACHINE = """
from pathlib import Path
from pytest_dbcluster.system import machine_lock

own = machine_lock.MachineLock(Path(__file__).with_name("machine"))
PATCHES["pytest_dbcluster.system.machine_lock.this"] = lambda: own
"""


@pytest.mark.parametrize("measures", [True, False])
def test_a_test_that_does_not_measure_has_a_turn_beside_those_that_do(made_up, measures):
    """It takes cores, which the rounds of other workers need; in a run without rounds nobody waits."""
    made_up.makeconftest(QUICK + MACHINE)
    made_up.makepyfile(test_others=OTHERS)
    words = ["--junit-xml=junit.xml", "test_others.py", *(["test_b.py"] if measures else [])]
    run(made_up, *words).assert_outcomes(passed=3 if measures else 1)

    said = [one.get("value") for one in ElementTree.parse(made_up.path / "junit.xml").iter("property")]
    assert ("['building']" in said, "[]" in said) == (measures, not measures)


ENDS = """
import os
FakeSession.group_ends = lambda self: self.report.line(f"{os.getpid()} ended a group")
"""


def test_the_clusters_of_a_group_end_with_it(made_up):
    """Before the first test of the next one: the other worker may need their memory."""
    made_up.makeconftest(QUICK + ENDS)
    made_up.makepyfile(test_d=MODULE.format(topology="galera", nodes=2))
    result = run(made_up, "--junit-xml=junit.xml")

    result.assert_outcomes(passed=8)
    [[worker]] = {tuple(one) for one in processes(made_up).values()}
    ended = f"[gw0] {worker} ended a group"
    shown = [line for line in result.outlines if line == ended or line.startswith("[gw0] ✓ holds  other is ")]
    assert [line == ended for line in shown] == [False] * 4 + [True] + [False] * 2 + [True] + [False] * 2


def test_workers_share_the_seed_of_the_run(made_up, monkeypatch):
    """Without --db-seed there is one for all, which their messages leave out; the last lines are said once.

    Who says how to distribute gets that: claims are as good, and clusters may be built twice.
    """
    (made_up.path / "test_c.py").unlink()
    monkeypatch.setenv("OVERRIDDEN", "innodb_x_is_overridden")
    result = run(made_up, "--dist=loadfile", "-v", "-k", "first", workers=2)

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*scheduling tests via LoadFileScheduling*"])
    assert result.outlines.count("innodb_x_is_overridden") == 1
    claims = (made_up.path / "reports" / "latest" / "claims.jsonl").read_text().splitlines()
    assert len({json.loads(line)["seed"] for line in claims}) == 1
    assert not any("fixed the order of the rounds" in json.loads(line)["message"] for line in claims)


DIES = """
    import dataclasses, os, signal
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)

    @dataclasses.dataclass(frozen=True)
    class Load:
        threads: int = 8

    def test_before(measure):
        measure.sweep(Load(), on=[ONE, ONE.named("other")], threads=(1, 4)).draw(2)

    def test_dies(measure):
        one, other = measure("mysqlslap mixed", on=[ONE, ONE.named("other")])
        assert other.beats(one)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_crashed_worker_loses_its_own_test_alone(made_up):
    """The others of its group go to another worker, what it had told stays told, and ``run.json`` has the crash."""
    made_up.makepyfile(test_a=DIES)
    result = run(made_up, "--junit-xml=junit.xml")  # another worker takes its place

    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*worker 'gw?' crashed while running 'test_a.py::test_dies'*",
            "*= curve: Load,*",
            "5 hold, 1 broken*",
        ]
    )
    assert len(list((made_up.path / "reports" / "latest" / "curves").iterdir())) == 1
    tests = {one.test: one for one in read_run(made_up.path / "reports" / "latest").tests}
    assert tests["test_a.py::test_dies"].outcome == "broken"
    assert "crashed" in tests["test_a.py::test_dies"].reason


@pytest.fixture
def outside(made_up):
    """Two files with equal tests, which lie outside of the rootdir, and the options of a run of them."""
    options = ["--confcutdir", str(made_up.path), "--import-mode=importlib"]
    for directory in ("inside", "one", "two"):
        (made_up.path / directory).mkdir()
    (made_up.path / "test_a.py").rename(made_up.path / "inside" / "test_a.py")
    return [*options, "--rootdir", str(made_up.path / "inside"), "one/test_one.py", "two/test_two.py"]


PLAIN = """
    def test_plain():
        pass

    def test_other():
        pass
"""


def test_tests_outside_of_the_rootdir_all_run(made_up, outside):
    """Pytest gives tests of two such files equal node ids; beside claims each of them runs once."""
    made_up.makepyfile(**{"one/test_one": PLAIN, "two/test_two": PLAIN})
    result = run(made_up, *outside, "inside/test_a.py")

    result.assert_outcomes(passed=6)


@pytest.mark.parametrize(
    "workers", [pytest.param(["-n1"], marks=pytest.mark.thorough), []], ids=["a worker", "one process"]
)
def test_claims_with_equal_node_ids_are_refused(made_up, outside, workers):
    """Claims are followed by node id, so the error names both files and the rootdir that tells them apart."""
    body = MODULE.format(topology="galera", nodes=3)
    made_up.makepyfile(**{"one/test_one": body, "two/test_two": body})
    result = made_up.runpytest_inprocess(*WORDS, *workers, *outside)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = result.stderr.str() + result.stdout.str()
    assert f"{made_up.path}/one/test_one.py and {made_up.path}/two/test_two.py have the same node id ::test_f" in told
    assert f"--rootdir={made_up.path}" in told

    if not workers:
        outside[outside.index("--rootdir") + 1] = str(made_up.path)
        made_up.runpytest_inprocess(*WORDS, *outside).assert_outcomes(passed=4)


LOSES = """
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    return True if item.name == "test_second" and runtestprotocol(item, log=False, nextitem=nextitem) else None
"""


@pytest.mark.parametrize("workers", [["-n1"], []], ids=["a worker", "one process"])
def test_a_run_with_tests_without_an_outcome_is_red(made_up, workers):
    """Whatever lost them, their names are printed and are in ``run.json``."""
    made_up.makeconftest(QUICK + LOSES)
    result = made_up.runpytest_inprocess(*WORDS, *workers)

    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    lost = "no worker reported an outcome for 3 tests: " + ", ".join(f"test_{name}.py::test_second" for name in "abc")
    result.stdout.fnmatch_lines([f"*{lost}*"])
    document = json.loads((made_up.path / "reports" / "latest" / "run.json").read_text())
    assert lost in document["cut_short"]


def test_tests_that_share_a_cluster_run_together_without_workers_too(made_up):
    """The third module comes before the second one, whose cluster is another."""
    result = made_up.runpytest_inprocess(*WORDS, "--collect-only", "-q")

    ids = [line for line in result.outlines if "::" in line]
    assert ids == [f"test_{module}.py::test_{which}" for module in "acb" for which in ("first", "second")]


REAL = """
    import os, signal
    import pytest
    from pytest_dbcluster.spec import ClusterSpec
    from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

    ONE = ClusterSpec("standalone")
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_same(measure, db_release):
        one, other = measure(MySQLSlap("write", concurrency=4, queries=200, rows=100), on=[ONE, OTHER])
        other.against(one)
        if str(db_release) == os.environ.get("DIES_ON"):
            os.kill(os.getpid(), signal.SIGKILL)
"""


def rounds(place):
    """The measured part of each round of a run: when it began and ended."""
    found = []
    for path in (place / "rounds").glob("*.csv"):
        with path.open() as file:
            found += [(float(row["started"]), float(row["seconds"])) for row in csv.DictReader(file)]
    return [(began, began + seconds) for began, seconds in found]


def test_no_two_rounds_of_any_run_overlap(pytester, monkeypatch, data):
    """Two workers and a run of its own, on real servers; those of a worker that is killed end with it."""
    for name, value in {**conftests.ONLY_OURS, "XDG_CACHE_HOME": str(CACHE)}.items():
        monkeypatch.setenv(name, value)
    pytester.makepyfile(test_real=REAL)
    pytester.makeconftest(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.SHORT_ROUNDS)
    words = [sys.executable, "-m", "pytest", *WORDS, "--db-max-pairs=4"]
    both = ["-n2", "--max-worker-restart=0", "--db-release=mariadb:10.11", "--db-release=mariadb:11.8"]
    with (
        subprocess.Popen([*words, *both, "--db-results=two"], env={**os.environ, "DIES_ON": "mariadb:11.8"}) as two,
        subprocess.Popen([*words, "--db-results=alone"]) as alone,
    ):
        assert (two.wait(300), alone.wait(300)) == (1, 0)

    several = {name: rounds(pytester.path / name) for name in ("two", "alone")}
    assert {name: len(many) for name, many in several.items()} == {"two": 2 * 8, "alone": 8}
    for (_, ended), (began, _) in itertools.pairwise(sorted(itertools.chain.from_iterable(several.values()))):
        assert began >= ended
    # A supervisor ends the servers of a dead run a moment later.
    wait.until(lambda: [str(one) for run in runs.list_runs() for one in run.processes()], "the end of all", seconds=60)
