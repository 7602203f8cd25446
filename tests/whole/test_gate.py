"""The example workflow's job, run as it is written, finds a made-up regression of a my.cnf, also in a fork."""

from __future__ import annotations

import pytest

from tests.support import conftests
from tests.support.checkouts import Checkout
from tests.support.facts import missing

CNF = "fixtures/mycnf/flush_2.cnf"
TEXT = "[mysqld]\ninnodb_flush_log_at_trx_commit = {}\n"
# The workflow gives the comparison five minutes and two workloads. It ends as soon as its answer is known. One client
# waits for every flush; 50 share them, and on a fast disk they lose nothing.
SHORTER = ["--seconds", "120", "--workload", "mysqlslap:write", "--threads", "1"]


def test_a_flush_at_each_commit_is_found_by_the_gate(tmp_path):
    """The base flushes once a second. The job is red and asks for no rights; its artifact has result and number."""
    checkout = Checkout(tmp_path, changes=conftests.SHORT_ROUNDS, compare=SHORTER)
    base = checkout.commit("base", **{CNF: TEXT.format(2)})
    checkout.commit("head", **{CNF: TEXT.format(1)})
    event = {"pull_request": {"number": 7, "base": {"sha": base}, "head": {"repo": {"fork": True}}}}
    done = checkout.runs("compare-example.yml", "compare", event_name="pull_request", event=event, token="read only")
    said = done.steps["Compare"].stdout.splitlines()
    if fast := [line for line in said if "an fsync takes" in line]:
        pytest.skip(f"a flush costs nothing here: {fast[0]}")

    assert done.red == ["Compare"], done.text
    assert done.steps["Compare"].returncode == 3
    assert missing(said[-1], "head_flush_2 is worse than base_flush_2", ": mysqlslap write c1") == []
    assert said[-2] == f"report: {checkout.place}/reports/compare/index.html"
    assert said[-1] in done.summary.read_text()
    assert (done.artifacts / "comparison" / "comparison.md").read_text() == done.steps["Compare"].stdout
    assert (done.artifacts / "comparison" / "pull_request.txt").read_text() == "7\n"
    assert (done.artifacts / "page" / "index.html").exists()
    assert checkout.installed[-1] == "pip install .[plots]"
    assert checkout.calls == []
