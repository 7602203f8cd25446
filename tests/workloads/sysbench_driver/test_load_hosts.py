"""Terminals that several load hosts divide between them: nothing is lost, nothing is doubled, all begin at one time."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.errors import WorkloadError
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.sysbench_driver import Call
from pytest_dbcluster.workloads.workload import LoadEnded
from tests.workloads.sysbench_driver.calls import ROWS, SCHEMA, call


@pytest.fixture(scope="module")
def others(provisioner):
    """Two more hosts for the load."""
    hosts = provisioner.acquire(ClusterSpec("galera", nodes=2, name="clients"))
    yield tuple(hosts)
    provisioner.give_back(hosts)


def test_threads_have_the_numbers_and_endpoints_of_one_host(galera2, filled, others):
    """Five threads on two hosts go round the nodes as they do on one, and each has a number of its own."""
    setting = dataclasses.replace(filled(galera2), others=others[:1])
    outcome, reports = sysbench_driver.run(call(setting, "oltp_point_select", threads=5), setting, seconds=0.1)

    assert [one["id"] for one in reports] == [0, 1, 2, 3, 4]
    assert [one["nodes"] for one in reports] == [["node1"], ["node2"], ["node1"], ["node2"], ["node1"]]
    assert outcome.seconds >= 0.1
    assert max(report["begun"] for report in reports) < 0.001  # since the common begin
    assert [one.name for one in outcome.load_hosts] == ["node1", "node1"]


def test_what_the_hosts_did_is_what_the_server_counted(standalone, filled, others):
    """Each insert has an id of its own: the ledger's commits, and the rows, are those of all hosts together."""
    setting = dataclasses.replace(filled(standalone), others=others)
    inserting = call(setting, "oltp_insert", threads=7)
    outcome, reports = sysbench_driver.run(inserting, setting, seconds=0.6)
    ((rows,),) = standalone.nodes[0].query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1")
    committed = [one["kinds"]["oltp_insert"]["committed"] for one in reports]

    assert rows == 1000 + outcome.commits
    assert outcome.commits == sum(committed)
    assert [sum(committed[:3]) > 0, sum(committed[3:5]) > 0, sum(committed[5:]) > 0] == [True] * 3
    assert outcome.ledger.errors == {}
    assert sum(outcome.by_tenth) == outcome.good == outcome.ledger.total.latencies.total
    assert outcome.client_seconds == pytest.approx(sum(one.client_seconds for one in outcome.load_hosts))


def test_an_open_loop_has_its_rate_over_all_hosts(standalone, filled, others):
    """Each terminal starts what it would start on one host: not one transaction more or less was to start."""
    alone = filled(standalone)
    asked = call(alone, "oltp_point_select", threads=5)
    one, _ = sysbench_driver.run(asked, alone, seconds=0.6, rate=300)
    divided = dataclasses.replace(alone, others=others)
    several, reports = sysbench_driver.run(asked, divided, seconds=0.6, rate=300)

    assert several.offered == one.offered
    assert several.good <= several.offered
    assert several.rate == 300
    assert len(several.load_hosts) == 3
    assert sum(several.by_second) == several.good
    assert [report["id"] for report in reports] == [0, 1, 2, 3, 4]


def test_fewer_threads_than_hosts_are_fewer_hosts(standalone, filled, others):
    """One thread runs on the first host, with the command line of one host."""
    alone = filled(standalone)
    setting = dataclasses.replace(alone, others=others)
    outcome, reports = sysbench_driver.run(call(setting, "oltp_point_select", threads=1), setting, seconds=0.05)

    assert outcome.load_hosts == ()
    assert len(reports) == 1


WRONG = """
local terminal = require("terminal")
terminal.load {
   kinds = {"nothing"},
   %s = function(t) if t.id >= 2 then error("terminal " .. t.id .. " gave up") end end,
   draw = function() return 1 end,
   execute = function(t) t.con:query("DO 0") end,
}
"""


@pytest.mark.parametrize("step", ["connect", "done"])
def test_a_host_that_fails_fails_the_round_with_its_name(standalone, filled, others, tmp_path, step):
    """Before the begin and in mid-run, with the message of its terminal; the other host ends too."""
    setting = dataclasses.replace(filled(standalone), others=others[1:])
    (tmp_path / "wrong.lua").write_text(WRONG % step)
    to = sysbench_driver.endpoints(standalone, "all", writes=True)
    wrong = Call("wrong", str(tmp_path / "wrong.lua"), 4, SCHEMA, to)

    with pytest.raises(WorkloadError, match=r"^wrong from load host node2 ended with 1 on .*terminal [23] gave"):
        sysbench_driver.run(wrong, setting, seconds=0.3)


def test_what_all_hosts_did_is_told_when_an_error_ends_one_of_them(standalone, filled, others):
    """The 25th row of the third terminal is there already; its host ends then, the other one with the round."""
    setting = dataclasses.replace(filled(standalone), others=others[1:])
    node, heard = standalone.nodes[0], []
    node.query(f"INSERT INTO {SCHEMA}.sbtest1 (id, k, c, pad) VALUES ({ROWS + 25 * 4 + 2}, 1, '', '')")

    with pytest.raises(LoadEnded) as caught:
        sysbench_driver.run(call(setting, "oltp_insert"), setting, seconds=1, heard=heard.extend)

    total = caught.value.result.ledger.total
    assert str(caught.value).startswith(
        "oltp_insert from load host node2 ended early on standalone1: error 1062 on node1"
    )
    assert [report["id"] for report in heard] == [0, 1, 2, 3]
    assert node.query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1") == [(ROWS + 1 + total.committed,)]
