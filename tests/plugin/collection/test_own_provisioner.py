"""Tests that name their provisioner: a run of them alone has it, and among others they are skipped."""

from __future__ import annotations

import pytest

from tests.support import conftests
from tests.support.resumed import FAKE, WORDS

SUITE = """
    import pytest
    from pytest_dbcluster.spec import ClusterSpec
    from pytest_dbcluster.workloads.sysbench import SysBench

    ONE = ClusterSpec("galera", nodes=3)

    {mark}
    def test_it(measure):
        one, other = measure(SysBench(), on=[ONE, ONE.with_options(lock_wait_timeout=40)])
        one.against(other)
"""
OWN = '@pytest.mark.provisioner("vm")'


@pytest.fixture
def suites(pytester, monkeypatch):
    """Two suites on made-up rounds, of which one names its provisioner."""
    monkeypatch.setenv("COLUMNS", "400")
    pytester.makeconftest(FAKE + conftests.NO_CHARTS + conftests.PROVISIONER)
    for folder, mark in (("guests", OWN), ("others", "")):
        (pytester.path / folder).mkdir()
        pytester.makepyfile(**{f"{folder}/test_{folder}": SUITE.format(mark=mark)})
    return pytester


def run(suites, *words):
    """A run, with the provisioner that it had."""
    result = suites.runpytest_inprocess(*WORDS, "-rs", *words)
    file = suites.path / "provisioner"
    found = file.read_text() if file.exists() else ""
    file.unlink(missing_ok=True)
    return result, found


@pytest.mark.parametrize("words", [["guests"], ["-k", "guests"], ["guests", "-n1"]])
def test_a_run_of_such_tests_alone_has_their_provisioner(suites, words):
    """Whether they are all there is, or all that was chosen."""
    result, provisioner = run(suites, *words)

    assert provisioner == "vm"
    result.assert_outcomes(passed=1, **({"deselected": 1} if "-k" in words else {}))


def test_among_other_tests_they_are_skipped(suites):
    """One run has one provisioner; the reason has the command that runs them."""
    result, provisioner = run(suites)

    assert provisioner == "local"
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["*it needs --db-provisioner vm, unlike other tests of this run; run it separately: pytest guests"]
    )


def test_the_option_counts_more_than_the_mark(suites):
    """Also where it names the default."""
    result, provisioner = run(suites, "--db-provisioner=local")

    assert provisioner == "local"
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("@pytest.mark.provisioner()", 'wrong mark of guests/test_guests.py::test_it; usage: provisioner("vm")'),
        ('@pytest.mark.provisioner("vms")', "unknown provisioner 'vms'; known: container, ec2, local, ssh, vm"),
    ],
)
def test_a_wrong_mark_is_a_usage_error(suites, mark, words):
    """It says how the mark is written, and which names there are."""
    suites.makepyfile(**{"guests/test_guests": SUITE.format(mark=mark)})
    result, _ = run(suites, "guests")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*ERROR: {words}*"])
