"""What pytest decides before the first test: what is refused, and what is collected for which release and profile."""

from __future__ import annotations

import fnmatch
import subprocess
import sys

import pytest

from pytest_dbcluster.plugin.session import DBSession
from tests.support import conftests
from tests.support.facts import missing
from tests.support.suites import HOLDS, PLAIN, TIMED, refusal

RELEASED = "import pytest\n@pytest.mark.releases({})\ndef test_it(measure, db_release):\n    print('on', db_release)\n"


@pytest.mark.parametrize("how", ["mark", "option", "ini"])
def test_reruns_until_green_are_refused(run, pytester, how):
    """A wrong verdict would only need to be drawn often enough."""
    if how == "mark":
        result = run("import pytest\n@pytest.mark.flaky\n" + HOLDS, "-o", "markers=flaky: of another plugin")
    elif how == "option":
        pytester.makeconftest("def pytest_addoption(parser):\n    parser.addoption('--reruns', type=int)\n")
        result = run(HOLDS, "--reruns=3")
    else:
        pytester.makeconftest("def pytest_addoption(parser):\n    parser.addini('reruns', 'number of reruns')\n")
        run(HOLDS, "-o", "reruns=0").assert_outcomes(passed=1)
        result = run(HOLDS, "-o", "reruns=3")

    why = ("test_suite.py::test_it: ", "measuring test must not run again", "until it passes")
    assert missing(refusal(result), *why, "remove the flaky mark or --reruns") == []


def test_flaky_tests_that_do_not_measure_are_left_alone(run):
    """What they do is none of our business."""
    source = "import pytest\n@pytest.mark.flaky\ndef test_it():\n    pass\n"

    run(source, "-o", "markers=flaky: of another plugin").assert_outcomes(passed=1)


def test_python_without_asserts_is_refused(pytester):
    """With -O Python would remove every claim's assert."""
    pytester.makepyfile(test_suite=HOLDS)
    words = [sys.executable, "-O", "-W", "ignore", "-m", "pytest", *conftests.PLAIN]
    done = subprocess.run(words, cwd=pytester.path, capture_output=True, text=True, check=False)

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "removes assert statements, so no test would read a claim: run without -O" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("how", "words"),
    [
        pytest.param(
            ["-n1", "--db-profile=fast"], "unknown profile 'fast'; known: quick, paper", marks=pytest.mark.thorough
        ),
        (["-n2", "--db-release=mysql:5.7"], "mysql 5.7 is too old to be measured: *"),
    ],
)
def test_what_a_worker_refuses_ends_the_run(run, how, words):
    """The error is said once, before any test runs, by the process that the user started."""
    result = run(PLAIN + HOLDS, *how)

    assert fnmatch.fnmatch(refusal(result), words)
    assert result.parseoutcomes() == {}


@pytest.mark.parametrize(
    ("source", "how", "seen"),
    [
        (HOLDS, ["-n0"], "expected time*"),
        (PLAIN + HOLDS, ["-n1", "-v", "-k", "plain"], "scheduling tests via LoadScheduling"),
    ],
)
def test_workers_that_measure_nothing_are_left_alone(run, source, how, seen):
    """-n0 is no worker, and tests of another kind are distributed as before."""
    result = run(source, *how)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([seen])


def test_two_releases_repeat_each_test(run):
    """The matrix shows in the test ids; one release leaves them alone."""
    result = run(HOLDS, "--db-release=mariadb:10.11", "--db-release=mariadb:11.8", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*::test_it[[]mariadb:10.11] PASSED*", "*::test_it[[]mariadb:11.8] PASSED*"])

    run(HOLDS, "-v").stdout.fnmatch_lines(["*::test_it PASSED*"])


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--db-release=10.11", "a release is written NAME:VERSION or NAME:VERSION=DIRECTORY, such as mariadb:10.11 or"),
        (
            "--db-release=maria:10",
            "unknown server 'maria' in release 'maria:10'; known: mariadb, mysql, percona, pxc; `dbcluster releases` "
            "lists their versions and sources",
        ),
        ("--db-provisioner=docker", "unknown provisioner 'docker'; known: "),
        (
            "--db-provisioner=aws",
            "unknown provisioner 'aws'; known: container, ec2, local, ssh, vm; did you mean ec2?",
        ),
        ("--db-max-cost=5", "--db-max-cost was given, but the provisioner "),
        ("--db-profile=fast", "unknown profile 'fast'; known: quick, paper"),
        ("--db-parity=same", "unknown parity 'same'; known: vendor, normalised"),
        ("--db-alpha=0.05", "--db-alpha 0.05: it must be 0.0005 or 0.0001"),
        ("--db-max-pairs=0", "--db-max-pairs 0: it accepts a number above 0"),
        ("--db-max-pairs=161", "--db-max-pairs 161: a claim draws 160 pairs at most"),
        ("--db-budget=-1", "--db-budget '-1': it accepts a time in ms, s, min, h or d, such as 90s or 30min"),
        ("--db-budget=nan", "--db-budget 'nan': it accepts a time in ms, s, min, h or d"),
        ("--db-seed=-1", "--db-seed -1: it accepts 0 or more"),
        ("--db-run-budget=0", "--db-run-budget 0: it accepts a time above 0"),
        ("--db-cnf=none.cnf", "there is no none.cnf; its directory has: no .cnf file"),
    ],
)
def test_a_wrong_option_ends_the_run_before_anything_starts(run, option, words):
    """As a usage error: what was given, what is known."""
    assert refusal(run(HOLDS, option)).startswith(words)


def test_wrong_options_do_not_touch_a_run_that_measures_nothing(run):
    """A failing test of another kind is shown as itself."""
    result = run("def test_it():\n    raise ValueError('mine')\n", "--db-profile=fast")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: mine"])


def test_a_module_that_cannot_be_collected_is_shown_as_such(run):
    """Its report is of another kind than a test's, and the letter I has nothing to do with it."""
    result = run("import no_such_module\n")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["ERROR test_suite.py", "*1 error*"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


@pytest.mark.parametrize(
    ("names", "said", "seen"),
    [
        ("'mysql:9.7'", (), ["test_it"]),
        ("'mysql:9.7', 'mariadb:10.11'", (), ["test_it[mysql:9.7]", "test_it[mariadb:10.11]"]),
        ("'mysql:9.7'", ("--db-release=mariadb:11.8",), ["test_it"]),
        (
            "'mysql:9.7'",
            ("--db-release=mariadb:11.8", "--db-release=mysql:8.4"),
            ["test_it[mariadb:11.8]", "test_it[mysql:8.4]"],
        ),
        ("", ("--db-release=mariadb:11.8", "--db-release=mysql:8.4"), ["test_it"]),
    ],
)
def test_a_mark_says_which_releases_a_test_is_for(run, names, said, seen):
    """The run's own come first; an empty mark is for a test that names its releases itself."""
    result = run(RELEASED.format(names), "--collect-only", "-q", *said)

    assert [line.removeprefix("test_suite.py::") for line in result.outlines if "::" in line] == seen


def test_the_release_of_the_mark_is_the_one_that_is_measured(run):
    """Not the default of runs that name none."""
    run(RELEASED.format("'mysql:9.7'"), "-s").stdout.fnmatch_lines(["*on mysql:9.7*"])


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_a_test_knows_the_profile_of_its_run(run, profile):
    """It takes the scale of its loads from that."""
    run(f"def test_it(db_profile):\n    assert db_profile == '{profile}'\n", f"--db-profile={profile}").assert_outcomes(
        passed=1
    )


@pytest.mark.parametrize(
    ("head", "options", "words"),
    [
        (
            "",
            ["--db-release=mysql:5.7"],
            "mysql 5.7 is too old to be measured: the oldest versions are mariadb 10.5 and*",
        ),
        ("", ["--db-release=mariadb:11.9"], "unknown release mariadb:11.9; known: *"),
        (
            "from pytest_dbcluster import ClusterSpec\nPAIR = ClusterSpec('async_replication')\n",
            [],
            "test_suite.py: async_replication1: async_replication needs 2 nodes or more*",
        ),
    ],
)
def test_what_cannot_be_ends_the_run_before_a_test_begins(run, head, options, words):
    """As a usage error."""
    result = run(head + HOLDS, *options)

    assert fnmatch.fnmatch(refusal(result), words)
    assert result.parseoutcomes() == {}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("X = ClusterSpec('galera', nodes=0)", "nodes=0 of a galera cluster: a cluster has 1 node or more"),
        (
            "X = ClusterSpec('galera', node=3)",
            "ClusterSpec(...): there is no argument node=; write nodes=",
        ),
        (
            "import pytest\n\n@pytest.mark.releases(5)\ndef test_other(measure):\n    pass",
            "a release is written NAME:VERSION or NAME:VERSION=DIRECTORY, such as mariadb:10.11 or ",
        ),
    ],
)
def test_wrong_input_of_a_module_is_one_line(run, body, words):
    """With its file, and without a traceback through this package."""
    result = run(f"from pytest_dbcluster import ClusterSpec\n{body}\n{HOLDS}")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    (line,) = [line for line in result.outlines if words in line and not line.startswith("ERROR")]
    assert line.partition(words)[0] in ("test_suite.py:2: ", "")
    result.stdout.no_fnmatch_line("*spec.py*")
    result.stdout.no_fnmatch_line("*calls.py*")


def test_an_error_of_a_module_itself_keeps_its_traceback(run):
    """What is not ours is shown as pytest shows it."""
    result = run(f"def inner():\n    return 1 / 0\n\ninner()\n{HOLDS}")

    result.stdout.fnmatch_lines(["test_suite.py:4: in <module>", "*ZeroDivisionError*"])


def test_an_empty_results_directory_is_refused(run, pytester):
    """It would be the root of the project, whose own summary.md is no result."""
    (pytester.path / "summary.md").write_text("mine")

    assert missing(refusal(run(HOLDS, "--db-results=")), "--db-results: ", "a directory", "reports/latest") == []
    assert (pytester.path / "summary.md").read_text() == "mine"


def test_the_expected_time_counts_clusters_and_skips(run, monkeypatch):
    """Each file starts one; a test that is skipped starts none."""
    skipped = TIMED[TIMED.index("\ndef") :].replace("def test_it", "@pytest.mark.skip\ndef test_other")
    monkeypatch.setattr(DBSession, "measurement", lambda *_, **__: pytest.skip("enough"))
    result = run(f"import pytest\n{TIMED}{skipped}")

    result.stdout.fnmatch_lines(["expected time: *; 1 cluster start x 4 s; 1 test will be skipped)"])
