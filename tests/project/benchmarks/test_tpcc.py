"""The scripts about TPC-C and the ledger: what they compare, skip and compute, and a load without its ledger."""

import argparse
import dataclasses
import shutil
import types

import pytest

from benchmarks import ledger_cost, tpcc_bring_up, tpcc_client, tpcc_connector, tpcc_load, tpcc_peers
from benchmarks.ledger_cost import Speed
from benchmarks.tpcc_client import Cost
from benchmarks.tpcc_peers import Comparison, Connector, GoTPC, SysbenchTPCC
from pytest_dbcluster.errors import WorkloadError
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.sysbench import SCHEMA
from pytest_dbcluster.workloads.workload import Setting


def test_a_peer_that_is_not_on_path_is_skipped_with_a_word(monkeypatch, tmp_path):
    """The word names the program and where it was looked for; one that is there is used."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tpcc_peers.split([GoTPC()]) == ([], {"go-tpc": "no go-tpc on PATH"})

    shutil.copy2("/bin/true", tmp_path / "go-tpc")
    (found,), missing = tpcc_peers.split([GoTPC()])

    assert found.name == "go-tpc"
    assert missing == {}


def test_go_tpc_runs_once_for_each_server_of_a_cluster():
    """Its release takes one port; the processes share the threads."""
    nodes = [types.SimpleNamespace(port=port) for port in (1001, 1002, 1003)]
    calls = []
    client = types.SimpleNamespace(run=lambda command, **_: calls.append(list(command)))
    setting = types.SimpleNamespace(cluster=types.SimpleNamespace(nodes=nodes), client=client)
    account = types.SimpleNamespace(host="127.0.0.1", user="peer", password="secret")

    GoTPC().run(Comparison(setting, account, threads=16), 5.0)

    given = sorted((call[call.index("-P") + 1], call[call.index("-T") + 1]) for call in calls)
    assert given == [("1001", "6"), ("1002", "5"), ("1003", "5")]


def test_scripts_are_looked_for_where_one_says(tmp_path):
    """Without a directory the word says how to give one, and one without the script is named."""
    assert "--sysbench-tpcc DIR, or SYSBENCH_TPCC" in SysbenchTPCC("").missing()
    assert SysbenchTPCC(str(tmp_path)).missing() == f"no tpcc.lua in {tmp_path}"

    (tmp_path / "tpcc.lua").touch()

    assert SysbenchTPCC(str(tmp_path)).missing() == ""


def test_the_directory_may_stand_in_the_environment(monkeypatch):
    """What the command line says comes first."""
    monkeypatch.setenv(tpcc_peers.DIRECTORY, "/somewhere")
    parser = tpcc_peers.arguments("what it does", 3, "runs")

    assert parser.parse_args([]).sysbench_tpcc == "/somewhere"
    assert parser.parse_args(["--sysbench-tpcc", "/other"]).sysbench_tpcc == "/other"


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "many", ""])
def test_seconds_are_a_number_above_zero(text):
    """The message shows what was given."""
    with pytest.raises(argparse.ArgumentTypeError, match="number above 0"):
        tpcc_peers.seconds(text)


def test_a_client_is_judged_by_its_cpu_for_each_commit():
    """A run that was quicker is no cheaper for that; the ratio is of runs that followed each other."""
    ours = [Cost(cpu=1.0, commits=2000, seconds=5.0), Cost(cpu=3.0, commits=2000, seconds=5.0)]
    theirs = [Cost(cpu=1.0, commits=1000, seconds=1.0), Cost(cpu=3.0, commits=1000, seconds=1.0)]

    lines = tpcc_client.rows({"ours": ours, "go-tpc": theirs}, {"sysbench-tpcc": "no tpcc.lua in /x"})

    assert lines[0] == "| ours | 1 (0.5 .. 1.5) | 400 |  | |"
    assert lines[1] == "| go-tpc | 2 (1 .. 3) | 1000 | 0.5 (0.5 .. 0.5) | target <= 0.45: not met |"
    assert lines[2] == "| sysbench-tpcc | skipped: no tpcc.lua in /x | | | |"
    on_cluster = tpcc_client.rows({"ours": ours, "go-tpc": theirs}, {}, tpcc_client.CLUSTER_TARGETS)
    assert on_cluster[1].endswith("target <= 0.6: met |")


def test_every_other_client_has_a_target():
    """None is shown beside without being judged."""
    assert {peer.name for peer in (GoTPC(), SysbenchTPCC(""), Connector())} == set(tpcc_client.TARGETS)


@pytest.mark.parametrize(("extension", "said"), [("True", "with its C extension"), ("False", "as pure Python")])
def test_how_the_connector_comes_is_said(monkeypatch, tmp_path, extension, said):
    """A fresh process is asked, because what this one has imported decides whether the extension is found."""
    package = tmp_path / "mysql" / "connector"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"HAVE_CEXT = {extension}\n")
    (tmp_path / "mysql" / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert Connector().kind() == f"mysql-connector-python runs {said} here"


def test_a_client_that_committed_nothing_has_no_cost(standalone):
    """A tool that ends at once would look cheap."""
    with pytest.raises(WorkloadError, match=r"some-client ran for .* and standalone1 counted no commit"):
        tpcc_client.cost("some-client", standalone, lambda: None)


def test_the_cpu_of_a_client_is_that_of_the_child_it_ran_in(standalone, provisioner):
    """And its commits are those that the server counted meanwhile."""
    host = provisioner.acquire(ClusterSpec("standalone", name="client"))[0]

    def action():
        host.run(["python3", "-c", "import time\nwhile time.process_time() < .2: pass"])
        standalone.nodes[0].query("COMMIT")

    found = tpcc_client.cost("some-client", standalone, action)

    assert found.commits == 1
    assert 200 <= found.each < 1000


def test_a_cluster_counts_the_commits_that_were_certified(galera2):
    """Those of all nodes, each once; a COMMIT that had nothing to certify is none."""
    one, other = galera2.nodes
    one.query("CREATE DATABASE certified")
    one.query("CREATE TABLE certified.numbers (number INT PRIMARY KEY)")
    assert galera2.settle(60)
    before = tpcc_client.count_commits(galera2)
    try:
        one.query("INSERT INTO certified.numbers VALUES (1)")
        other.query("INSERT INTO certified.numbers VALUES (2)")
        other.query("COMMIT")

        assert tpcc_client.count_commits(galera2) - before == 2
    finally:
        one.query("DROP DATABASE certified")


def test_loads_are_compared_when_there_is_another():
    """Without go-tpc ours stands alone, beside the word that says why."""
    both = tpcc_load.table([[1.0, 2.0], [4.0, 4.0]], {})
    alone = tpcc_load.table([[1.0, 2.0]], {"go-tpc": "no go-tpc on PATH"})

    assert "| go-tpc | 4 (4 .. 4) |" in both
    assert both.endswith("ours / go-tpc 0.375 (0.25 .. 0.5), target <= 0.35: not met")
    assert alone.endswith("| go-tpc | skipped: no go-tpc on PATH |")
    assert "target" not in alone


def test_a_bring_up_is_judged_in_seconds_and_shown_over_the_loading():
    """The target is of the median bring-up."""
    text = tpcc_bring_up.table(40.0, [8.0, 10.0, 14.0], 10)

    assert "| loading the warehouses, once | 40 |" in text
    assert "bring-up / loading 0.25 (0.2 .. 0.35)" in text
    assert text.endswith("target <= 10: met")


def test_the_stored_tables_of_a_bring_up_are_its_own():
    """No other load starts from them, and none of two runs from those of the other."""
    with tpcc_bring_up.own_entry(10) as one, tpcc_bring_up.own_entry(10) as other:
        assert one.data_set.startswith("tpcc v")
        assert len({one.data_set, other.data_set, tpcc_bring_up.TPCC(10).data_set}) == 3


def test_what_the_ledger_takes_is_a_share_of_the_throughput():
    """Pair by pair; a pair that was quicker with it counts as less than nothing."""
    on, off = [Speed(97.0, 12.0), Speed(102.0, 13.0), Speed(98.0, 14.0)], [Speed(100.0, 10.0)] * 3

    assert ledger_cost.loss([97.0, 102.0], [100.0, 100.0]).least == pytest.approx(-2.0)
    assert ledger_cost.row("tpcc", on, off) == "| tpcc | 100 | 98 | 2 (-2 .. 3) | +3.00 of 10 | target <= 3: met |"


def test_a_round_counts_what_ended_as_asked():
    """Attempts are not known without a ledger, so they make no speed."""
    assert Speed.of(RunResult(2.0, operations=0, good=400, client_seconds=0.2)) == Speed(200.0, pytest.approx(500.0))


def test_a_load_without_its_ledger_still_counts_what_it_did(standalone, provisioner):
    """Neither attempts nor latencies nor seconds are there, and the number of transactions is that of the server."""
    host, node = provisioner.acquire(ClusterSpec("standalone", name="client"))[0], standalone.nodes[0]
    setting = Setting(standalone, host, node.release, "quick", lambda line: None)
    node.query(f"CREATE DATABASE {SCHEMA}")
    try:
        own = {"tables": 1, "table_size": 100, "auto_inc": False}
        filling = sysbench_driver.Call("fill", "oltp_read_write.lua", 1, SCHEMA, [standalone.writer()], own)
        sysbench_driver.command(filling, setting, "prepare", seconds=60)
        writing = dataclasses.replace(filling, script="oltp.lua", options={**own, "script": "oltp_write_only"})
        before = int(node.status("com_commit")["com_commit"])
        done, _ = sysbench_driver.run(
            dataclasses.replace(writing, options={**writing.options, "ledger": False}), setting, seconds=0.3
        )
        counted = int(node.status("com_commit")["com_commit"]) - before
    finally:
        node.query(f"DROP DATABASE {SCHEMA}")

    assert done.good == done.ledger.total.committed == counted > 0
    assert done.ledger.total.attempts == {}
    assert done.ledger.total.latencies.total == sum(done.by_second) == 0


def test_the_driver_in_python_asks_for_six_of_ten_customers_by_name():
    """Its names are those of the population (clause 4.3.2.3), its numbers those of customers."""
    draw = tpcc_connector.random.Random(7)
    found = [tpcc_connector.a_customer(draw) for _ in range(2000)]

    names = [one for one in found if isinstance(one, str)]
    assert 1100 < len(names) < 1300
    assert all(1 <= one <= 3000 for one in found if isinstance(one, int))
    assert all(name.startswith(tpcc_connector.SYLLABLES) and name.endswith(tpcc_connector.SYLLABLES) for name in names)


def test_the_driver_in_python_has_the_standard_mix():
    """45 New-Order, 43 Payment, and 4 of each other kind."""
    assert [share for _, share in tpcc_connector.MIX] == [45, 43, 4, 4, 4]
