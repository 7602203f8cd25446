"""OS metrics of a round, as averages a second."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

import pytest

from pytest_dbcluster.hosts.host import Process
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProcess
from pytest_dbcluster.system import probes
from pytest_dbcluster.system.probes import CpuReading
from pytest_dbcluster.testbed import sampler as sampler_module
from pytest_dbcluster.testbed.sampler import Growth, Sampler, load_seconds


class Seen(FakeProcess):
    """A process of this machine."""

    cpu_seconds = Process.cpu_seconds


@contextlib.contextmanager
def sampled(*how, **more):
    """A sampler that samples before and after a block."""
    made = Sampler(*how, **more)
    made.take()
    yield made
    made.take()


def test_rates_are_changes_a_second_between_first_and_last_sample():
    """Samples between them do not matter, and what only one of them has is left out."""
    sampler = Sampler({})
    sampler.samples = [(10.0, {"a": 1.0, "b": 0.0}), (11.0, {"a": 100.0, "b": 0.0}), (14.0, {"a": 9.0, "c": 1.0})]

    assert sampler.rates() == {"a": 2.0}


def test_a_round_has_the_metrics_of_the_machine_and_of_each_process():
    """CPU in cores, of the named process; steal, disk and network of the machine."""
    with sampled({"node1": Seen(os.getpid())}) as sampler:
        sum(range(10**6))
    rates = sampler.rates()

    assert rates["cpu_node1"] > 0
    assert {"cpu_all", "cpu_client", "cpu_plugin", "steal", "iowait", "network_bytes"} <= set(rates)


@pytest.mark.parametrize("pid", [None, 2**22 + 1])
def test_a_process_that_has_ended_is_no_error(pid):
    """Whoever runs the load says what has become of it."""
    if pid is None:
        with subprocess.Popen(["true"]) as ended:
            pid = ended.pid
    with sampled({"node1": Seen(pid)}) as sampler:
        pass

    assert sampler.rates().get("cpu_node1", 0.0) == 0.0


def test_an_interface_that_comes_or_goes_is_no_traffic():
    """That of a container brings the counts of its life; one that begins again at 0 has sent nothing backwards."""
    network = Growth(2)
    steps = [
        network.add(now)
        for now in (
            {"lo": (500, 5)},
            {"lo": (600, 6), "veth1": (9e9, 70)},
            {"lo": (700, 7), "veth1": (9e9 + 50, 71)},
            {"lo": (700, 7)},
            {"lo": (10, 1), "veth1": (3, 1)},
        )
    ]

    assert steps == [[0, 0], [100, 1], [250, 3], [250, 3], [250, 3]]


class Counting(FakeHost):
    """A client's host that counts the CPU time of what is on it."""

    def __init__(self, *seconds):
        super().__init__()
        self.seconds = list(seconds)

    def cpu_seconds(self):
        """The next of these."""
        return self.seconds.pop(0)


def test_a_clients_host_counts_what_is_no_child_of_ours():
    """Where it can be seen; otherwise nobody knows, and no CPU of other children is taken for the client's."""
    with sampled({}, client=Counting(1.0, 3.0)) as sampler:
        pass
    first, last = (sample["cpu_client"] for _, sample in sampler.samples)
    with sampled({}, client=Counting(None, None)) as unseen:
        pass

    assert (first, last) == (1.0, 3.0)
    assert "cpu_client" not in unseen.rates()


def test_the_load_generator_is_all_of_its_machines():
    """Hosts of one machine are asked once; where one machine does not know, nobody does."""
    one, other, beside, silent = (Counting(1.0), Counting(2.5), Counting(9.0), Counting(None))
    other.machine, silent.machine = "load2", "load3"

    assert load_seconds([beside, one, other], Counting.cpu_seconds) == 3.5
    assert load_seconds([Counting(1.0), silent], Counting.cpu_seconds) is None


class Far(FakeHost):
    """A host of another machine, which counts as much more with each look as its figures say."""

    def __init__(self, machine, **figures):
        super().__init__(machine)
        self.machine = machine
        self.figures = figures
        self.looks = 0

    def usage(self):
        """More with each look."""
        self.looks += 1
        return {name: value * self.looks for name, value in self.figures.items()}


class Counted(FakeProcess):
    """A server that uses two seconds of CPU time between two looks."""

    def cpu_seconds(self):
        """More with each look."""
        self.cpu = (self.cpu or 0.0) + 2.0
        return self.cpu


ALL = {"cpu_user": 3.0, "cpu_system": 1.0, "cpu_iowait": 0.5, "disk_write_bytes": 4096.0, "network_sent_bytes": 100.0}


def changes(hosts, processes=None, client=None):
    """How much each metric has changed between the two samples of a round."""
    with sampled(processes or {}, client or Counting(None, None), hosts) as sampler:
        pass
    (_, first), (_, last) = sampler.samples
    return {name: last[name] - first[name] for name in first if name in last}


def test_nodes_on_other_machines_have_the_sums_over_these():
    """Each machine counts once, whoever shares it. This machine is none of them, but for the plugin's own CPU."""
    hosts = [Far("a", **ALL, cpu_steal=0.25), Far("a", **ALL, cpu_steal=0.25), Far("b", **ALL, pressure_io=1.0)]
    found = changes(hosts, {"node1": Counted(), "node2": FakeProcess()}, Counting(1.0, 5.0))

    assert found.pop("cpu_plugin") >= 0
    assert found == {
        "cpu_all": 8.0,
        "iowait": 1.0,
        "disk_write_bytes": 8192.0,
        "network_bytes": 200.0,
        "cpu_node1": 2.0,
        "cpu_client": 4.0,
    }


def test_a_machine_that_cannot_be_read_leaves_the_metrics_of_machines_out():
    """The sum of the others would be too small."""
    assert set(changes([Far("a", **ALL), Far("b")])) == {"cpu_plugin"}


def test_machines_servers_and_load_generator_are_asked_at_once():
    """Each answers when all have been asked: a sample takes one round trip."""
    together = threading.Barrier(4)

    class Waits(Far):
        def usage(self):
            together.wait(60)
            return super().usage()

        def cpu_seconds(self):
            together.wait(60)
            return 1.0

    class WaitsToo(Counted):
        def cpu_seconds(self):
            together.wait(60)
            return super().cpu_seconds()

    found = changes([Waits("a", **ALL), Waits("b", **ALL)], {"node1": WaitsToo()}, Waits("c"))

    assert (found["cpu_all"], found["cpu_node1"], found["cpu_client"]) == (8.0, 2.0, 0.0)


def reading(at, busy, own):
    """A reading of this machine."""
    return CpuReading(at, busy, own)


@pytest.mark.parametrize(
    ("readings", "when"),
    [
        ([(0, 0, 0), (1, 1.5, 0)], "before the first round"),
        ([(0, 0, 0), (1, 0, 0), (1, 0, 0), (9, 12, 0)], "while rounds run"),
        ([(0, 0, 0), (1, 1, 1), (1, 1, 1), (9, 17, 17)], ""),
        ([(0, 0, 0), (1, 0, 0), (1, 0, 0), (2, 2, 0)], ""),
    ],
    ids=["before", "while", "own", "too short"],
)
def test_a_busy_machine_is_told_once(monkeypatch, readings, when):
    """With the cores that others take; this run's own do not count, and a second of rounds is too short to tell."""
    monkeypatch.setattr(sampler_module, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(probes, "usable_cores", lambda: 2.0)
    follow = iter([*readings, *[readings[-1]] * 4])
    monkeypatch.setattr(CpuReading, "now", classmethod(lambda cls: reading(*next(follow))))
    said = []
    watch = sampler_module.BusyWatch(said.append)
    for _ in range(2):
        with watch.measuring(), watch.measuring():
            pass

    assert watch.before
    assert len(said) == bool(when)
    assert all(f"other programs take 1.5 of 2 cores {when}" in line for line in said)


def test_a_round_has_the_cores_that_others_took():
    """Of those that this machine may use; nothing is said of machines elsewhere."""
    with sampled({}, None) as here:
        pass
    with sampled({}, Counting(None, None), [Far("a", **ALL)]) as elsewhere:
        pass

    assert here.rates()["cpu_others"] >= 0
    assert here.rates()["usable_cores"] == probes.usable_cores()
    assert not {"cpu_others", "usable_cores", "cpu_busy", "cpu_run"} & {*elsewhere.rates()}
    assert not {"cpu_busy", "cpu_run"} & {*here.rates()}
