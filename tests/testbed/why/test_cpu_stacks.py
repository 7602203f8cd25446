"""CPU stacks: what perf prints is read, and real servers are sampled where perf is permitted."""

from __future__ import annotations

import shutil

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.testbed.why import cpu_stacks
from pytest_dbcluster.testbed.why.why_testbed import ServerComparer
from tests.support.facts import missing
from tests.support.testbeds import ONE, OTHER, WRITE, source
from tests.testbed.why.test_why_testbed import shop

PRINTED = """  2000000\x20
\t          abf344 Item_func_like::val_bool (/opt/sbin/mariadbd)
\t          86edc6 [unknown] (/opt/sbin/mariadbd)
\t          86edc0 [unknown] (/opt/sbin/mariadbd)
\t          83bcb4 dispatch_command (/opt/sbin/mariadbd)
\t           891f4 start_thread (/lib/libc.so.6)

  2000000\x20
\t          abf344 std::vector<int, char (*)(int)>::at (/opt/sbin/mariadbd)
\t          83bcb4 dispatch_command (/opt/sbin/mariadbd)
\tffffffffffffffff [unknown] ([unknown])

  1000000\x20
\tffffffff8100 do_syscall_64 ([kernel.kallsyms])

"""


@pytest.fixture
def perf():
    """Skips the test without perf."""
    if not shutil.which("perf"):
        pytest.skip("there is no program perf here (package linux-perf; make tools installs it)")


def test_what_perf_prints_is_read():
    """Functions of a thread begin at the statement; those without a name are one for each file."""
    assert cpu_stacks.stacks_of(PRINTED) == {
        ("dispatch_command", "[mariadbd]", "Item_func_like::val_bool"): 0.002,
        ("dispatch_command", "std::vector<int, char (*)(int)>::at"): 0.002,
        ("do_syscall_64",): 0.001,
    }
    assert cpu_stacks.stacks_of("") == {}


def test_the_functions_of_a_server_are_named(perf, pool, tmp_path):
    """Its time is at most that of the cores, and nothing stays on its host."""
    testbed = source(pool, shop(tmp_path / "shop", ""), ONE, OTHER)
    found = ServerComparer(testbed)(1, 0, 2.0)
    (cluster,) = pool.clusters

    assert (found.reason, found.no_stacks) == ("", "")
    named = {name for one in found.stacks for name in one.functions}
    assert {"dispatch_command", "mysql_execute_command"} <= named
    assert 0 < sum(one.baseline for one in found.stacks) < 0.1
    assert missing("\n".join(found.lines), "CPU of the servers: ", " ms per operation", "; most different: ") == []
    assert [node.host.run(["ls", node.host.directory]).stdout.count("perf.") for node in cluster.nodes] == [0]


def test_a_comparison_without_perf_has_the_reason(pool, monkeypatch):
    """All else is compared."""
    monkeypatch.setattr(cpu_stacks, "PERF", "no-such-perf")
    said = []
    found = ServerComparer(source(pool, WRITE, ONE, OTHER, progress=said.append))(1, 0, 20.0)

    assert (found.reason, found.stacks, found.cpu) == ("", (), "")
    assert missing(found.no_stacks, "perf is not installed", "linux-perf") == []
    assert found.statements
    assert "perf samples" not in "\n".join(said)


def test_a_round_without_samples_is_a_round(perf, pool, monkeypatch):
    """A perf that ends at once leaves its message, and the cluster as it was."""
    monkeypatch.setattr(cpu_stacks, "why_not", lambda nodes: "")
    monkeypatch.setattr(cpu_stacks, "RECORD", ("record", "--call-graph", "nonsense"))
    testbed = source(pool, WRITE, ONE, OTHER)
    testbed.round(0, block=0, position=0)
    (cluster,) = pool.clusters
    found = ServerComparer(testbed)(1, 0, 20.0)

    assert (found.reason, found.stacks, pool.clusters, cluster.unusable) == ("", (), [cluster], "")
    assert "callchain" in found.no_stacks or "nonsense" in found.no_stacks


def test_samples_that_ended_early_are_not_shown(perf, standalone, monkeypatch):
    """Such as those of a disk that is full: they would be too few for the operations of the round."""
    recording = cpu_stacks.Recording(standalone.nodes, 1.0)
    with recording.running():
        standalone.nodes[0].host.run(["pkill", "-INT", "-f", f"{standalone.nodes[0].host.directory}/perf.data"])
        wait.until(lambda: [] if recording.ended else ["perf runs"], "perf", seconds=60)

    with pytest.raises(Unsupported, match="ended before the round did"):
        recording.read()


def test_a_disk_without_room_gets_no_samples(perf, standalone, monkeypatch):
    """They lie beside the data of the server, which needs the room itself."""
    host = standalone.nodes[0].host
    monkeypatch.setattr(type(host), "free_bytes", lambda self: 2**20)
    recording = cpu_stacks.Recording(standalone.nodes, 1.0)
    with recording.running():
        pass

    with pytest.raises(Unsupported, match="too little room"):
        recording.read()
