"""What pytest makes of claims: outcomes, refusals and texts. The rounds are made up, so no server is started."""

from __future__ import annotations

import fnmatch
import subprocess
import sys

import pytest

from pytest_dbcluster.errors import CommandFailed, Unsupported
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import Series
from pytest_dbcluster.plugin.session import DBSession
from pytest_dbcluster.reporting.charts import drawing
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy

HOLDS = "def test_it(measure):\n    slow, fast = measure(0, on=[1.0, 0.5])\n    assert fast.beats(slow)\n"
FAILS = "def test_it(measure):\n    slow, fast = measure(0, on=[1.0, 0.5])\n    assert slow.beats(fast)\n"
OPEN = "def test_it(measure):\n    one, other = measure(0, on=[1.0, 1.0])\n    assert one.beats(other)\n"
QUIET = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]  # its import takes longer than the run


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a suite on made-up rounds: ``measure(load, on=[seconds, ...])``. No chart or page is made."""

    def measurement(self, call):
        if isinstance(call.workload, Exception):
            raise call.workload
        source = FakeSource(tuple(f"v{n}" for n in range(len(call.on))), noisy(*call.on, sd=0.1))
        return Measurement(source, self.settings.rules(), test=call.item.nodeid, number=call.number)

    monkeypatch.setattr(DBSession, "measurement", measurement)
    monkeypatch.setattr(drawing, "available", lambda: False)
    monkeypatch.setenv("COLUMNS", "400")  # no line of ours is wrapped

    def run(source, *options):
        pytester.makepyfile(test_suite=source)
        return pytester.runpytest_inprocess(*QUIET, "--db-seed=5", *options)

    return run


def refusal(result):
    """The one line with which a run was refused."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    return line.removeprefix("ERROR: ")


def test_a_claim_that_holds_is_a_pass(run):
    """Nothing else is."""
    run(HOLDS).assert_outcomes(passed=1)


def test_a_claim_that_fails_is_a_failure_with_its_message(run):
    """Sentence, next step and figures are shown, not pytest's repr; with -vv also the details."""
    first = ["REFUTED: v0 is not faster than v1; measured 0.*x (99.9 % interval *), claimed *", "  next: the page *"]
    result = run(FAILS)

    result.assert_outcomes(failed=1)
    figures = "  12 pairs in *; this verdict is wrong at most 1 time in 2000"
    result.stdout.fnmatch_lines([*first, figures, "  noise, seed and all other figures: -vv, or the page"])
    assert "Hodges-Lehmann" not in result.stdout.str()
    run(FAILS, "-vv").stdout.fnmatch_lines([*first, figures, "  details:", "*seed 5", "*Hodges-Lehmann*"])


def test_two_measurements_of_a_test_have_orders_of_their_own(run):
    """Also where their workloads and variants have the same names: their numbers differ."""
    twice = (
        f"{HOLDS}    again, faster = measure(0, on=[1.0, 0.5])\n    assert faster.beats(again)\n"
        "    assert slow.measurement.drawing.blocks.seed != again.measurement.drawing.blocks.seed\n"
    )

    run(twice).assert_outcomes(passed=1)


def test_an_open_claim_is_neither_pass_nor_failure(run):
    """It is shown as I with its own word, and the run does not fail."""
    result = run(OPEN, "--db-max-pairs=12")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["test_suite.py I*", "*1 inconclusive*"])


def test_an_open_claim_does_not_stop_a_run_at_its_first_failure(run):
    """With -x the next test still runs."""
    result = run(OPEN + HOLDS.replace("test_it", "test_next"), "--db-max-pairs=12", "-x")

    assert result.parseoutcomes() == {"passed": 1, "inconclusive": 1}


def test_a_strict_run_fails_on_an_open_claim(run):
    """--db-strict is for gates that want an answer."""
    result = run(OPEN, "--db-max-pairs=12", "--db-strict")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["INCONCLUSIVE: whether v0 is faster than v1; measured *", "  why: cap of 12 pairs", "  next: it needs *"]
    )


def test_measuring_without_a_claim_is_an_error(run):
    """Such a test would be green whatever the servers did."""
    result = run("def test_it(measure):\n    measure(0, on=[1.0, 0.5])\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["test_suite.py::test_it measured fake load but makes no claim; add assert a.beats(b) or another claim"]
    )


def test_a_verdict_that_nobody_read_is_an_error(run):
    """A claim without assert would be green whatever the answer."""
    result = run(FAILS.replace("assert ", ""))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["test_suite.py::test_it: the test does not read the verdict of v0.beats(v1); assert it"]
    )


def test_each_measurement_of_a_test_needs_a_claim(run):
    """A second one is not covered by the first one's claims."""
    result = run(HOLDS + "    measure(0, on=[1.0, 0.5])\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*measured fake load but makes no claim*"])


def test_a_comparison_beside_needs_no_assert(run):
    """It claims nothing; it is printed."""
    source = "def test_it(measure):\n    a, b = measure(0, on=[1.0, 0.5])\n    a.against(b)\n    assert b.beats(a)\n"

    run(source).assert_outcomes(passed=1)


def test_a_failing_body_is_shown_instead_of_what_it_did_not_reach(run):
    """The test's own error is the one that counts."""
    result = run("def test_it(measure):\n    measure(0, on=[1.0, 0.5])\n    raise ValueError('mine')\n")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ValueError: mine*"])
    result.stdout.no_fnmatch_line("*makes no claim*")


def test_what_the_machine_lacks_is_a_skip(run, monkeypatch):
    """With the reason; other errors of ours are failures that show their text alone."""
    source = "import pytest_dbcluster.errors as e\ndef test_it(measure):\n    measure({}, on=[])\n"
    result = run(source.format(f"e.{Unsupported.__name__}('no netem here')"), "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * no netem here"])

    result = run(source.format(f"e.{CommandFailed.__name__}(['ls'], 2, '', 'no such file')"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["ls on localhost ended with 2: no such file"])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ([], ["index.html", "mine.txt", "run.json"]),
        (["--collect-only"], ["claims.jsonl", "mine.txt", "summary.md"]),
        (["-k", "other"], None),
    ],
    ids=["a run", "a collection", "a run that measures nothing"],
)
def test_a_run_that_measures_begins_without_the_claims_of_the_one_before(run, pytester, monkeypatch, words, left):
    """They are not shown as its own where every test of it is skipped or breaks before the first claim."""
    monkeypatch.setattr(drawing, "available", lambda: True)  # the page needs it
    latest = pytester.path / "reports" / "latest"
    latest.mkdir(parents=True)
    for name in ("claims.jsonl", "summary.md", "mine.txt"):
        (latest / name).touch()
    source = (
        "import pytest_dbcluster.errors as e\ndef test_it(measure):\n    measure(e.Unsupported('no netem'), on=[])\n"
    )
    run(source + "def test_other():\n    pass\n", *words)

    assert sorted(one.name for one in latest.iterdir() if one.is_file()) == (
        left or ["claims.jsonl", "mine.txt", "summary.md"]
    )


def test_a_run_whose_time_is_used_prepares_nothing(run):
    """Its other tests are undecided before their releases are looked for."""
    source = "def test_it(measure):\n    measure(ValueError('prepared'), on=[1.0, 0.5])\n"
    result = run(source, "--db-run-budget=0.000001", "-rs", "-v")

    assert result.parseoutcomes() == {"inconclusive": 1}
    run(source).assert_outcomes(failed=1)


@pytest.mark.parametrize("how", ["mark", "option"])
def test_reruns_until_green_are_refused(run, pytester, how):
    """A wrong verdict would only need to be drawn often enough."""
    if how == "mark":
        result = run("import pytest\n@pytest.mark.flaky\n" + HOLDS, "-o", "markers=flaky: of another plugin")
    else:
        pytester.makeconftest("def pytest_addoption(parser):\n    parser.addoption('--reruns', type=int)\n")
        result = run(HOLDS, "--reruns=3")

    why = ("test_suite.py::test_it: ", "measuring test must not run again", "until it passes")
    assert missing(refusal(result), *why, "remove the flaky mark or --reruns") == []


def test_flaky_tests_that_do_not_measure_are_left_alone(run):
    """What they do is none of our business."""
    source = "import pytest\n@pytest.mark.flaky\ndef test_it():\n    pass\n"

    run(source, "-o", "markers=flaky: of another plugin").assert_outcomes(passed=1)


def test_python_without_asserts_is_refused(pytester):
    """With -O Python would remove every claim's assert."""
    pytester.makepyfile(test_suite=HOLDS)
    words = [sys.executable, "-O", "-W", "ignore", "-m", "pytest", *QUIET]
    done = subprocess.run(words, cwd=pytester.path, capture_output=True, text=True, check=False)

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "removes assert statements, so no test would read a claim: run without -O" in " ".join(done.stderr.split())


PLAIN = "def test_plain():\n    pass\n"


@pytest.mark.parametrize(
    ("source", "how", "words"),
    [
        (PLAIN + HOLDS, ["--db-profile=fast"], "unknown profile 'fast'; known: quick, paper"),
        ("import pytest\n@pytest.mark.flaky\n" + HOLDS, ["-o", "markers=flaky: of another plugin"], "test_suite.py::*"),
    ],
)
def test_what_a_worker_refuses_ends_the_run(run, source, how, words):
    """The error is said once, before any test runs, by the process that the user started."""
    result = run(source, "-n2", *how)

    assert fnmatch.fnmatch(refusal(result), words)
    assert result.parseoutcomes() == {}


@pytest.mark.parametrize(
    ("source", "how", "seen"),
    [
        (HOLDS, ["-n0"], "expected time*"),
        (PLAIN, ["-n2", "-v"], "scheduling tests via LoadScheduling"),
        (PLAIN + HOLDS, ["-n2", "-v", "-k", "plain"], "scheduling tests via LoadScheduling"),
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


RELEASED = "import pytest\n@pytest.mark.releases({})\ndef test_it(measure, db_release):\n    print('on', db_release)\n"


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
        ("", ["--db-release=mysql:5.7", "-n1"], "mysql 5.7 is too old to be measured: *"),
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
    """As a usage error, also with workers."""
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


def test_an_answer_is_true_without_is(run):
    """`is True` is red whatever the answer; the message writes the assert that was meant."""
    result = run(HOLDS.replace("fast.beats(slow)", "fast.beats(slow) is True"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E*assert <v1.beats(v0): holds> is True", "E*an answer is neither True nor False: write assert v1.beats(v0)"]
    )


def test_two_series_are_never_equal(run):
    """The message writes the claim that was meant."""
    result = run(HOLDS.replace("fast.beats(slow)", "fast == slow"))

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*write a claim, such as assert v1.same_as(v0, within=0.05)"])


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (HOLDS.replace("(slow)", "(slow) == True"), "passed"),
        (FAILS.replace("(fast)", "(fast) == True"), "failed"),
        (OPEN.replace("(other)", "(other) == True"), "inconclusive"),
    ],
)
def test_an_answer_compared_with_true_is_the_answer(run, source, outcome):
    """What holds passes, what fails is red with its message, what is inconclusive is shown as I."""
    result = run(source, "--db-max-pairs=12")

    assert result.parseoutcomes() == {outcome: 1}
    if outcome == "failed":
        result.stdout.fnmatch_lines(["REFUTED: v0 is not faster than v1; measured *"])


def test_the_list_of_fixtures_names_every_claim(run):
    """`pytest --fixtures` says what measure gives, and how each claim is written."""
    result = run(PLAIN, "--fixtures")
    text = result.stdout.str().partition("measure -- ")[2].partition("\n\n")[0]

    claims = [name for name, value in vars(Series).items() if callable(value) and not name.startswith("_")]
    assert {"beats", "no_slower_than", "same_as", "scales", "lower", "against"} <= set(claims)
    assert [name for name in claims if name != "values" and f".{name}(" not in text] == []
    for words in ("on=[spec, other_spec]) gives", "ordered(", "measure.sweep(", "curve.every(", "measure: Measure"):
        assert words in text, words


def test_an_empty_results_directory_is_refused(run, pytester):
    """It would be the root of the project, whose own summary.md is no result."""
    (pytester.path / "summary.md").write_text("mine")

    assert missing(refusal(run(HOLDS, "--db-results=")), "--db-results: ", "a directory", "reports/latest") == []
    assert (pytester.path / "summary.md").read_text() == "mine"


TIMED = """
from pytest_dbcluster import TPCC, ClusterSpec

ONE = ClusterSpec("standalone")


def test_it(measure):
    a, b = measure(TPCC(seconds=2.0), on=[ONE, ONE.with_options(lock_wait_timeout=9)])
    assert b.beats(a)
"""


def test_a_budget_too_small_for_the_rounds_is_an_error(run, monkeypatch):
    """With the smallest one that suffices, before anything is made for the test."""
    monkeypatch.setattr(DBSession, "measurement", lambda *_, **__: pytest.fail("begun"))
    result = run(TIMED, "--db-budget=20")

    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(
        ["*tpcc w1 t4: the budget is too small for any claim: *--db-budget 32, or seconds=1.25 or less*"]
    )


def test_the_rest_of_the_run_is_too_short_for_a_claim(run, monkeypatch):
    """It is inconclusive before anything is made for it."""
    monkeypatch.setattr(DBSession, "measurement", lambda *_, **__: pytest.fail("begun"))
    assert run(TIMED, "--db-run-budget=20").parseoutcomes() == {"inconclusive": 1}
    result = run(TIMED, "--db-run-budget=20", "--db-strict")

    said = "*the run's budget has * s left (--db-run-budget), and this claim takes 40 s or more*"
    result.stdout.fnmatch_lines([said])


def test_the_expected_time_counts_clusters_and_skips(run, monkeypatch):
    """Each file starts one; a test that is skipped starts none."""
    skipped = TIMED[TIMED.index("\ndef") :].replace("def test_it", "@pytest.mark.skip\ndef test_other")
    monkeypatch.setattr(DBSession, "measurement", lambda *_, **__: pytest.skip("enough"))
    result = run(f"import pytest\n{TIMED}{skipped}")

    result.stdout.fnmatch_lines(["expected time: *; 1 cluster start x 4 s; 1 test will be skipped)"])
