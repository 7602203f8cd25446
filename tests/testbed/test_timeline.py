"""A sample of every second of a measurement, and the CSV that is made of them."""

from __future__ import annotations

import csv
import io
import itertools
import os
import subprocess
import threading
import types

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.topology import Pulse, Topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.host import Process
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProcess
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.system import processes
from pytest_dbcluster.testbed import sampler
from pytest_dbcluster.testbed import timeline as module
from pytest_dbcluster.testbed.timeline import Moment, Place, Timeline, next_due

PLACE = Place("flush_2", 3, 1)
PULSE = Pulse("SHOW GLOBAL STATUS", {"flow_control_paused": ("paused_ns", 1e-9), "receive_queue": ("recv_queue", 1.0)})


class Pulsing(Topology):
    """Every node is asked the same."""

    options = form = problems = None

    def pulse(self, node, nodes):
        """Flow control and queue."""
        return PULSE


Pulsing.__abstractmethods__ = frozenset()


class Answers:
    """A control connection that gives these rows, or raises."""

    def __init__(self, *rows, error=None):
        self.rows, self.error = list(rows), error
        self.asked = 0

    def records(self, statement):
        """What SHOW GLOBAL STATUS gives."""
        self.asked += 1
        if self.error:
            raise self.error
        return self.rows


class Seen(FakeProcess):
    """A process of this machine."""

    cpu_seconds = Process.cpu_seconds


STATUS = ({"variable_name": "Paused_ns", "value": "2000000000"}, {"variable_name": "Recv_queue", "value": "7"})


def setting(*connections, pid=None):
    """A cluster with a node for each connection, and a client."""
    nodes = [
        types.SimpleNamespace(name=f"node{n}", process=Seen(pid or os.getpid()), sql=connection, host=FakeHost())
        for n, connection in enumerate(connections, 1)
    ]
    cluster = types.SimpleNamespace(nodes=nodes, topology=Pulsing())
    return types.SimpleNamespace(cluster=cluster, client=FakeHost(), others=())


def sampled(timeline, number):
    """Wait until there are so many more samples."""
    enough = len(timeline.moments) + number
    wait.until(lambda: [] if len(timeline.moments) >= enough else ["few"], "samples", seconds=60)


@pytest.fixture
def threads():
    """The threads of the test that sample, or those that ask."""
    before = set(threading.enumerate())

    def threads(name="dbcluster-timeline"):
        return [thread for thread in threading.enumerate() if thread.name == name and thread not in before]

    return threads


@pytest.fixture
def timeline():
    """A fast timeline, which is stopped at the end."""
    fast = Timeline(interval=0.005)
    yield fast
    fast.stop()


def test_one_thread_samples_in_rounds_and_between_them(timeline, threads):
    """It ends when it is stopped, and not with a round. Servers are asked in rounds alone."""
    connection = Answers(*STATUS)
    for _ in range(2):
        with timeline.during(PLACE, setting(connection)):
            sampled(timeline, 2)
        sampled(timeline, 1)  # it may have begun in the round
        asked = connection.asked
        sampled(timeline, 2)
        assert connection.asked == asked > 0
        assert len(threads()) == 1
    timeline.stop()
    timeline.stop()

    assert threads() == []
    inside = [moment for moment in timeline.moments if moment.place]
    assert {moment.place for moment in inside} == {PLACE}
    assert inside[0].values["receive_queue_node1"] == 7
    assert inside[0].values["flow_control_paused_node1"] == 2.0
    outside = [moment for moment in timeline.moments if not moment.place]
    assert outside
    assert not any("receive_queue_node1" in moment.values for moment in outside)
    assert all("cpu_node1" in moment.values for moment in timeline.moments)


@pytest.mark.parametrize("error", [ConfigError("gone"), IndexError("half a packet"), OSError("reset")])
def test_a_server_that_does_not_answer_ends_no_sampling(timeline, threads, error):
    """The others are sampled; the round itself finds out what has happened."""
    with timeline.during(PLACE, setting(Answers(error=error), Answers(*STATUS))):
        sampled(timeline, 3)

    last = timeline.moments[-1].values
    assert "receive_queue_node1" not in last
    assert len(threads()) == 1


def done(started, seconds, drain=0.0):
    """A round."""
    counters = {"drain_seconds": drain}
    return Round("flush_2", 3, 1, RunResult(seconds, 1), wall=seconds, started=started, counters=counters)


def moment(at, place, processes, values):
    """A sample; the system's time is not corrected."""
    return Moment(at, at, place, processes, values)


def rows(timeline, *rounds):
    """The lines of the CSV by column."""
    return list(csv.DictReader(io.StringIO(timeline.as_csv(rounds))))


def test_the_csv_has_rates_and_gauges_of_the_rounds():
    """A value that was missing in between is averaged since the last sample that had it."""
    timeline = Timeline()
    timeline.moments = [
        moment(90.0, None, 1, {"cpu_all": 0.0}),
        Moment(
            100.0, 100.0, PLACE, 1, {"cpu_all": 10.0, "cpu_node1": 1.0, "receive_queue_node1": 5.0, "disk_writes": 0.0}
        ),
        moment(101.0, None, 1, {"cpu_all": 11.5, "cpu_node1": 1.5, "disk_writes": 10.0}),
        Moment(
            103.0, 103.0, PLACE, 1, {"cpu_all": 13.5, "cpu_node1": 2.0, "receive_queue_node1": 2.0, "disk_writes": 10.0}
        ),
        moment(200.0, None, 1, {"cpu_all": 99.0}),
    ]
    first, second, third = rows(timeline, done(100.0, 1.0), done(102.5, 0.5))

    assert list(first)[:5] == ["time", "seconds", "variant", "block", "position"]
    assert (first["time"], first["seconds"], first["variant"], first["block"]) == ("100.000", "0.000", "flush_2", "3")
    assert (first["cpu_all"], first["cpu_node1"], first["receive_queue_node1"]) == ("1", "", "5")
    assert (second["variant"], second["cpu_all"], second["receive_queue_node1"]) == ("", "1.5", "")
    assert (third["cpu_all"], third["cpu_node1"], third["receive_queue_node1"]) == ("1", "0.25", "2")
    assert third["disk_writes"] == "0"


def test_a_switch_to_another_cluster_is_no_jump():
    """Processes of two clusters have the same names; each is compared with itself."""
    timeline = Timeline()
    timeline.moments = [
        moment(100.0, PLACE, 1, {"cpu_node1": 500.0}),
        moment(101.0, PLACE, 2, {"cpu_node1": 3.0}),
        moment(102.0, PLACE, 2, {"cpu_node1": 3.5}),
        moment(104.0, PLACE, 1, {"cpu_node1": 501.0}),
    ]

    assert [row["cpu_node1"] for row in rows(timeline, done(100.0, 4.0))] == ["", "", "0.5", "0.25"]


def test_a_cluster_whose_turn_comes_again_goes_on(timeline):
    """Two clusters take turns of less than a second: their rates are those since the turn before."""
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            for pid in (os.getpid(), other.pid) * 2:
                with timeline.during(PLACE, setting(Answers(*STATUS), pid=pid)):
                    sampled(timeline, 2)
            timeline.stop()
        finally:
            other.kill()

    inside = [moment.processes for moment in timeline.moments if moment.place]
    assert [number for number, _ in itertools.groupby(inside)] == [1, 2, 1, 2]


def test_a_corrected_clock_changes_no_rate():
    """The system's time may jump; a second stays a second."""
    timeline = Timeline()
    timeline.moments = [
        Moment(100.0, 50.0, PLACE, 1, {"cpu_all": 1.0}),
        Moment(99.5, 51.0, PLACE, 1, {"cpu_all": 2.0}),
    ]

    assert [row["cpu_all"] for row in rows(timeline, done(100.0, 2.0))] == ["", "1"]


def test_a_server_that_hangs_holds_up_neither_a_round_nor_the_end(timeline, threads, monkeypatch):
    """The thread that waits for it is left alone; it ends when the server answers."""
    monkeypatch.setattr(module, "STOP_SECONDS", 60)
    asked, answer = threading.Event(), threading.Event()

    class Hanging(Answers):
        def records(self, statement):
            asked.set()
            assert answer.wait(60)
            return STATUS

    with timeline.during(PLACE, setting(Hanging())):
        assert asked.wait(60)
    timeline.stop()
    assert threads() == []
    waiting = set(threads("dbcluster-timeline-asks"))
    answer.set()
    for thread in waiting:
        thread.join(60)

    assert len(waiting) >= 1
    assert not any(thread.is_alive() for thread in waiting)


@pytest.mark.parametrize("machine", ["", "elsewhere"])
def test_a_node_that_does_not_answer_has_a_gap_of_its_own(timeline, monkeypatch, machine):
    """All others are sampled as before, and it is too once it answers; on this machine nodes are asked in turn."""
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    silent, answer = threading.Event(), threading.Event()

    class Silent(Answers):
        def records(self, statement):
            if silent.is_set():
                assert answer.wait(60)
            return STATUS

    def wait_for(present, absent=()):
        def problems():
            values = timeline.moments[-1].values if timeline.moments else {}
            wrong = {name for name in present if name not in values} | {name for name in absent if name in values}
            return [str(wrong)] if wrong else []

        wait.until(problems, f"{present} without {absent}", seconds=60)

    queues = [f"receive_queue_node{number}" for number in (1, 2, 3)]
    given = setting(Answers(*STATUS), Silent(), Answers(*STATUS))
    for node in given.cluster.nodes:
        node.host.machine = machine
    with timeline.during(PLACE, given):
        wait_for(queues)
        silent.set()
        wait_for([queues[0], queues[2]], [queues[1]])
        asked = given.cluster.nodes[2].sql.asked
        wait.until(lambda: [] if given.cluster.nodes[2].sql.asked > asked + 3 else ["few"], "samples", seconds=60)
        assert queues[1] not in timeline.moments[-1].values
        silent.clear()
        answer.set()
        wait_for(queues)


def test_there_is_no_csv_without_samples_or_rounds():
    """So no file is written."""
    timeline = Timeline()

    assert timeline.as_csv([]) == ""
    assert timeline.as_csv([done(1.0, 1.0)]) == ""


@pytest.mark.parametrize(("ended", "next_"), [(10.1, 11.0), (10.5, 11.0), (10.96, 11.46), (13.0, 13.5)])
def test_a_late_sample_is_not_followed_by_one_at_once(ended, next_):
    """Ten samples of CPU in 40 ms were more cores than there are."""
    assert next_due(10.0, 1.0, ended) == pytest.approx(next_)


def test_the_csv_reaches_to_the_end_of_the_last_drain():
    """The queue that is drained is what one looks for there."""
    timeline = Timeline()
    timeline.moments = [moment(float(second), PLACE, 1, {"cpu_all": float(second)}) for second in range(100, 120)]

    times = [row["time"] for row in rows(timeline, done(105.0, 2.0, drain=4.0))]

    assert (times[0], times[-1]) == ("104.000", "112.000")


def test_a_load_generator_is_counted_while_it_runs():
    """Its processes are children of ours, or children of these."""
    before = processes.running_children_seconds()
    loop = "n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done; echo done; read x"
    command = ["sh", "-c", f"sh -c '{loop}'; true"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as busy:
        busy.stdout.readline()
        used = processes.running_children_seconds() - before
        busy.communicate(b"x")

    assert used > 0.05


class Guest(FakeHost):
    """A host with a kernel of its own, which counts half a second of CPU time with each look."""

    def __init__(self):
        super().__init__()
        self.looks = 0

    def usage(self):
        """More with each look."""
        self.looks += 1
        return {"cpu_user": 0.5 * self.looks, "network_sent_bytes": 1000.0 * self.looks}


def test_hosts_with_a_kernel_of_their_own_are_asked(timeline):
    """Each node, and the load generator; the process of a node is this machine's view of it."""
    made = setting(Answers(*STATUS))
    made.client = Guest()
    made.cluster.nodes[0].host = Guest()
    with timeline.during(PLACE, made):
        sampled(timeline, 3)
    timeline.stop()
    first, last = timeline.moments[0].values, timeline.moments[-1].values

    for name in ("cpu_user_node1", "cpu_user_client", "network_sent_bytes_client"):
        assert first[name] < last[name]
    assert first["cpu_idle"] <= last["cpu_idle"]
    assert "network_received_bytes" in last
    assert last["cpu_user_node1"] == pytest.approx(0.5 * made.cluster.nodes[0].host.looks)
    assert {"cpu_system_node1", "disk_read_bytes_node1", "disk_write_bytes_node1"} <= set(last)


def test_hosts_of_other_machines_are_asked_once_each(timeline):
    """A node has the figures of its machine, and what is of no node is the sum over the machines of the nodes."""
    made = setting(Answers(*STATUS), Answers(*STATUS), Answers(*STATUS))
    hosts = [Guest() for _ in range(4)]
    for host, machine in zip(hosts, "aabc", strict=True):
        host.machine = machine
    for node, host in zip(made.cluster.nodes, hosts, strict=False):
        node.host, node.process = host, FakeProcess(0, cpu=7.0)
    made.client = hosts[3]
    with timeline.during(PLACE, made):
        sampled(timeline, 2)
    timeline.stop()
    last = timeline.moments[-1].values
    looks = len(timeline.moments)

    assert [host.looks for host in hosts] == [0, looks, looks, looks]
    assert [last[f"cpu_user_{name}"] for name in ("node1", "node3", "client")] == [0.5 * looks] * 3
    assert (last["cpu_user"], last["network_bytes"]) == (looks, 2000.0 * looks)
    assert last["cpu_node1"] == 7.0
    assert not {"cpu_all", "cpu_idle", "cpu_system_node1"} & set(last)


def test_hosts_are_asked_at_once(timeline):
    """Each answers when all have been asked."""
    together = threading.Barrier(3)

    class Waits(Guest):
        def usage(self):
            together.wait(60)
            return super().usage()

    made = setting(Answers(*STATUS), Answers(*STATUS))
    made.client = Waits()
    for node in made.cluster.nodes:
        node.host = Waits()
    with timeline.during(PLACE, made):
        sampled(timeline, 2)
    timeline.stop()

    assert {"cpu_user_node1", "cpu_user_node2", "cpu_user_client"} <= set(timeline.moments[1].values)


def test_a_process_in_its_own_network_has_its_traffic():
    """Of the same network as ours there is no figure for one process."""
    own = sampler.of_process(psutil.Process())

    assert {"cpu_user", "cpu_system", "disk_write_bytes"} <= set(own)
    assert "network_sent_bytes" not in own
    text = "Inter-|   Receive\n face |bytes\n    lo: 5 1 0 0 0 0 0 0 5 1 0\n peers:100 1 0 0 0 0 0 0 70 1 0\n"
    assert sampler._network(text) == {"network_received_bytes": 100.0, "network_sent_bytes": 70.0}


def test_a_host_that_was_started_again_counts_from_nothing():
    """What it lost is no rate below zero."""
    timeline = Timeline()
    timeline.moments = [
        moment(float(second), PLACE, 1, {"cpu_user_node1": value})
        for second, value in ((100, 50.0), (101, 50.5), (102, 0.25), (103, 0.75))
    ]

    assert [row["cpu_user_node1"] for row in rows(timeline, done(100.0, 3.0))] == ["", "0.5", "", "0.5"]


def test_guests_of_two_clusters_are_told_apart(timeline):
    """Their processes have no numbers on this machine."""
    settings = [setting(Answers(*STATUS)) for _ in range(2)]
    for number, made in enumerate(settings):
        made.cluster.nodes[0].process.pid = 0
        made.cluster.nodes[0].host.directory = f"/runs/{number}/node1"
    for made in settings * 2:
        with timeline.during(PLACE, made):
            sampled(timeline, 2)
    timeline.stop()

    inside = [moment.processes for moment in timeline.moments if moment.place]
    assert [number for number, _ in itertools.groupby(inside)] == [1, 2, 1, 2]
