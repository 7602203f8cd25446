"""OS metrics of a round, as averages a second."""

from __future__ import annotations

import os
import subprocess

import pytest

from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.testbed.sampler import Growth, Sampler


def test_rates_are_changes_a_second_between_first_and_last_sample():
    """Samples between them do not matter, and what only one of them has is left out."""
    sampler = Sampler({})
    sampler.samples = [(10.0, {"a": 1.0, "b": 0.0}), (11.0, {"a": 100.0, "b": 0.0}), (14.0, {"a": 9.0, "c": 1.0})]

    assert sampler.rates() == {"a": 2.0}


def test_a_round_has_the_metrics_of_the_machine_and_of_each_process():
    """CPU in cores, of the named process; steal, disk and network of the machine."""
    with Sampler({"node1": os.getpid()}) as sampler:
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
    with Sampler({"node1": pid}) as sampler:
        pass

    assert sampler.rates().get("cpu_node1", 0.0) == 0.0


def test_an_interface_that_comes_or_goes_is_no_traffic():
    """That of a container brings the counts of its life; one that begins again at 0 has sent nothing backwards."""
    network = Growth(2)
    steps = [
        network.grown(now)
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
    with Sampler({}, client=Counting(1.0, 3.0)) as sampler:
        pass
    first, last = (sample["cpu_client"] for _, sample in sampler.samples)
    with Sampler({}, client=Counting(None, None)) as unseen:
        pass

    assert (first, last) == (1.0, 3.0)
    assert "cpu_client" not in unseen.rates()
